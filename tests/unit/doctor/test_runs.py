"""Executions that ended badly, and records on which nothing works any more."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.doctor.facts import FailedExecution
from leeward.doctor.finding import Check, State
from leeward.errors import AccessDeniedError
from leeward.model.termination import Cause, CauseKind
from leeward.upgrade.record import ControlRequest
from tests.fakes.builders import CLUSTER, GROUP, a_policy, a_subject, policies
from tests.fakes.clock import START
from tests.fakes.disruptions import a_disruption
from tests.unit.doctor.patient import NODE, Patient

HOUR = timedelta(hours=1)


def test_failures_of_the_last_day_are_counted_and_the_newest_is_explained(patient):
    machine = "leeward-node-termination"
    patient.deployment.ended[machine] = [
        FailedExecution(
            name="i-2-1", status="FAILED", at=START - HOUR, error="PodEvictionFailure", cause="pdb shop/web"
        ),
        FailedExecution(name="i-1-1", status="TIMED_OUT", at=START - 2 * HOUR),
        FailedExecution(name="i-0-1", status="FAILED", at=START - 30 * HOUR),
    ]
    found = patient.trouble(Check.EXECUTIONS)
    assert found.state is State.WARNING
    assert found.found == (
        "1 failed and 1 timed out in the last day; the newest is i-2-1 (FAILED at 2026-03-02T09:00:00Z): "
        "PodEvictionFailure: pdb shop/web"
    )
    arn = f"arn:aws:states:us-east-1:111122223333:execution:{machine}:i-2-1"
    assert found.fix == f"read its cause: aws stepfunctions describe-execution --execution-arn {arn}"


@pytest.fixture
def claimed(patient):
    """A spot interruption of an hour ago."""
    cause = Cause(id="event", kind=CauseKind.SPOT_INTERRUPTION, at=START - HOUR)
    patient.system.claims.claim(a_subject(NODE), cause, START - HOUR)
    return patient


def test_an_open_record_without_an_execution(claimed):
    found = claimed.trouble(Check.RECORD)
    assert (found.object, found.state) == (f"instance {NODE}", State.FAILED)
    assert found.found == "its termination is open since 2026-03-02T09:00:00Z and no execution works on it"


def test_the_next_sweep_is_waited_for(claimed):
    claimed.system.claims.note(NODE, times={"draining": START - timedelta(minutes=5)})
    assert claimed.troubles() == []


def test_one_that_rests_after_a_failure_is_in_order(claimed):
    claimed.system.claims.note(NODE, times={"retry": START + timedelta(minutes=5)})
    assert claimed.troubles() == []


def test_maintenance_that_lies_ahead_waits_for_budgets(patient):
    deadline = START + timedelta(days=5)
    cause = Cause(id="health", kind=CauseKind.SCHEDULED_CHANGE, at=START - HOUR, deadline=deadline)
    patient.system.claims.claim(a_subject(NODE), cause, START - HOUR)
    assert patient.troubles() == []


def test_maintenance_whose_time_has_come_does_not_wait(patient):
    deadline = START - timedelta(minutes=1)
    cause = Cause(id="health", kind=CauseKind.SCHEDULED_CHANGE, at=START - HOUR, deadline=deadline)
    patient.system.claims.claim(a_subject(NODE), cause, START - HOUR)
    assert patient.trouble(Check.RECORD).state is State.FAILED


def test_one_that_an_execution_leads_out_may_take_its_time(claimed):
    claimed.system.executions.open.add(f"{NODE}-1")
    claimed.system.claims.note(NODE, times={"draining": START - timedelta(minutes=50)})
    assert claimed.troubles() == []


def test_one_that_takes_longer_than_its_policy_allows_names_who_blocks(claimed):
    claimed.system.executions.open.add(f"{NODE}-1")
    claimed.system.claims.note_attempt(NODE, 1, blocked_by=["pdb shop/web"])
    found = claimed.trouble(Check.RECORD)
    assert (found.state, "blocked by pdb shop/web" in found.found) == (State.WARNING, True)
    assert found.fix == f"leeward blockers node-{NODE} --cluster {CLUSTER}"


def test_a_policy_with_a_longer_drain_is_given_longer():
    web = a_policy()
    patient = Patient(written=policies(replace(web, drain=replace(web.drain, timeout=4 * HOUR))))
    cause = Cause(id="event", kind=CauseKind.MANUAL, at=START - HOUR)
    patient.system.claims.claim(a_subject(NODE), cause, START - HOUR)
    patient.system.executions.open.add(f"{NODE}-1")
    assert patient.troubles() == []


def test_records_that_may_not_be_read(patient):
    patient.system.claims.fail("open_instances", AccessDeniedError("dynamodb:Query: denied"))
    assert patient.trouble(Check.RECORD).fix == "allow yourself dynamodb:Query and dynamodb:BatchGetItem"


def test_a_round_without_an_execution(patient):
    record = a_disruption(began=START - HOUR, retry=None, execution="blue-3-1")
    patient.system.disruptions.records[CLUSTER] = record
    assert patient.trouble(Check.DISRUPTION).state is State.FAILED
    patient.system.disruptions.records[CLUSTER] = replace(record, retry=START + timedelta(minutes=1))
    assert patient.troubles() == []
    patient.system.disruption_executions.open.add("blue-3-1")
    patient.system.disruptions.records[CLUSTER] = replace(record, began=START - 30 * HOUR)
    assert patient.trouble(Check.DISRUPTION).state is State.WARNING
    patient.system.disruptions.records[CLUSTER] = replace(record, ended=START)
    assert patient.troubles() == []


@pytest.fixture
def upgraded(patient):
    """An upgrade of an hour ago, held by an execution that runs."""
    from tests.unit.doctor.upgrades import an_upgrade

    patient.system.upgrades.records[GROUP] = an_upgrade(began=START - HOUR, execution="web-a-1")
    patient.system.upgrade_executions.open.add("web-a-1")
    return patient


def test_an_upgrade_that_runs_or_has_ended_is_in_order(upgraded):
    assert [found.found for found in upgraded.findings() if found.check is Check.UPGRADE] == [
        "execution web-a-1 works on it"
    ]
    record = upgraded.system.upgrades.records[GROUP]
    upgraded.system.upgrades.records[GROUP] = replace(record, ended=START)
    assert upgraded.troubles() == []


def test_an_upgrade_on_which_nothing_works(upgraded):
    upgraded.system.upgrade_executions.open.clear()
    found = upgraded.trouble(Check.UPGRADE)
    assert (found.state, found.fix) == (
        State.WARNING,
        f"leeward upgrade start {GROUP} --cluster {CLUSTER}, or abort",
    )
    record = upgraded.system.upgrades.records[GROUP]
    upgraded.system.upgrades.records[GROUP] = replace(record, control=ControlRequest.PAUSE)
    assert upgraded.trouble(Check.UPGRADE).found == "its upgrade is paused"
