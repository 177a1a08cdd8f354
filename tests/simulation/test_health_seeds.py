"""Random fleets with everything that goes wrong elsewhere, and beside it ill nodes and deleted Nodes."""

import os
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from leeward.model.termination import Status
from simulation import fleets
from simulation.asked import Asked, Kind
from simulation.case import Case
from simulation.world import CONVERGE, World
from tests.drawing import drawn

SEEDS = int(os.environ.get("HEALTH_SEEDS", "4"))
HOURS = 1.0
OF_EACH = 5  # illnesses and deletions in that time
OURS = 0.75  # of these, where members of a group that a policy selects are there


def guarded(fleet):
    """Every policy asks for the finalizer and repairs soon."""
    written = fleet.policies.policies
    quick = {"not_ready_after": timedelta(minutes=6), "max_unhealthy": 40}
    policies = tuple(replace(one, finalizer=True, repair=replace(one.repair, **quick)) for one in written)
    return replace(fleet, policies=replace(fleet.policies, policies=policies))


class Trouble:
    """Whom it befalls is decided when it comes."""

    def __init__(self, world, seed, groups):
        self._world, self._dice = world, Random(seed)
        self._selected = {plan.name for plan in groups if plan.selected}
        for _ in range(OF_EACH):
            for what in (self._falls_ill, self._is_deleted):
                world.timeline.after(200 + self._dice.uniform(0, HOURS * 3000), what, "trouble")

    def _falls_ill(self):
        member = self._one_of("InService")
        if member is None:
            return
        if self._dice.random() < 0.5:
            member.impaired = self._world.timeline.now()
            self._world.asked.append(Asked(at=member.impaired, instance=member.id, kind=Kind.ILL))
            return
        self._say(member, "Unknown")
        if self._dice.random() < 0.3:
            self._world.timeline.after(self._dice.uniform(60, 900), lambda: self._say(member, "True"), "well again")

    def _is_deleted(self):
        member = self._one_of()
        if member is not None and self._world.cluster.store.find("nodes", member.node) is not None:
            self._world.cluster.delete("nodes", member.node)

    def _one_of(self, lifecycle=None):
        alive = [m for m in self._world.fleet.instances.values() if not m.gone and lifecycle in {None, m.lifecycle}]
        ours = [m for m in alive if m.group in self._selected] if self._dice.random() < OURS else []
        return self._dice.choice(ours or alive) if alive else None

    def _say(self, member, status):
        if not member.gone and self._world.cluster.store.find("nodes", member.node) is not None:
            self._world.cluster.set_node_ready(member.node, status)


@pytest.mark.parametrize("seed", drawn(range(1, SEEDS + 1), 2))
def test_no_invariant_is_broken_and_no_deleted_node_stays_but_for_what_its_pods_forbid(seed):
    case = Case(seed=seed, hours=HOURS, per_hour=60, nodes=12)
    fleet = guarded(fleets.generate(Random(seed), nodes=12))
    world = World(seed, fleet, case.faults, case.planned())
    Trouble(world, seed, fleet.groups)
    outcome = world.run(HOURS, CONVERGE)
    assert (outcome.violations, outcome.unexpected) == ((), ())
    kinds = {cause.kind.value for record in world.records.values() for cause in record.causes}
    assert kinds & {"unhealthy", "node_deleted"}
    for node in world.cluster.list("nodes"):
        if "deletionTimestamp" in node["metadata"]:
            record = world.records[node["metadata"]["name"].removeprefix("node-")]
            assert record.status is Status.OPEN
            assert record.blocked_by
