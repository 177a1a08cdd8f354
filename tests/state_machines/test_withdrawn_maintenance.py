"""Maintenance that AWS takes back while its drain is under way, or after a drain that failed."""

from datetime import timedelta

import pytest

from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import CauseKind, Outcome, Status
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import GROUP, a_group
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim
from tests.state_machines.walker import Walker

DATE = START + timedelta(hours=15)
LISTED = ScheduledEvent(id="instance-event-7", instance=I, code="instance-retirement", starts=DATE)


def maintained(**scene):
    system = a_system(group=a_group(GROUP, I), **scene)
    system.instances.scheduled[I] = (LISTED,)
    reconcile_once(system.ports)
    return system


def taken_back(system, state, *, at):
    """A walk in whose state `state`, reached for the time `at`, EC2 lists the event no more, at two looks."""
    entered = []

    def before(name, _):
        entered.append(name)
        if (name, entered.count(state)) == (state, at):
            system.instances.scheduled[I] = ()
            for _ in range(2):
                system.clock.advance(minutes=1)
                assert reconcile_once(system.ports).errors == []

    return Walker(system, before=before).run(I)


@pytest.mark.parametrize(("state", "at"), [("AskForReplacement", 1), ("Drain", 1), ("Drain", 2), ("Terminate", 1)])
def test_a_drain_that_is_under_way_ends_and_its_node_returns_to_service(state, at):
    system = maintained(pods=[a_pod(grace=30)])
    walk = taken_back(system, state, at=at)
    node, record = system.kubernetes.by_name[f"node-{I}"], system.claims.records[I]
    assert walk.ended == "Cancelled"
    assert (node.tainted, node.unschedulable, system.groups.terminated) == (False, False, [])
    assert (record.status, record.outcome) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    assert [event.reason for event in system.kubernetes.events][-1] == "TerminationCancelled"


def test_no_pod_is_evicted_once_it_is_taken_back():
    system = maintained(pods=[a_pod(grace=30)])
    taken_back(system, "Drain", at=1)
    assert not [line for line in system.kubernetes.done if line.startswith("evict")]


def test_once_the_group_was_asked_the_instance_ends():
    system = maintained(pods=[a_pod(grace=5)])
    walk = taken_back(system, "AnswerHooks", at=1)
    assert (walk.ended, len(system.groups.terminated)) == ("Terminated", 1)


def test_a_drain_that_a_warning_has_joined_goes_on_for_that():
    system = maintained(pods=[a_pod(grace=30)])
    claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(minutes=6), id_="warning")
    assert taken_back(system, "Drain", at=1).ended == "Terminated"


def test_a_drain_that_failed_is_not_tried_again():
    system = maintained(pods=[a_pod()], budgets=[a_budget(0)])
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    system.instances.scheduled[I] = ()
    evicted = list(system.kubernetes.done)
    for _ in range(30):
        system.clock.advance(minutes=1)
        assert reconcile_once(system.ports).errors == []
        for name in sorted(system.executions.open):
            Walker(system).run(I, int(name.rpartition("-")[2]))
    assert I not in system.groups.terminated
    assert [line for line in system.kubernetes.done if line.startswith("evict")] == [
        line for line in evicted if line.startswith("evict")
    ]
    assert not system.kubernetes.by_name[f"node-{I}"].tainted
    assert system.claims.records[I].status is Status.CLOSED
