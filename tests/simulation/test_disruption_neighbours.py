"""Cluster Autoscaler beside a disruption run: it leaves new nodes alone until the run has ended."""

from dataclasses import replace

import pytest

from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from leeward.policy.document import Budget
from simulation.plans import AutoscalerPlan
from simulation.scale_down import TO_BE_DELETED
from tests.simulation.disruption_stand_in import Disrupted, a_fleet

HURRY = AutoscalerPlan(unneeded_seconds=30, after_growth_seconds=30, recheck_seconds=30, provision_seconds=300, least=1)


def a_world(act=None, after=1, at_once=1):
    """Drifted nodes are replaced, so many at a time; three are enough for all pods. `act` is done so many seconds after
    a new node is first kept.
    """
    fleet = a_fleet(budgets=(Budget(nodes=at_once, percent=False),))
    world = Disrupted(replace(fleet, autoscaler=HURRY)).drifting()
    world.kept, world.removed, look = [], set(), world.world.seen

    def seen():
        look()
        record = world.world.system.disruptions.records.get("blue")
        if record is not None and record.open:
            world.removed |= requested_to_terminate(world)
        if act and with_note(world, KEPT_FOR) and not any(world.kept):
            world.at(after, lambda: act(world))
        world.kept.append(sorted(with_note(world, KEPT_FOR)))

    world.world.seen = seen
    return world


def with_note(world, key):
    nodes = world.world.cluster.store.sorted("nodes")
    return {node["metadata"]["name"] for node in nodes if key in (node["metadata"].get("annotations") or {})}


def requested_to_terminate(world):
    nodes = world.world.cluster.store.each("nodes")
    return {node["metadata"]["name"] for node in nodes if TO_BE_DELETED in str(node["spec"].get("taints"))}


@pytest.mark.parametrize("at_once", [2, 3])
def test_in_a_hurry_it_takes_no_new_node_while_the_round_is_open(at_once):
    """The first of several waits, empty, for the last."""
    world = a_world(at_once=at_once).run()
    assert (world.removed, set(world.ends), set(world.versions)) == (set(), {"DisruptionDone"}, {"2"})
    assert max(map(len, world.kept)) >= at_once
    assert with_note(world, SCALE_DOWN_DISABLED) == set()


@pytest.mark.parametrize("after", [1, 30, 90])
def test_stopped_it_keeps_them_no_longer_than_the_round_is_open(after):
    world = a_world(stop, after).run()
    assert any(world.kept)
    assert with_note(world, KEPT_FOR) | with_note(world, SCALE_DOWN_DISABLED) == set()


def stop(world):
    for name in list(world.machine.executions):
        world.machine.stop(name)


def test_given_up_it_keeps_them_no_longer():
    world = a_world(protect, after=0).run()
    assert any(world.kept)
    assert world.ends[0] == "DisruptionGivenUp"
    assert with_note(world, KEPT_FOR) | with_note(world, SCALE_DOWN_DISABLED) == set()


def protect(world):
    note = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
    for pod in list(world.world.cluster.store.each("pods")):
        world.world.cluster.patch("pods", pod["metadata"]["name"], note, "default")
