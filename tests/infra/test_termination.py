"""The state machine as AWS gets it, and the table behind it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.infra.conftest import ROOT
from tests.infra.iam_evaluator import Request, allows
from tests.infra.template import Statement, substituted_definition

MACHINE = "AWS::StepFunctions::StateMachine"
TERMINATION, UPGRADE = "leeward-node-termination", "leeward-node-group-upgrade"
MANAGED, DISRUPTION = "leeward-managed-node-group-upgrade", "leeward-disruption"
FUNCTIONS = {
    TERMINATION: {"leeward-terminate", "leeward-drain"},
    UPGRADE: {"leeward-upgrade"},
    MANAGED: {"leeward-upgrade"},
    DISRUPTION: {"leeward-disrupt"},
}
each_machine = pytest.mark.parametrize("name", [TERMINATION, UPGRADE, MANAGED, DISRUPTION])
VALIDATOR = ROOT / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js"


@each_machine
def test_nothing_is_left_to_substitute(template, name):
    definition = substituted_definition(template, name)
    assert "${" not in json.dumps(definition)
    called = {s["Arguments"]["FunctionName"] for s in definition["States"].values() if "lambda:invoke" in str(s)}
    assert {arn.rsplit(":")[-1] for arn in called} == FUNCTIONS[name]


@each_machine
def test_every_substitution_is_used(template, name):
    machine = template.named(MACHINE)[name]
    unused = [name for name in machine["DefinitionSubstitutions"] if f"${{{name}}}" not in machine["DefinitionString"]]
    assert not unused


@each_machine
def test_the_definition_is_valid_amazon_states_language(template, tmp_path, name):
    file = tmp_path / "definition.json"
    file.write_text(json.dumps(substituted_definition(template, name)))
    done = _validate(file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_validator_would_have_found_a_missing_state(template, tmp_path):
    definition = substituted_definition(template)
    definition["StartAt"] = "Nowhere"
    file = tmp_path / "definition.json"
    file.write_text(json.dumps(definition))
    assert _validate(file).returncode != 0


def _validate(file: Path):
    command = [os.environ["JSII_NODE"], str(VALIDATOR), "--json-path", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@each_machine
def test_it_is_a_standard_machine_that_traces_everything_and_logs_what_fails(template, name):
    machine = template.named(MACHINE)[name]
    assert machine["StateMachineType"] == "STANDARD"
    assert machine["TracingConfiguration"] == {"Enabled": True}
    logging = machine["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", True)
    (group,) = [d["CloudWatchLogsLogGroup"]["LogGroupArn"] for d in logging["Destinations"]]
    assert ":log-group:/aws/vendedlogs/states/" in group, "other names run into the limit of resource policies"


@each_machine
def test_only_state_machines_of_the_deployment_wear_its_role(template, name):
    prefix = {UPGRADE: "Upgrade", MANAGED: "UpgradeManaged", DISRUPTION: "Disruption"}.get(name, "Termination")
    (role,) = [r for n, r in template.resources("AWS::IAM::Role").items() if n.startswith(f"{prefix}StateMachine")]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "states.amazonaws.com"}
    statement = Statement(effect="Allow", actions=(trust["Action"],), resources=("*",), conditions=trust["Condition"])

    def wears(region="us-east-1", account="111122223333", machine=name):
        arn = f"arn:aws:states:{region}:{account}:stateMachine:{machine}"
        return allows([statement], Request(action="sts:AssumeRole", context={"aws:SourceArn": arn}))

    assert wears()
    assert not wears(machine="billing")
    assert not wears(machine="trial-leeward-node-termination"), "of a deployment beside it"
    assert not wears(account="444455556666")
    assert not wears(region="eu-west-1")
    assert not allows([statement], Request(action="sts:AssumeRole")), "a call that names no state machine"


@each_machine
def test_a_step_outlasts_the_function_that_takes_it(template, name):
    """Else the state machine would start a step again while the first still works."""
    functions = template.named("AWS::Lambda::Function")
    slowest = max(functions[one]["Timeout"] for one in FUNCTIONS[name])
    states = substituted_definition(template, name)["States"].values()
    assert slowest < min(s["TimeoutSeconds"] for s in states if "lambda:invoke" in s.get("Resource", ""))


def test_a_run_of_the_reconciler_ends_before_the_next_begins(template):
    assert template.named("AWS::Lambda::Function")["leeward-reconciler"]["Timeout"] < 60


def test_the_table_finds_open_records_forgets_closed_ones_and_can_be_restored(template):
    table = template.one("AWS::DynamoDB::Table")
    assert table["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "open"
    assert index["KeySchema"] == [{"AttributeName": "open", "KeyType": "HASH"}]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["SSESpecification"]["SSEEnabled"] is True
    assert table["BillingMode"] == "PAY_PER_REQUEST"
