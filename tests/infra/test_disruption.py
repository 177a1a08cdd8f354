"""The disruption functions as AWS gets it: when fn disruption-planner is called, and by whom."""

import json

from infra.disruption import PLAN_EVERY
from simulation.system import PLAN_EVERY as SIMULATED
from tests.events import event
from tests.infra.event_pattern import matches

DISRUPTION_PLANNER = "arn:aws:lambda:us-east-1:111122223333:function:leeward-disruption-planner"
DISRUPTIONS = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-disruption"


def test_it_decides_every_five_minutes_in_the_cloud_and_in_the_simulation(template):
    rule = template.named("AWS::Events::Rule")["leeward-disruption-planner-schedule"]
    assert rule["ScheduleExpression"] == f"rate({PLAN_EVERY} minutes)"
    assert SIMULATED == PLAN_EVERY * 60
    assert [target["Arn"] for target in rule["Targets"]] == [DISRUPTION_PLANNER]


def test_a_dead_round_calls_it_and_one_that_ended_well_does_not(template):
    rule = template.named("AWS::Events::Rule")["leeward-disruption-status"]
    assert [target["Arn"] for target in rule["Targets"]] == [DISRUPTION_PLANNER]
    for status, called in (("FAILED", True), ("TIMED_OUT", True), ("ABORTED", True), ("SUCCEEDED", False)):
        body = event("execution_aborted", detail__status=status, detail__stateMachineArn=DISRUPTIONS)
        assert matches(rule["EventPattern"], json.loads(body)) is called


def test_the_rule_is_about_rounds_alone(template):
    rule = template.named("AWS::Events::Rule")["leeward-disruption-status"]
    assert not matches(rule["EventPattern"], json.loads(event("execution_aborted")))


def test_only_its_schedule_and_the_rule_may_call_it(template):
    permissions = template.resources("AWS::Lambda::Permission").values()
    sources = {p["SourceArn"].rpartition("/")[2] for p in permissions if p["FunctionName"] == DISRUPTION_PLANNER}
    assert sources == {"leeward-disruption-planner-schedule", "leeward-disruption-status"}


def test_who_decides_may_neither_launch_nor_change_a_group(template):
    role = template.named("AWS::Lambda::Function")["leeward-disruption-planner"]["Role"]
    actions = {action for statement in template.statements(role) for action in statement.actions}
    changing = {action for action in actions if action.startswith("autoscaling:") and "Describe" not in action}
    assert changing == set()
    assert "dynamodb:UpdateItem" not in actions  # no termination is claimed either
