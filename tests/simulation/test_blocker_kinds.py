"""`leeward blockers`, live, of one node with all that people meet: before its group takes it, and while it does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from leeward.blockers.find import blockers
from leeward.cli.blockers.inputs import node_inputs_of
from local.cluster.settings import NEVER_READY
from simulation import fleets
from simulation.fault_rates import Faults
from simulation.world import WARM_UP, World
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment, policies

INSTANCE = "i-00000000000000001"
NODE, GROUP = f"node-{INSTANCE}", "app"
HERE = {"kubernetes.io/hostname": NODE}
CHOSEN = 510.0  # seconds until the group takes the node
TIME_OUT = timedelta(minutes=15)
HOOK_WAITS = timedelta(hours=48) / 100  # the HeartbeatTimeout that fn sync gives it, for a policy without `until`


def workload(name, replicas=1, annotations=None, **spec):
    """On the one node."""
    made = deployment(name, replicas)
    template = made["spec"]["template"]
    template["metadata"]["annotations"] = annotations or {}
    template["spec"] |= {"nodeSelector": HERE, **spec}
    return made


def at_least(name, count, selecting=None):
    made = budget(name)
    made["spec"] = {"selector": {"matchLabels": {"app": selecting or name}}, "minAvailable": count}
    return made


ALONE = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "zero"}}}
WORKLOADS = (
    workload("zero", 2, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALONE]}}),
    at_least("zero", 1),  # its second pod finds no place
    workload("twice"),
    at_least("twice-a", 0, "twice"),
    at_least("twice-b", 0, "twice"),
    workload("failing", annotations={NEVER_READY: "true"}),
    at_least("failing", 1),
    workload("train", annotations={"karpenter.sh/do-not-disrupt": "4h"}),
    workload("batch", annotations={"karpenter.sh/do-not-disrupt": "true"}),
    workload("watcher", tolerations=[{"operator": "Exists"}]),
)
LONELY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "lonely", "namespace": "default"},
    "spec": {"nodeSelector": HERE, "containers": [{"name": "app", "image": "app"}]},
}
STUCK = (
    {
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-data"},
        "spec": {"claimRef": {"namespace": "default", "name": "data"}},
    },
    {
        "kind": "VolumeAttachment",
        "metadata": {"name": "csi-data", "deletionTimestamp": "2026-03-02T00:08:00Z", "finalizers": ["csi/driver"]},
        "spec": {"attacher": "csi", "nodeName": NODE, "source": {"persistentVolumeName": "pv-data"}},
        "status": {"attached": True},
    },
)
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)  # when a simulated world begins
DETACHING = MIDNIGHT + timedelta(minutes=8)


def a_world():
    """A node of a group of one, with all of its pods; two more nodes for what may leave."""
    written = policies(timeout=int(TIME_OUT.total_seconds()))
    (policy,) = written.policies
    refusing = replace(policy, drain=replace(policy.drain, evict_unmanaged=False))
    groups = (GroupPlan(name=GROUP, spot=False, size=1), GroupPlan(name="other", spot=False, size=2))
    fleet = Fleet(groups=groups, workloads=WORKLOADS, policies=replace(written, policies=(refusing,)))
    world = World(1, fleet, Faults.none(), ())
    world.timeline.after(WARM_UP, lambda: world.cluster.create("pods", LONELY, "default"), "a pod without a controller")
    for thing in STUCK:
        world.timeline.after(WARM_UP, partial(world.cluster.install, thing), "a volume that does not leave")
    return world


def reported(world):
    """By kind and owner, until when."""
    ports = world.system.ports
    now = ports.clock.now()
    found = [one for scene in node_inputs_of(ports, fleets.CLUSTER, NODE, now) for one in blockers(scene, now)]
    assert all("kubectl" in one.fix or "aws " in one.fix for one in found)
    return {(one.kind.value, one.owner): one.until for one in found}


HELD_PODS = (  # by these a drain is held
    ("pdb-none-now", "Deployment/zero"),
    ("pdb-several", "Deployment/twice"),
    ("pdb-failing-pod", "Deployment/failing"),
    ("unmanaged-pod", "Pod/lonely"),
    ("tolerates-taint", "Deployment/watcher"),
)
VOLUME = {("volume-attached", "PersistentVolumeClaim/data"): DETACHING + timedelta(minutes=6)}


@pytest.fixture(scope="module")
def run():
    """The world after it all, and what was reported before the group took the node and a minute later."""
    world, looks = a_world(), []

    def choose():
        world.fleet.terminate(world.fleet.instances[INSTANCE], decrement=True)

    world.timeline.after(CHOSEN - 1, lambda: looks.append(reported(world)), "a look")
    world.timeline.after(CHOSEN, choose, "the group is made smaller")
    world.timeline.after(CHOSEN + 60, lambda: looks.append(reported(world)), "a look")
    outcome = world.run(0.6, 0)
    assert (outcome.violations, outcome.unexpected) == ((), ())
    return world, *looks


def test_before_the_drain_what_ends_by_itself_says_when(run):
    _, before, _ = run
    batch, train = ("do-not-disrupt", "Deployment/batch"), ("do-not-disrupt", "Deployment/train")
    assert before == dict.fromkeys(HELD_PODS) | VOLUME | {batch: None, train: before[train]}
    assert timedelta(hours=4) < before[train] - MIDNIGHT < timedelta(hours=4, minutes=1)  # its pod started then


def test_during_the_drain_each_says_when_the_drain_no_longer_waits_and_the_hook_when_it_runs_out(run):
    world, _, during = run
    gives_up = world.records[INSTANCE].times["draining"] + TIME_OUT
    hook = {("lifecycle-hook", f"AutoScalingGroup/{GROUP}"): MIDNIGHT + timedelta(seconds=CHOSEN) + HOOK_WAITS}
    assert during == dict.fromkeys(HELD_PODS, gives_up) | VOLUME | hook


def test_what_was_reported_comes_true(run):
    world, _, during = run
    drained = world.records[INSTANCE].times["drained"]
    assert timedelta(0) <= drained - during["pdb-several", "Deployment/twice"] < timedelta(seconds=10)
