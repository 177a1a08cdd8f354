"""An API server that is busy, or that has just started: on the model and the emulator alone, as only a fault makes it
so.
"""

import pytest

from leeward.errors import AccessDeniedError, ThrottledError
from leeward.ports.kubernetes import EvictionRefusedError
from local.cluster.server import ClusterServer
from local.foreign.kubeconfig import read
from tests.contract.cluster.conftest import EMULATOR, MODEL, QUICK, with_nodes
from tests.contract.cluster.test_evictions import TAINT
from tests.contract.worlds.clusters import Reply, a_deployment, ready, there
from tests.contract.worlds.troubled import ASKED, TroubledEmulator, TroubledModel


@pytest.fixture
def busy_emulator(tmp_path):
    with ClusterServer(name="blue", settings=QUICK) as server:
        with_nodes(server, tmp_path)
        world = TroubledEmulator(tmp_path / "kubeconfig", server)
        yield world
        world.close()


@pytest.fixture(params=[MODEL, EMULATOR])
def troubled_world(request):
    return TroubledModel() if request.param == MODEL else request.getfixturevalue("busy_emulator")


def the_pod(world):
    a_deployment(world)
    ((name, node),) = ready(world, "web").items()
    return next(pod for pod in world.api.pods_on(node) if pod.name == name)


def test_a_pause_that_is_too_long_to_wait_for_is_the_callers_and_nothing_has_happened(troubled_world):
    world = troubled_world
    node = world.api.node(world.nodes[0])
    world.busy(60, request="patch nodes")
    with pytest.raises(ThrottledError) as refused:
        world.api.taint(node, TAINT)
    assert refused.value.retry_after == 60
    assert not world.api.node(node.name).taints
    assert world.api.taint(node, TAINT).taints


def test_an_eviction_that_a_busy_server_refuses_is_the_pods_alone_and_evicts_nothing(troubled_world):
    world = troubled_world
    pod = the_pod(world)
    world.busy(1)
    with pytest.raises((EvictionRefusedError, ThrottledError)) as refused:
        world.api.evict(pod)
    assert not getattr(refused.value, "budgets", ())
    assert "deletionTimestamp" not in there(world, pod.name)["metadata"]
    world.api.evict(pod)
    assert "deletionTimestamp" in there(world, pod.name)["metadata"]


def test_a_server_that_has_just_started_denies_and_changes_nothing(troubled_world):
    world = troubled_world
    pod = the_pod(world)
    world.start(done=False)
    for act in (world.api.nodes, lambda: world.api.evict(pod)):
        with pytest.raises(AccessDeniedError):
            act()
    assert "deletionTimestamp" not in there(world, pod.name)["metadata"]
    world.start(done=True)
    assert {node.name for node in world.api.nodes()} == set(world.nodes)


def test_a_busy_server_asks_for_longer_and_longer_pauses_in_plain_text_and_has_them(busy_emulator):
    world = busy_emulator
    world.busy(*ASKED, request="list nodes")
    replies = [world.get("/api/v1/nodes") for _ in ASKED]
    assert [(reply.code, reply.content_type, reply.retry_after) for reply in replies] == [
        (429, "text/plain", pause) for pause in ASKED
    ]
    world.busy(*ASKED, request="list nodes")
    assert {node.name for node in world.api.nodes()} == set(world.nodes)
    assert world.clock.slept == list(ASKED)


def test_a_client_certificate_is_given_a_token_by_a_service_account(emulated, tmp_path, monkeypatch):
    """The product's client knows tokens alone. The emulator has no TokenRequest: its administrator's stands for it."""
    post, asked = emulated.post, []

    def posted(resource, body, *, name="", subresource="", dry_run=False):
        if subresource != "token":
            return post(resource, body, name=name, subresource=subresource, dry_run=dry_run)
        asked.append((resource, name, body["kind"]))
        return Reply(201, {"status": {"token": read(tmp_path / "kubeconfig").token}})

    monkeypatch.setattr(emulated, "post", posted)
    assert emulated._token()
    assert asked == [("serviceaccounts", "contract", "TokenRequest")]
    binding = emulated.get(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{emulated.namespace}")
    assert binding.body["subjects"][0]["namespace"] == emulated.namespace
