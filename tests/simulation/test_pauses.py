"""The pause switch on the running handlers, each with what its execution environment knows of it: under a pause no
voluntary work begins later than a minute after it, interruptions are handled, and hooks are answered."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.pause import Pause, PauseScope
from leeward.model.termination import CauseKind
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.disruption_stand_in import Disrupted
from tests.simulation.disruption_stand_in import a_fleet as a_disrupted_fleet
from tests.simulation.fleet_stand_in import SMALL, Arrival, deployment
from tests.simulation.health_stand_in import MINUTE, Clinic
from tests.simulation.upgrade_stand_in import Upgraded

HELD = 60.0  # seconds until every function has seen the switch
PAUSED, RESUMED = 700.0, 2500.0


class Operator:
    """An operator who pauses a world's cluster, or a group of it, and resumes it."""

    def __init__(self, world, *, scope=PauseScope.VOLUNTARY, group="", paused=PAUSED, resumed=RESUMED):
        self.world, self.scope, self.group = world, scope, group
        self.began = world.timeline.now()
        self.since, self.until = self.began + paused + HELD, self.began + resumed
        world.timeline.after(paused, self._pause, "the operator pauses")
        world.timeline.after(resumed, self._resume, "the operator resumes")

    @property
    def switch(self):
        return self.world.system.pauses

    def _pause(self):
        now = self.world.timeline.instant()
        pause = Pause(by="arn", why="game day", since=now, announced=now, group=self.group, scope=self.scope)
        self.switch.write(self.switch.read("blue").paused(pause))

    def _resume(self):
        self.switch.write(self.switch.read("blue").resumed(self.group, "arn", "over"))

    def requested(self, kinds):
        """When terminations with one of these causes were requested: before, during and after the pause."""
        times = [
            cause.at.timestamp()
            for record in self.world.claims.records.values()
            for cause in record.all_causes
            if cause.kind in kinds
        ]
        before = [one for one in times if one <= self.since]
        after = [one for one in times if one >= self.until]
        return len(before), len(times) - len(before) - len(after), len(after)


def test_no_disruption_begins_under_a_pause_and_it_goes_on_when_resumed():
    world = Disrupted(a_disrupted_fleet(size=6, maximum=9)).drifting()
    operator = Operator(world.world)
    world.run(1.5)
    before, during, after = operator.requested({CauseKind.DRIFTED})
    assert during == 0
    assert (before > 0, after > 0) == (True, True)


def test_no_node_of_an_upgrade_begins_under_a_pause_and_the_others_follow_when_resumed():
    upgrade = Upgraded().start(launchTemplateVersion="2")
    operator = Operator(upgrade.world, paused=400.0)
    upgrade.run(2.0)
    before, during, after = operator.requested({CauseKind.UPGRADE})
    assert (before > 0, during, before + after) == (True, 0, 6)
    assert "cluster blue is paused: game day" in "\n".join(upgrade.world.story)


def test_a_pause_of_another_group_holds_no_upgrade():
    upgrade = Upgraded().start(launchTemplateVersion="2")
    operator = Operator(upgrade.world, group="other", paused=0.0)
    upgrade.run(2.0)
    assert sum(operator.requested({CauseKind.UPGRADE})) == 6


@pytest.mark.parametrize(("group", "replaced"), [("", False), ("web", False), ("batch", True)])
def test_no_unhealthy_node_is_replaced_under_a_pause_of_its_cluster_or_group(group, replaced):
    clinic = Clinic().silence(4)
    operator = Operator(clinic.world, group=group, paused=0.0, resumed=40 * MINUTE)
    clinic.run(1.0)
    _, during, after = operator.requested({CauseKind.UNHEALTHY})
    assert (during > 0, after > 0) == (replaced, not replaced)


@pytest.mark.parametrize("kind", ["spot_warning", "scale_in"])
@pytest.mark.parametrize("scope", PauseScope)
def test_interruptions_are_handled_unless_everything_is_paused_and_hooks_are_answered(scope, kind):
    world = World(1, replace(SMALL, workloads=(deployment(),)), Faults.none(), (Arrival(at_seconds=400, kind=kind),))
    Operator(world, scope=scope, paused=100.0, resumed=5000.0)
    outcome = world.run(0.5, converge=900)
    assert outcome.arrivals == {kind: 1}
    assert bool(world.claims.records) is (scope is PauseScope.VOLUNTARY)
    waiting = [m.id for g in world.groups.values() for m in g.instances if m.lifecycle == "Terminating:Wait"]
    assert waiting == []


def test_a_pause_ends_by_itself_and_is_removed():
    world = World(1, SMALL, Faults.none(), ())
    now = datetime.fromtimestamp(world.timeline.now(), UTC)
    pause = Pause(by="arn", why="game day", since=now, announced=now, until=now + timedelta(minutes=10))
    world.system.pauses.write(world.system.pauses.read("blue").paused(pause))
    world.run(0.3)
    assert world.system.pauses.read("blue").pauses == ()
