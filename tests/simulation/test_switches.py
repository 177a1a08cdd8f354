"""Every switch of a cluster and of a policy, on the running handlers: off means that nothing happens."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model import well_known
from leeward.policy.document import InterruptionPolicy
from simulation.fault_rates import Faults
from simulation.world import World
from tests.fakes.builders import pausing
from tests.simulation.disruption_stand_in import WASTE, Disrupted, a_fleet, a_wasteful_fleet
from tests.simulation.fleet_stand_in import SMALL, Arrival, deployment, policies

EXPIRED = {"expire_after": timedelta(hours=1)}
EMPTY = {"workloads": (), "consolidation_policy": "WhenEmpty", "consolidate_after": timedelta(minutes=1)}


def switched(fleet, **switches):
    """The cluster's switches, which win over every policy."""
    settings = replace(fleet.policies.settings, **switches)
    return replace(fleet, policies=replace(fleet.policies, settings=settings))


def disruptions(world, *, drifting=False, hours=1.3):
    """How many runs there were."""
    found = Disrupted(world)
    if drifting:
        found.drifting()
    return len(found.run(hours).ends)


@pytest.mark.parametrize(
    ("on", "off", "drifting"),
    [
        (a_fleet(), switched(a_fleet(), drift=False), True),
        (a_fleet(), a_fleet(drift=False), True),
        (a_fleet(**EXPIRED), switched(a_fleet(**EXPIRED), expiration=False), False),
        (a_fleet(**EXPIRED), a_fleet(expire_after=None), False),
        (a_fleet(**EMPTY), switched(a_fleet(**EMPTY), emptiness=False), False),
        (a_fleet(**EMPTY), a_fleet(**EMPTY | {"consolidation_policy": "Never"}), False),
        (a_wasteful_fleet(), switched(a_wasteful_fleet(), consolidation=False), False),
        (a_wasteful_fleet(), a_wasteful_fleet(consolidation_policy="Never"), False),
    ],
    ids=[
        f"{method} off for the {whose}"
        for method in ("drift", "expiration", "emptiness", "consolidation")
        for whose in ("cluster", "policy")
    ],
)
def test_a_method_that_is_off_begins_no_round(on, off, drifting):
    assert disruptions(on, drifting=drifting) > 0
    assert disruptions(off, drifting=drifting) == 0


@pytest.mark.parametrize("whose", ["cluster", "policy", "paused"])
def test_with_interruption_handling_off_a_warning_is_left_to_ec2(whose):
    """Nothing is tainted, launched or evicted, and no hook of ours is put on the group."""
    written = policies()
    if whose == "policy":
        off = tuple(replace(one, interruption=InterruptionPolicy(enabled=False)) for one in written.policies)
        written = replace(written, policies=off)
    elif whose == "paused":
        written = pausing(written, "all")
    else:
        written = replace(written, settings=replace(written.settings, interruption=False))
    arrivals = (Arrival(at_seconds=60, kind="spot_warning"),)
    world = World(1, replace(SMALL, policies=written, workloads=(deployment(),)), Faults.none(), arrivals)
    marks = []
    world.seen = lambda: marks.extend(
        taint["key"]
        for node in world.cluster.list("nodes")
        for taint in node["spec"].get("taints", ())
        if taint["key"] == well_known.DISRUPTED_TAINT
    )
    outcome = world.run(0.2, converge=900)
    assert outcome.arrivals == {"spot_warning": 1}
    assert (marks, dict(world.claims.records), list(world.launches)) == ([], {}, [])
    assert world.system.groups.put == set()
    assert outcome.violations == ()


def test_with_it_on_the_same_warning_is_handled():
    world = World(
        1, replace(SMALL, workloads=(deployment(),)), Faults.none(), (Arrival(at_seconds=60, kind="spot_warning"),)
    )
    world.run(0.2, converge=600)
    record = world.claims.records["i-00000000000000001"]
    assert record.causes[0].kind.value == "spot_interruption"
    assert world.system.groups.put


def test_wasteful_and_empty_are_two_switches():
    """Emptiness off leaves empty nodes alone, and not those that are merely half empty."""
    fleet = switched(a_fleet(size=2, workloads=(deployment("web", 4),), consolidation_policy=WASTE), emptiness=False)
    assert disruptions(fleet) > 0
