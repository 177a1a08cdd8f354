"""EC2's scheduled events are claimed also where AWS Health's message was lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import RecordChangedError
from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, Status
from leeward.policy.document import Budget, DisruptionPolicy, InterruptionPolicy
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import a_group, a_node, a_policy, a_subject, an_instance, pausing, policies
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


@pytest.mark.parametrize("earlier", [DATE - timedelta(days=9), None], ids=["maintenance of another date", "a warning"])
def test_a_node_that_was_returned_to_service_is_claimed_for_the_next_maintenance(earlier):
    system = a_system(an_event("instance-retirement"))
    kind = CauseKind.SCHEDULED_CHANGE if earlier else CauseKind.SPOT_INTERRUPTION
    system.claims.claim(a_subject(I), Cause(id="earlier", kind=kind, at=START, deadline=earlier), START)
    system.claims.close(I, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=START)
    record = claimed(system)
    assert (record.status, [cause.deadline for cause in record.causes]) == (Status.OPEN, [DATE])


def test_maintenance_far_ahead_waits_for_its_budgets():
    system = a_system(an_event("instance-retirement", starts=START + timedelta(days=10)))
    reconcile_once(system.ports)
    assert I in system.claims.records
    assert system.executions.started == []


def retirement(starts, description="degraded hardware"):
    return an_event("instance-retirement", starts=starts, description=description)


def allowing(nodes):
    budgets = (Budget(nodes=nodes, percent=False),)
    return policies(replace(a_policy(), disruption=DisruptionPolicy(budgets=budgets)))


def waiting(*, starts=START + timedelta(days=10)):
    """Maintenance far ahead that waits for a budget."""
    system = a_system(retirement(starts), written=allowing(0))
    passes(system, 2)
    assert (system.claims.records[I].status, system.executions.started) == (Status.OPEN, [])
    return system


def passes(system, count):
    withdrawn = []
    for _ in range(count):
        result = reconcile_once(system.ports)
        assert result.errors == []
        withdrawn.append(result.withdrawn)
        system.clock.advance(minutes=1)
    return withdrawn


OVER = {
    "canceled": (retirement(START + timedelta(days=10), "[Canceled] degraded hardware"),),
    "completed": (retirement(START + timedelta(days=10), "[Completed] degraded hardware"),),
    "listed no more": (),
}


@pytest.mark.parametrize("listed", OVER.values(), ids=OVER)
def test_maintenance_that_aws_takes_back_while_it_waits_ends_no_node(listed):
    system = waiting()
    system.instances.scheduled[I] = listed
    assert passes(system, 3) == [[], [I], []]
    record = system.claims.records[I]
    assert (record.status, record.outcome) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    system.clusters.policies_of["blue"] = allowing(1)
    passes(system, 2)
    assert system.executions.started == []
    (event,) = system.kubernetes.events
    assert (event.reason, event.warning) == ("TerminationCancelled", False)


def test_a_list_that_lacks_the_maintenance_once_changes_nothing():
    system = waiting()
    listed, system.instances.scheduled[I] = system.instances.scheduled[I], ()
    assert passes(system, 1) == [[]]
    system.instances.scheduled[I] = listed
    assert passes(system, 15) == [[]] * 15
    system.instances.scheduled[I] = ()
    assert passes(system, 1) == [[]]


def test_a_schedule_that_fires_twice_is_no_second_look():
    system = waiting()
    system.instances.scheduled[I] = ()
    for _ in range(3):
        assert reconcile_once(system.ports).withdrawn == []
        system.clock.advance(seconds=5)


def test_maintenance_that_was_dropped_and_is_listed_again_is_claimed_again():
    system = waiting()
    listed, system.instances.scheduled[I] = system.instances.scheduled[I], ()
    passes(system, 2)
    system.instances.scheduled[I] = listed
    passes(system, 1)
    record = system.claims.records[I]
    assert (record.status, [cause.withdrawn for cause in record.causes]) == (Status.OPEN, [False])


def test_maintenance_that_is_moved_waits_for_its_new_date_alone():
    system, moved = waiting(), START + timedelta(days=20)
    system.instances.scheduled[I] = (retirement(moved),)
    passes(system, 2)
    record = system.claims.records[I]
    assert (record.status, [cause.deadline for cause in record.causes]) == (Status.OPEN, [moved])


def test_what_another_cause_requests_is_not_cancelled():
    system = waiting()
    other = Cause(id="expired", kind=CauseKind.EXPIRED, at=START, reason="older than its policy allows")
    system.claims.claim(system.claims.records[I].subject, other, START)
    system.instances.scheduled[I] = ()
    passes(system, 3)
    record = system.claims.records[I]
    assert (record.status, record.causes) == (Status.OPEN, (other,))


def test_of_an_instance_that_does_not_run_ec2_lists_nothing_and_nothing_follows():
    system = waiting()
    system.instances.set_state(I, "stopped")
    system.instances.scheduled[I] = ()
    assert passes(system, 3) == [[]] * 3


def test_maintenance_that_aws_health_announced_ends_with_ec2s_list():
    """A Health event that is closed is listed no more; its message is not needed."""
    system = a_system(written=allowing(0))
    world = replace(a_world(), confirmed=frozenset({I}))
    (node, *_) = decided("scheduled_change", world).nodes
    system.claims.claim(node.subject, node.cause, START)
    system.instances.scheduled[I] = (retirement(node.cause.deadline),)
    passes(system, 2)
    assert system.claims.records[I].causes == (node.cause,)
    system.instances.scheduled[I] = ()
    assert passes(system, 2) == [[], [I]]
    assert system.claims.records[I].causes == ()  # the run that drains the node cancels itself


def test_a_cause_that_joins_while_the_record_is_closed_keeps_it_open():
    system = waiting()
    system.instances.scheduled[I] = ()
    passes(system, 1)
    system.claims.fail("close", RecordChangedError("a cause has joined"), times=1)
    assert reconcile_once(system.ports).errors != []
    assert system.claims.records[I].status is Status.OPEN
    system.clock.advance(minutes=1)
    reconcile_once(system.ports)
    assert system.executions.started == ["i-0abc-1"]  # the run finds no cause, and closes the record


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
