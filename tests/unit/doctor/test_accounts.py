"""Clusters of other accounts: each function says whether it can assume its role there."""

import json
from dataclasses import replace

import pytest

from leeward.doctor import expected
from leeward.doctor.finding import Check, State
from leeward.errors import AccessDeniedError
from tests.fakes.builders import CLUSTER

EAST = {
    "name": "east",
    "account": "222233334444",
    "region": "eu-west-1",
    "memberRole": "arn:aws:iam::222233334444:role/leeward-member",
    "externalId": "leeward-east-7319",
}


def serving(deployment, cluster):
    """The deployment, whose functions name a cluster of another account as well, and can act there."""
    for name, function in deployment.functions.items():
        clusters = [*json.loads(function.environment["CLUSTERS"]), cluster]
        given = {**function.environment, "CLUSTERS": json.dumps(clusters)}
        deployment.functions[name] = replace(function, environment=given)
    deployment.acting[cluster["name"]] = ""
    return deployment


@pytest.fixture
def patient(patient):
    """A sound deployment that serves a cluster of another account as well."""
    serving(patient.deployment, EAST)
    return patient


def about_roles(patient):
    return [found for found in patient.findings() if found.check is Check.MEMBER_ROLE]


def test_a_deployment_of_one_account_calls_no_function():
    from tests.unit.doctor.patient import Patient

    sound = Patient()
    assert about_roles(sound) == []
    assert sound.deployment.asked["accounts"] == 0


def test_every_function_that_acts_is_asked_and_all_is_in_order(patient):
    found = about_roles(patient)
    assert {one.object for one in found} == {
        f"role leeward-member-{name.removeprefix('leeward-')} in 222233334444/eu-west-1" for name in expected.ACTING
    }
    assert patient.troubles() == []


def test_the_cluster_itself_is_not_looked_for_in_the_caller_s_account(patient):
    named = {one.object for one in patient.findings() if one.check is Check.CLUSTER}
    assert named == {f"cluster {CLUSTER}"}


def test_a_role_that_one_function_cannot_assume_is_named_with_the_fix(patient):
    patient.deployment.refused["leeward-drain"] = {"east": "sts:AssumeRole on …-drain: AccessDenied: no"}
    trouble = patient.trouble(Check.MEMBER_ROLE)
    assert (trouble.state, trouble.object) == (State.FAILED, "role leeward-member-drain in 222233334444/eu-west-1")
    assert trouble.found == "sts:AssumeRole on …-drain: AccessDenied: no"
    assert "cdk deploy Leeward-member-222233334444-eu-west-1 with credentials of account 222233334444" in trouble.fix
    assert "the external id leeward-east-7319" in trouble.fix


def test_a_function_that_does_not_know_the_cluster_is_older_than_the_settings(patient):
    del patient.deployment.acting["east"]
    assert {one.fix for one in patient.troubles()} == {"cdk deploy Leeward"}


def test_a_caller_who_may_call_no_function_learns_which_right_is_missing(patient):
    patient.deployment.fail("accounts", AccessDeniedError("lambda:InvokeFunction on leeward-drain"))
    found = about_roles(patient)
    assert {one.state for one in found} == {State.UNKNOWN}
    assert {one.fix for one in found} == {"allow yourself lambda:InvokeFunction"}
