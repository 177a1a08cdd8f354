"""Where the scenarios run: the model in virtual time, the emulator over HTTP, and a cluster that is given."""

import os
from pathlib import Path

import pytest

from local.cluster.nodes import NodeSpec
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from tests.contract.worlds.clusters import ServedCluster, SimulatedCluster

MODEL, EMULATOR, CLUSTER = "the model", "the emulator", "the cluster"
KUBECONFIG = os.environ.get("LEEWARD_CONTRACT_KUBECONFIG", "")
QUICK = ClusterSettings(pod_start=0.05, pod_gc_period=0, pod_gc_quarantine=0.1)
ON_A_CLUSTER = [CLUSTER] if KUBECONFIG else []


def with_nodes(server, folder):
    server.write_files(folder)
    with server.lock:
        for name in ("node-a", "node-b"):
            server.model.add_node(NodeSpec(name=name, instance_id=f"i-{name[-1]}"))


@pytest.fixture
def emulated(tmp_path):
    with ClusterServer(name="blue", settings=QUICK) as server:
        with_nodes(server, tmp_path)
        world = ServedCluster(tmp_path / "kubeconfig", patience=120)
        yield world
        world.close()


@pytest.fixture
def given():
    world = ServedCluster(Path(KUBECONFIG), patience=300)
    yield world
    world.close()


def world_of(request):
    if request.param == MODEL:
        return SimulatedCluster()
    return request.getfixturevalue("emulated" if request.param == EMULATOR else "given")


@pytest.fixture(params=[MODEL, EMULATOR, *ON_A_CLUSTER])
def world(request):
    return world_of(request)


@pytest.fixture(params=[MODEL, EMULATOR])
def expendable_world(request):
    """Where a node may be lost for good."""
    return world_of(request)


@pytest.fixture(params=[EMULATOR, *ON_A_CLUSTER])
def served_world(request):
    """What exists over HTTP alone: lists and their queries, empty bodies, headers."""
    return world_of(request)
