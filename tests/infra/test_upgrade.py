"""The upgrade functions as AWS gets it: who calls its function."""

import json

import pytest

from tests.events import event
from tests.infra.event_pattern import matches

FUNCTION = "arn:aws:lambda:us-east-1:111122223333:function:leeward-upgrade"
UPGRADES = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-group-upgrade"
MANAGED = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-managed-node-group-upgrade"
RULE = "leeward-upgrade-status"


@pytest.mark.parametrize("machine", [UPGRADES, MANAGED])
def test_a_dead_upgrade_calls_it_and_one_that_ended_well_does_not(template, machine):
    rule = template.named("AWS::Events::Rule")[RULE]
    assert [target["Arn"] for target in rule["Targets"]] == [FUNCTION]
    for status, called in (("FAILED", True), ("TIMED_OUT", True), ("ABORTED", True), ("SUCCEEDED", False)):
        body = event("execution_aborted", detail__status=status, detail__stateMachineArn=machine)
        assert matches(rule["EventPattern"], json.loads(body)) is called


def test_the_rule_is_about_upgrades_alone(template):
    rule = template.named("AWS::Events::Rule")[RULE]
    assert not matches(rule["EventPattern"], json.loads(event("execution_aborted")))


def test_no_other_event_may_call_it(template):
    permissions = template.resources("AWS::Lambda::Permission").values()
    sources = {p["SourceArn"].rpartition("/")[2] for p in permissions if p["FunctionName"] == FUNCTION}
    assert sources == {RULE}
