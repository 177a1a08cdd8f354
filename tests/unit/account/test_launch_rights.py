"""Launch rights are proven by launches: kept, broken or unproven, on AWS alone."""

from dataclasses import replace
from types import SimpleNamespace

from account_test.checks import iam, launch_rights
from account_test.judge import Finding, unproven
from account_test.results import Outcome, Result
from tests.unit.account.builders import a_run, a_termination, changed, kept

UPGRADED = changed(play="self-managed upgrade", terminations=[], machine="SUCCEEDED")


def judged(*recordings, **run):
    return launch_rights.check(SimpleNamespace(run=a_run(**run)), recordings)


def test_a_launched_instance_and_an_upgrade_show_the_rights():
    assert judged(kept(), UPGRADED).outcome is Outcome.KEPT


def test_on_a_local_endpoint_nothing_is_shown():
    assert judged(kept(), UPGRADED, endpoint="http://127.0.0.1:1").outcome is Outcome.UNPROVEN


def test_what_was_not_played_is_unproven():
    result = judged()
    assert [one.unproven for one in result.findings] == [True, True]
    assert result.outcome is Outcome.UNPROVEN


def test_a_denied_launch_and_a_denied_point_are_broken():
    refused = a_termination(launched=(), replacement="AccessDenied: ec2:CreateFleet on security-group")
    assert "CreateFleet" in judged(changed(terminations=[refused])).sentence
    denied = replace(UPGRADED, machine="FAILED", machine_error="AccessDenied You are not authorized to use launch")
    assert judged(kept(), denied).outcome is Outcome.BROKEN


def test_a_launch_without_capacity_shows_nothing():
    short = a_termination(launched=(), replacement="InsufficientInstanceCapacity")
    result = judged(changed(terminations=[short]), UPGRADED)
    assert result.outcome is Outcome.UNPROVEN
    assert "InsufficientInstanceCapacity" in result.sentence


def test_launch_rows_of_the_simulation_are_kept_only_where_the_launches_have_shown_them():
    simulated = Result(name=iam.NAME, proves="x", findings=[unproven("drain may launch", "simulated")])
    assert launch_rights.settled([simulated, judged()])[0].outcome is Outcome.UNPROVEN
    settled = launch_rights.settled([simulated, judged(kept(), UPGRADED)])[0]
    assert settled.findings == [Finding(promise="drain may launch", kept=True, found="shown by the step launch rights")]
    assert settled.outcome is Outcome.KEPT
