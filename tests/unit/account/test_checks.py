"""What is asked of IAM and of TestState, from the deployed documents and from an execution's history."""

from types import SimpleNamespace

import pytest

from account_test.checks import iam, simulation, states
from account_test.errors import NotServedError
from account_test.preflight import sender_of
from account_test.results import Outcome
from infra.permissions import PERMISSIONS
from tests.unit.account.builders import a_run

TAGGED = {
    "Action": ["autoscaling:LaunchInstances", "autoscaling:PutLifecycleHook"],
    "Resource": "arn:aws:autoscaling:eu-west-1:111122223333:autoScalingGroup:*",
    "Condition": {"StringEquals": {"aws:ResourceTag/eks:cluster-name": ["blue"]}},
}
FACTS = {
    "Action": "dynamodb:BatchGetItem",
    "Resource": ["arn:t"],
    "Condition": {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["facts#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    },
}
ITSELF = {"Action": "ec2:X", "Resource": "*", "Condition": {"ArnNotEquals": {"lambda:SourceFunctionArn": "arn:f"}}}


def test_a_row_is_asked_under_its_condition_and_beside_it():
    wanted = {"autoscaling:LaunchInstances", "dynamodb:BatchGetItem", "ec2:X"}
    groups, facts, itself = iam.rows("drain", [TAGGED, FACTS, ITSELF], wanted)
    assert groups.actions == ("autoscaling:LaunchInstances",)
    assert groups.resources == (f"{TAGGED['Resource'][:-1]}{iam.SAMPLE}",)
    key = {"ContextKeyName": "aws:ResourceTag/eks:cluster-name", "ContextKeyType": "string"}
    assert groups.context == ({**key, "ContextKeyValues": ["blue"]},)
    assert groups.beside == ({**key, "ContextKeyValues": ["not-blue"]},)
    assert len(facts.context) == 1
    assert (facts.context[0]["ContextKeyType"], facts.context[0]["ContextKeyValues"]) == (
        "stringList",
        [f"facts#{iam.SAMPLE}"],
    )
    assert (itself.context[0]["ContextKeyValues"], itself.beside[0]["ContextKeyValues"]) == (["not-arn:f"], ["arn:f"])


class FakeIam:
    """Evaluates `allowed`: (action, values of the context) that are allowed; everything else is denied."""

    def __init__(self, statements, decide, denied=()):
        self.statements, self.decide, self.denied = statements, decide, denied

    def list_role_policies(self, **_):
        return {"PolicyNames": ["leeward"]}

    def get_role_policy(self, **_):
        return {"PolicyDocument": {"Statement": self.statements}}

    def list_attached_role_policies(self, **_):
        return {"AttachedPolicies": []}

    def simulate_custom_policy(self, **asked):
        return self.simulate_principal_policy(**asked)

    def simulate_principal_policy(self, **asked):
        values = [value for entry in asked["ContextEntries"] for value in entry["ContextKeyValues"]]
        resources = asked.get("ResourceArns", ["*"])
        assert len(asked["ActionNames"]) * len(resources) <= simulation.MOST_RESULTS
        return {"EvaluationResults": [self._evaluated(action, values, resources) for action in asked["ActionNames"]]}

    def _evaluated(self, action, values, resources):
        good = {one: self.decide(action, values) and one not in self.denied for one in resources}
        decided = {one: "allowed" if kept else "implicitDeny" for one, kept in good.items()}
        return {
            "EvalActionName": action,
            "EvalDecision": "allowed" if all(good.values()) else "implicitDeny",
            "ResourceSpecificResults": [
                {"EvalResourceName": one, "EvalResourceDecision": decision} for one, decision in decided.items()
            ],
        }


def asked(statements, decide, denied=()):
    fake = FakeIam(statements, decide, denied)
    functions = SimpleNamespace(get_function_configuration=lambda **_: {"Role": "arn:aws:iam::1:role/r"})
    machines = SimpleNamespace(describe_state_machine=lambda **_: {"roleArn": "arn:aws:iam::1:role/m"})
    clients = {"iam": fake, "lambda": functions, "stepfunctions": machines}
    return iam.check(SimpleNamespace(run=a_run(), aws=clients.__getitem__))


def whole():
    """One statement that holds every row of every function, one of them under a condition."""
    actions = sorted(
        {p.action for rows in (*PERMISSIONS.values(), *iam.MACHINES.values()) for p in rows}
        | {"logs:CreateLogStream", "logs:PutLogEvents"}
    )
    conditional = [one for one in TAGGED["Action"] if one in actions]
    plain = {"Action": [one for one in actions if one not in conditional], "Resource": "*"}
    return [plain, {**TAGGED, "Action": conditional}]


def honest(action, values):
    if action == simulation.NEVER:
        return False
    if action == "ec2:StopInstances":
        return values == ["yes"]
    return action not in TAGGED["Action"] or values == ["blue"]


def test_an_iam_that_evaluates_as_the_table_says_keeps_every_promise():
    result = asked(whole(), honest)
    shown = [one for one in result.findings if not one.unproven]
    assert len(shown) == len(PERMISSIONS) + len(iam.MACHINES)
    assert all(one.kept for one in shown), result.sentence


def test_launch_rights_that_the_simulator_allows_are_unproven_and_so_is_the_step():
    result = asked(whole(), honest)
    unproven = {one.promise for one in result.findings if one.unproven}
    launching = {name for name, rows in PERMISSIONS.items() if any(row.action == iam.LAUNCHES for row in rows)}
    assert unproven == {f"{name} may launch" for name in launching}
    assert "drain may launch" in unproven
    assert result.outcome is Outcome.UNPROVEN


def test_launch_rights_that_the_simulator_denies_are_broken():
    result = asked(whole(), lambda a, v: honest(a, v) and a != "ec2:CreateFleet")
    assert "drain may launch: ec2:CreateFleet implicitDeny" in result.sentence
    assert result.outcome is Outcome.BROKEN


def test_a_row_under_a_key_that_ec2_alone_knows_is_unproven():
    own = {"StringEquals": {"ec2:Vpc": "vpc-1"}}
    plain, tagged = whole()
    plain["Action"].remove("ec2:DescribeInstances")
    held = {"Action": "ec2:DescribeInstances", "Resource": "*", "Condition": own}
    result = asked(
        [plain, tagged, held], lambda a, v: honest(a, v) and (a != "ec2:DescribeInstances" or v == ["vpc-1"])
    )
    assert any(one.unproven and "ec2:Vpc" in one.found for one in result.findings)


def test_every_resource_of_a_statement_is_simulated():
    """One of many resources that is denied breaks the promise, whichever place it has in the statement."""
    many = [f"arn:aws:ssm:eu-west-1:111122223333:parameter/p{number}" for number in range(60)]
    plain, tagged = whole()
    result = asked([{**plain, "Resource": many}, tagged], honest, denied=(many[59],))
    broken = [one for one in result.findings if one.broken]
    assert len(broken) > len(PERMISSIONS)
    assert all(f"on {many[59]}" in one.found for one in broken)
    assert not any(many[58] in one.found for one in broken)


@pytest.mark.parametrize(
    ("decide", "words"),
    [
        (lambda a, v: honest(a, v) and a != "ec2:DescribeInstances", "ec2:DescribeInstances implicitDeny"),
        (
            lambda a, v: True if a == "autoscaling:LaunchInstances" else honest(a, v),
            "autoscaling:LaunchInstances allowed beside its condition",
        ),
    ],
)
def test_a_row_that_is_denied_or_allowed_beside_its_condition_breaks_the_promise(decide, words):
    result = asked(whole(), decide)
    assert any(words in one.found for one in result.findings if not one.kept)


def test_a_row_that_no_statement_holds_breaks_the_promise():
    plain, tagged = whole()
    plain["Action"] = [one for one in plain["Action"] if one != "ec2:DescribeInstances"]
    result = asked([plain, tagged], honest)
    assert any("ec2:DescribeInstances is in no statement" in one.found for one in result.findings if not one.kept)


def test_a_simulation_that_allows_everything_was_not_run():
    with pytest.raises(NotServedError, match="evaluates nothing"):
        asked(whole(), lambda action, values: True)


def test_rows_under_conditions_are_not_run_where_no_condition_is_evaluated():
    def ignores_context(action, values):
        return honest(action, []) and action != "ec2:StopInstances"

    result = asked(whole(), ignores_context)
    assert not any(one.broken for one in result.findings), result.sentence
    assert "rows under conditions were not run" in result.why


def entered(name, given="{}"):
    return {"type": "TaskStateEntered", "stateEnteredEventDetails": {"name": name, "input": given}}


def test_visits_are_read_from_a_history_with_input_answer_and_where_they_went():
    exited = {"type": "TaskStateExited"}
    answered = {"type": "TaskSucceeded", "taskSucceededEventDetails": {"output": '{"Payload": 1}'}}
    failed = {"type": "TaskFailed"}
    history = [
        *({"type": "ExecutionStarted"}, entered("Plan", '{"n": 1}'), answered, exited),
        *(entered("Drain"), failed, answered, exited, entered("End"), exited, {"type": "ExecutionSucceeded"}),
    ]
    plan, end = states.visits_of(iter(history))
    assert (plan.state, plan.given, plan.result, plan.then) == ("Plan", '{"n": 1}', '{"Payload": 1}', "Drain")
    assert (end.state, end.result, end.then) == ("End", None, None)


def test_the_caller_is_a_sender_where_its_role_can_be_named():
    session = "arn:aws:sts::111122223333:assumed-role/ops/me"
    assert sender_of(session) == "arn:aws:iam::111122223333:role/ops"
    assert sender_of("arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Admin_1/me") is None
    assert sender_of("arn:aws:iam::111122223333:user/me") is None
