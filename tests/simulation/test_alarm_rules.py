"""The rule about alarms finds what is started while one rings."""

from dataclasses import replace

import pytest

from leeward.model.termination import Cause, CauseKind, Status, TerminationRecord
from leeward.policy.document import DisruptionPolicy, UpdatePolicy
from leeward.upgrade.record import ControlRequest
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP, a_subject
from tests.fakes.disruptions import a_disruption
from tests.simulation.test_upgrade_rules import a_world
from tests.simulation.view_stand_in import INSTANCE


def guarded(**record):
    """A world whose policy names the alarm `errors`, with one node whose termination the upgrade has requested."""
    world, began = a_world(**{"under_way": {INSTANCE: "t.1"}, "started": 1, **record})
    cause = Cause(id=f"upgrade#{GROUP}#t.1", kind=CauseKind.UPGRADE, at=began)
    world.records[INSTANCE] = TerminationRecord(
        subject=a_subject(INSTANCE), status=Status.OPEN, attempt=1, version=1, causes=(cause,)
    )
    named = replace(
        world.policies.policies[0],
        update=UpdatePolicy(alarms=("errors",)),
        disruption=DisruptionPolicy(alarms=("errors",)),
    )
    world.policies = replace(world.policies, policies=(named,))
    return world


def broken(world, rule=Rule.ALARM):
    found = Checker().after_event(world)
    return [violation.rule for violation in found if violation.rule is rule]


@pytest.mark.parametrize(("seconds", "found"), [(29, []), (31, [Rule.ALARM])])
def test_a_node_that_is_started_30_s_after_an_alarm_is_found(seconds, found):
    world = guarded()
    assert broken(world) == []
    world.ringing = {"errors": world.now - seconds, "other": 0.0}
    assert broken(world) == found


@pytest.mark.parametrize("ends", [{"rolling_back": True}, {"control": ControlRequest.ABORT}], ids=str)
def test_what_ends_an_upgrade_may_start_while_an_alarm_rings(ends):
    world = guarded(**ends)
    world.ringing = {"errors": world.now - 600}
    assert broken(world) == []


def test_a_run_that_requests_terminations_while_an_alarm_rings_is_found():
    world = guarded(under_way={})
    world.ringing = {"errors": world.now - 600}
    run = a_disruption()
    world.disruptions = {"blue": replace(run, requested=False)}
    assert broken(world) == []
    world.disruptions = {"blue": replace(run, requested=True)}
    assert broken(world) == [Rule.ALARM]
