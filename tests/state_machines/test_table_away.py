"""The table refuses every call while EC2 takes an instance: its pods leave without a record."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AwsUnavailableError, ThrottledError
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from leeward.policy.document import DrainPolicy
from leeward.termination.requests import start_unclaimed
from leeward.termination.run import Run
from tests.fakes.builders import a_subject
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, ended
from tests.state_machines.walker import KNOWN, Walker

TAKEN = START + timedelta(minutes=2)
SUBJECT = replace(a_subject(I), policy="web")
METHODS = ("read", "claim", "note", "note_attempt", "saw", "begin_attempt", "close")
ERRORS = pytest.mark.parametrize("error", [ThrottledError("slow down"), AwsUnavailableError("dynamodb: 500")])


def away(system, error):
    for method in METHODS:
        system.claims.fail(method, error)


def unclaimed(system, *, hooks=()):
    """The input of the execution that fn interruption starts when its claim is refused."""
    start_unclaimed(SUBJECT, TAKEN, system.ports.executions)
    return {"instance": I, "attempt": 1, "v": 1, **system.executions.unclaimed[f"{I}-1"]}


def step(system, name, document):
    given = {"step": name, "run": document, "execution": f"{I}-1"}
    return KNOWN[name](Run.from_json(document), given, system.ports).to_json()


def claim(system):
    cause = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, deadline=TAKEN)
    return system.claims.claim(SUBJECT, cause, system.clock.now())


@ERRORS
def test_the_pods_are_evicted_from_the_input_alone_and_each_once(error):
    system = a_system(pods=[a_pod("web-1", grace=30), a_pod("web-2", grace=30)])
    system.kubernetes.stuck |= {"shop/web-1", "shop/web-2"}
    document = unclaimed(system)
    away(system, error)
    run = step(system, "claim", document)
    assert run["next"] == "drain"
    for _ in range(3):
        with pytest.raises(type(error)):
            step(system, "drain", run)
        system.clock.advance(seconds=10)
    assert sorted(system.kubernetes.done) == ["evict shop/web-1", "evict shop/web-2"]
    assert system.kubernetes.by_name[f"node-{I}"].tainted


def test_a_budget_is_respected_and_nothing_is_deleted_by_force():
    drain = DrainPolicy(force=True, termination_grace_period=timedelta(seconds=1))
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=drain)
    document = unclaimed(system)
    away(system, ThrottledError("slow down"))
    system.clock.advance(seconds=110)
    with pytest.raises(ThrottledError):
        step(system, "drain", step(system, "claim", document))
    assert system.kubernetes.done == []


def test_an_execution_without_a_record_goes_on_with_it_once_it_is_claimed():
    system = a_system(pods=[a_pod(grace=5)])
    run = step(system, "claim", unclaimed(system))
    with pytest.raises(ThrottledError, match="not claimed yet"):
        step(system, "drain", run)
    claim(system)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)


@ERRORS
def test_a_drain_whose_table_goes_away_in_the_middle_evicts_the_pods_that_come_late(error):
    system = a_system(pods=[a_pod(grace=30)])
    system.kubernetes.stuck.add("shop/web-1")
    claim(system)
    run = step(system, "drain", step(system, "claim", {"instance": I, "attempt": 1, "v": 1}))
    run = step(system, "drain", step(system, "replace", run) if run["next"] == "replace" else run)
    away(system, error)
    system.kubernetes.put_pod(a_pod("web-2"))
    with pytest.raises(type(error)):
        step(system, "drain", run)
    assert "evict shop/web-2" in system.kubernetes.done


@ERRORS
def test_a_drain_whose_first_note_is_refused_evicts_all_the_same(error):
    """The steps before it have passed the record on, so its first call of the table is a write."""
    system = a_system(pods=[a_pod()])
    claim(system)
    run = step(system, "claim", {"instance": I, "attempt": 1, "v": 1})
    run = step(system, "replace", run) if run["next"] == "replace" else run
    assert "record" in run
    away(system, error)
    with pytest.raises(type(error)):
        step(system, "drain", run)
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_drain_for_another_cause_evicts_nothing_without_its_record():
    system = a_system(pods=[a_pod()])
    system.claims.claim(SUBJECT, Cause(id="event-1", kind=CauseKind.UPGRADE, at=START), START)
    run = step(system, "claim", {"instance": I, "attempt": 1, "v": 1})
    away(system, ThrottledError("slow down"))
    with pytest.raises(ThrottledError):
        step(system, "drain", run)
    assert system.kubernetes.done == []


def test_an_instance_that_was_never_claimed_is_given_up_minutes_after_ec2_took_it():
    system = a_system()
    run = step(system, "claim", unclaimed(system))
    system.clock.advance(seconds=600)
    assert step(system, "drain", run)["next"] == "hand-over"


def test_an_execution_hands_over_where_the_record_is_in_another_attempt():
    system = a_system(pods=[a_pod()])
    document = unclaimed(system)
    claim(system)
    system.claims.begin_attempt(I, 1)
    run = {**Run.from_json(document).to_json(), "next": "drain", "taken": document["taken"]}
    assert step(system, "drain", run)["next"] == "hand-over"
    assert system.kubernetes.done == []


def test_a_node_that_ec2_takes_in_half_an_hour_waits_for_the_table():
    system = a_system(pods=[a_pod()])
    start_unclaimed(SUBJECT, START + timedelta(minutes=30), system.ports.executions)
    document = {"instance": I, "attempt": 1, "v": 1, **system.executions.unclaimed[f"{I}-1"]}
    away(system, ThrottledError("slow down"))
    with pytest.raises(ThrottledError):
        step(system, "drain", step(system, "claim", document))
    assert system.kubernetes.done == []
