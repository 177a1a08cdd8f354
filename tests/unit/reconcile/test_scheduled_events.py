"""EC2's scheduled events are claimed also where AWS Health's message was lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.reboot import Reboot, RebootBy
from leeward.model.scheduled_event import ScheduledEvent
from leeward.model.termination import CauseKind
from leeward.policy.document import InterruptionPolicy
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import a_group, a_node, a_policy, an_instance, pausing, policies
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem
from tests.unit.interruption.test_decide import a_world, decided

I = "i-0abc"  # noqa: E741  (the instance of every story)
MINUTE = timedelta(minutes=1)
DATE = START + timedelta(hours=3)


def an_event(code="system-reboot", *, starts=DATE, description="The instance is scheduled for a reboot"):
    return ScheduledEvent(id="instance-event-1", instance=I, code=code, starts=starts, description=description)


def a_system(*events, written=None, **policy):
    given = replace(a_policy(), interruption=InterruptionPolicy(**policy))
    system = FakeSystem(
        instances=[an_instance(I, spot=False)],
        groups=[a_group("web-a", I)],
        nodes=[a_node(I)],
        written=written or policies(given),
    )
    system.instances.scheduled[I] = events
    return system


def claimed(system):
    assert reconcile_once(system.ports).errors == []
    return system.claims.records.get(I)


@pytest.mark.parametrize(
    "code", ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"]
)
def test_every_kind_of_event_is_claimed_with_its_date_and_once(code):
    system = a_system(an_event(code))
    record = claimed(system)
    assert [(cause.kind, cause.deadline) for cause in record.causes] == [(CauseKind.SCHEDULED_CHANGE, DATE)]
    assert record.reboot is None
    assert system.executions.started == ["i-0abc-1"]
    assert claimed(system).version == record.version


@pytest.mark.parametrize("prefix", ["[Completed]", "[Canceled]"])
def test_an_event_that_is_over_claims_nothing(prefix):
    assert claimed(a_system(an_event(description=f"{prefix} The instance is scheduled for a reboot"))) is None


def test_an_event_whose_date_has_passed_claims_nothing():
    assert claimed(a_system(an_event(starts=START - MINUTE))) is None


def test_maintenance_far_ahead_waits_for_its_budgets():
    system = a_system(an_event("instance-retirement", starts=START + timedelta(days=10)))
    reconcile_once(system.ports)
    assert I in system.claims.records
    assert system.executions.started == []


def test_the_message_of_aws_health_and_the_event_of_ec2_are_one_cause():
    system = a_system()
    world = replace(a_world(), confirmed=frozenset({I}))
    (node, *_) = decided("scheduled_change", world).nodes
    system.claims.claim(node.subject, node.cause, START)
    system.instances.scheduled[I] = (an_event(starts=node.cause.deadline),)
    system.clock.advance(seconds=(node.cause.deadline - timedelta(hours=2) - system.clock.now()).total_seconds())
    assert len(claimed(system).causes) == 1


@pytest.mark.parametrize(
    "written",
    [pausing(policies(), scope="all"), policies(a_policy(enabled=False)), policies(interruption=False)],
    ids=["paused", "switched off by the policy", "switched off in the cluster"],
)
def test_a_group_whose_interruptions_are_left_alone_stays(written):
    system = a_system(an_event(), written=written)
    assert claimed(system) is None


def test_an_instance_of_no_selected_group_stays():
    assert claimed(a_system(an_event(), written=policies(a_policy("batch", "batch-*")))) is None


def test_a_reboot_that_the_policy_waits_for_is_claimed_shortly_before_its_date():
    """drain.timeout and five minutes before."""
    system = a_system(an_event(), waits_for_reboot=True)
    system.clock.advance(seconds=(DATE - 20 * MINUTE - START).total_seconds() - 1)
    assert claimed(system) is None
    system.clock.advance(seconds=1)
    assert claimed(system).reboot == Reboot(by=RebootBy.EC2)


def test_a_policy_that_waits_for_reboots_still_replaces_for_a_retirement():
    assert claimed(a_system(an_event("instance-retirement"), waits_for_reboot=True)).reboot is None
