"""Groups without a node whose next node is not what their template lets expect: a run launches one there, sees that the
pods do not fit, takes it back, and does not launch the same again."""

import base64

import pytest

from leeward.disruption.record import DisruptionRecord
from simulation.fruitless_launches import MOST
from simulation.rule import Rule
from tests.simulation.disruption_stand_in import QUIET, Disrupted, a_wasteful_fleet

TAINT = {"key": "dedicated", "value": "agent", "effect": "NoSchedule"}
SCRIPT = "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args '--node-labels=tier=front'\n"
NODE_CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {kubelet: {flags: [--node-labels=tier=front]}}
"""
FIELDS = {"memory": {"memory": "128Mi"}, "pods": {"pods": 1}, "taints": {"taints": (TAINT,)}}
USER_DATA = {"a script's label": SCRIPT, "a declared label": NODE_CONFIG}


def misread(misreading, seed):
    """One expensive node of which half a cheap one would do, of a group that has none yet."""
    fleet = a_wasteful_fleet()
    (web,) = fleet.workloads
    if misreading in USER_DATA:
        web["spec"]["template"]["spec"]["nodeSelector"] = {"tier": "front"}
    world = Disrupted(fleet, seed=seed)
    world.world.labels = lambda member: {"tier": "front"} if member.group == "big" else {}
    group = world.world.fleet.groups["small"]
    group.registers = FIELDS.get(misreading, {})
    group.user_data = base64.b64encode(USER_DATA.get(misreading, "").encode()).decode()
    return world


def seen(misreading, seed):
    """Launches, ends of runs, and sizes after two hours in which the planner looks every five minutes."""
    world = misread(misreading, seed).run(2)
    assert len(world.record.failed if world.ends else ()) == world.ends.count("DisruptionGivenUp")
    return world.launches, world.ends, world.sizes()


STAYS, MOVES = {"big": (1, 1), "small": (0, 0)}, {"big": (0, 0), "small": (1, 1)}
ENDS = {
    **dict.fromkeys((*FIELDS, "a declared label"), (1, ["DisruptionGivenUp"], STAYS)),
    "a script's label": (0, [], STAYS),
    "nothing": (1, ["DisruptionDone"], MOVES),
}


@pytest.mark.parametrize("misreading", ENDS)
def test_a_run_launches_once_where_the_next_node_is_not_as_expected(misreading):
    assert seen(misreading, 1) == ENDS[misreading]


def test_a_planner_that_forgets_what_it_has_dropped_launches_in_each_cooldown(monkeypatch):
    monkeypatch.setattr(DisruptionRecord, "remember_failed", lambda record, _why, _now: record)
    world = misread("a declared label", 1)
    broken = sorted({one.rule for one in world.world.run(1.0, QUIET).violations})
    assert broken == [Rule.FRUITLESS]
    assert world.launches > MOST


@pytest.mark.parametrize("misreading", FIELDS)
def test_a_group_without_nodes_is_planned_from_what_its_last_node_showed(monkeypatch, misreading):
    """Even by a planner that forgets what it has dropped."""
    monkeypatch.setattr(DisruptionRecord, "remember_failed", lambda record, _why, _now: record)
    world = misread(misreading, 1).run(1)
    (seen,) = [node for key, node in world.record.seen.items() if key == "small/m5.large"]
    shown = (seen.allocatable["memory"] < 2**30, seen.allocatable["pods"], seen.taints)
    assert (
        shown
        == {
            "memory": (True, 29, ()),
            "pods": (False, 1, ()),
            "taints": (False, 29, ("dedicated=agent:NoSchedule",)),
        }[misreading]
    )
    assert (world.launches, world.ends) == (1, ["DisruptionGivenUp"])


@pytest.mark.long
@pytest.mark.parametrize("misreading", ENDS)
def test_a_run_launches_once_in_each_of_twenty_worlds(misreading):
    assert [seen(misreading, seed) for seed in range(1, 21)] == [ENDS[misreading]] * 20
