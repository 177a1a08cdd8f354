"""Cluster Autoscaler: when it grows a group, which nodes it removes and which it keeps, and that it comes to rest."""

from dataclasses import replace

import pytest

from leeward.model.termination import Outcome
from simulation.fault_rates import Faults
from simulation.plans import AutoscalerPlan
from simulation.scale_down import DISABLED, SAFE, TO_BE_DELETED
from simulation.world import World
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment

HURRY = AutoscalerPlan(unneeded_seconds=60, after_growth_seconds=60, recheck_seconds=60, provision_seconds=300, least=0)
PER_NODE = 7  # pods of a quarter vCPU on two vCPU, with less than one to spare: above half


def a_world(*workloads, plan=HURRY, faults=None, **group):
    plans = (GroupPlan(spot=False, **{"size": 3, "maximum": 5, **group}),)
    return World(1, Fleet(groups=plans, workloads=workloads, autoscaler=plan), faults or Faults.none(), ())


def run(world, hours=0.5):
    outcome = world.run(hours, converge=3600)
    assert (outcome.violations, outcome.unexpected) == ((), ())
    return "\n".join(outcome.story)


def size(world):
    group = world.groups["spot"]
    assert len(group.instances) == group.desired
    return group.desired


def pods(world):
    return [pod for pod in world.cluster.store.all("pods") if pod["spec"].get("nodeName")]


def test_pods_that_find_no_room_make_their_group_grow_by_as_many_nodes_as_they_need():
    world = a_world(deployment(replicas=5 * PER_NODE))
    assert "Cluster Autoscaler changes the desired capacity of spot from 3 to 5" in run(world)
    assert size(world) == 5
    assert len(pods(world)) == 5 * PER_NODE


def test_a_group_does_not_grow_past_its_maximum():
    world = a_world(deployment(replicas=8 * PER_NODE), maximum=4)
    run(world)
    assert size(world) == 4


def test_pods_that_no_group_could_hold_change_nothing():
    large = deployment("large", 2)
    large["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    world = a_world(large, deployment("web", 3 * PER_NODE))
    assert "Cluster Autoscaler" not in run(world)
    assert size(world) == 3


def test_a_node_half_empty_is_emptied_and_ended_and_its_pods_run_elsewhere():
    world = a_world(deployment(replicas=PER_NODE), budget(), plan=replace(HURRY, least=0.6))
    tainted, seen = set(), world.seen

    def look():
        for node in world.cluster.store.all("nodes"):
            tainted.update(
                node["metadata"]["name"] for t in node["spec"].get("taints") or () if t["key"] == TO_BE_DELETED
            )
        seen()

    world.seen = look
    story = run(world)
    assert size(world) == 2
    (gone,) = world.records
    assert tainted == {f"node-{gone}"}
    assert f"Cluster Autoscaler has emptied node-{gone}" in story
    assert world.records[gone].outcome is Outcome.TERMINATED
    assert len(pods(world)) == PER_NODE
    assert world.cluster.history.violations() == []


def test_a_group_is_not_made_smaller_than_its_share():
    world = a_world(plan=replace(HURRY, least=1))
    assert "Cluster Autoscaler" not in run(world)
    assert size(world) == 3


def test_empty_nodes_go_together():
    world = a_world(size=6, maximum=6)
    removed = [line[:11] for line in run(world).splitlines() if "removes" in line]
    assert len(removed) == 6
    assert len(set(removed)) == 1
    assert size(world) == 0


def annotated(key, value):
    found = deployment(replicas=6)
    found["spec"]["template"]["metadata"]["annotations"] = {key: value}
    return found


def with_volume(kind):
    found = deployment(replicas=6)
    found["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", kind: {}}]
    return found


def bare(number):
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "300m"}}}
    metadata = {"name": f"alone-{number}", "namespace": "default"}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    "workloads",
    [
        (annotated(SAFE, "false"),),
        (with_volume("emptyDir"),),
        (deployment(replicas=6), budget(unavailable=0)),
        tuple(bare(number) for number in range(3)),
    ],
    ids=["not safe to evict", "local storage", "a budget that allows nothing", "no controller"],
)
def test_what_forbids_an_eviction_keeps_the_node(workloads):
    world = a_world(*workloads)
    assert "removes" not in run(world)
    assert size(world) == 3


def test_local_storage_that_is_safe_to_evict_keeps_nothing():
    safe = with_volume("emptyDir")
    safe["spec"]["template"]["metadata"]["annotations"] = {SAFE: "true"}
    world = a_world(safe)
    assert "removes" in run(world)


def test_a_node_with_scale_down_disabled_is_kept():
    world = a_world()

    def protect():
        for node in world.cluster.store.all("nodes"):
            world.cluster.patch("nodes", node["metadata"]["name"], {"metadata": {"annotations": {DISABLED: "true"}}})

    world.timeline.after(30, protect, "protect")
    assert "removes" not in run(world)


def test_a_pod_without_fit_elsewhere_keeps_its_node():
    assert "removes" in run(a_world(deployment(replicas=1), size=2, maximum=2, zones=("us-east-1a",)))
    assert "removes" not in run(a_world(deployment(replicas=1), size=1, maximum=1))


def test_an_instance_that_never_registers_is_ended_with_decrement():
    world = a_world(deployment(replicas=4 * PER_NODE), faults=Faults(never_joins=1), maximum=4)
    story = run(world, hours=0.2)
    assert "Cluster Autoscaler: i-00000000000000004 has not registered" in story
    assert "Cluster Autoscaler terminates i-00000000000000004 with decrement" in story


def test_a_quiet_scan_looks_at_no_node(monkeypatch):
    looked = []
    weigh = "simulation.autoscaler.ClusterAutoscaler._weigh"
    monkeypatch.setattr(weigh, lambda self, name: looked.append((self._scene.timeline.now(), name)))
    world = a_world(deployment(replicas=3 * PER_NODE))
    begun = world.now
    run(world)
    assert {name for _, name in looked} == {f"node-i-{number:017x}" for number in (1, 2, 3)}
    assert {at - begun for at, _ in looked} == {190.0}
