"""Terminations that offset launches: new nodes of an abort leave within the limits of drains, empty ones at once."""

import pytest

from leeward.model import well_known
from local.cluster.objects import name_of
from simulation.pace_rules import has_to_leave
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet

SIZE = 6


def aborted(at, **update):
    """An upgrade of six nodes, aborted so many seconds after its start; the most new nodes that drained together."""
    workloads = (deployment("web", 14), budget("web", 5), deployment("api", 8))
    world = Upgraded(a_fleet(SIZE, maximum=SIZE, workloads=workloads, **update)).start(launchTemplateVersion="2")
    world.at(BEGIN + at, lambda: world.machine.start("abort", {"group": GROUP, "action": "abort"}))
    draining: list[int] = []

    def look():
        store = world.world.cluster.store
        tainted = [
            node
            for node in store.each("nodes")
            if any(taint["key"] == well_known.DISRUPTED_TAINT for taint in node["spec"].get("taints") or ())
        ]
        draining.append(sum(any(map(has_to_leave, store.pods_on(name_of(node)))) for node in tainted))

    world.watch(look).run(0.5)
    return world, max(draining)


@pytest.mark.parametrize("limit", [1, 2])
def test_the_new_nodes_of_an_abort_drain_within_maxunavailable(limit):
    world, most = aborted(150, max_unavailable=limit)
    assert world.states["first"][-1] == "Aborted", world.why()
    assert 0 < most <= limit
    assert world.group.desired == SIZE


def test_an_abort_before_pods_have_moved_ends_its_new_nodes_at_once():
    world, most = aborted(20, max_unavailable=1)
    assert (world.states["first"][-1], most, world.group.desired) == ("Aborted", 0, SIZE)
    ends = [line for line in world.world.story if "is ended by EC2" in line]
    assert len(ends) >= 5
