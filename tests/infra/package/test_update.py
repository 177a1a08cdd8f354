"""An update in place, from the package of an earlier commit: what holds state stays, and no name is taken."""

import json
import lzma

import pytest

from tests.infra.cloudformation import resolved
from tests.infra.package.replacements import fixed_names, replaced, schema
from tests.infra.package.settings import NEEDED
from tests.infra.template import Template
from tests.local.package.keep import TEMPLATE

STATEFUL = {
    "AWS::DynamoDB::Table",
    "AWS::Events::EventBus",
    "AWS::Logs::LogGroup",
    "AWS::SQS::Queue",
    "AWS::SSM::Parameter",
    "AWS::StepFunctions::StateMachine",  # its executions end with it
}


def resources(template):
    """The resources for one cluster, references and names filled in."""
    made = resolved(template, NEEDED)
    filled = Template(raw=made, assembly=TEMPLATE)
    return {
        name: {"Type": found["Type"], "Properties": filled.filled(found["Properties"])}
        for name, found in made["Resources"].items()
    }


@pytest.fixture(scope="module")
def before():
    return resources(json.loads(lzma.decompress(TEMPLATE.read_bytes())))


@pytest.fixture(scope="module")
def after(packaged):
    return resources(packaged)


def test_the_oracle_knows_which_properties_force_a_replacement(before):
    assert "/properties/QueueName" in schema("AWS::SQS::Queue")["createOnlyProperties"]
    (table,) = [name for name, found in before.items() if found["Type"] == "AWS::DynamoDB::Table"]
    renamed = {**before[table], "Properties": {**before[table]["Properties"], "TableName": "other"}}
    assert list(replaced(before, {**before, table: renamed})) == [(table, "TableName")]


def test_nothing_with_state_is_replaced_or_deleted(before, after):
    stateful = {name for name, found in before.items() if found["Type"] in STATEFUL}
    assert len(stateful) > 15
    assert stateful - after.keys() == set()
    assert [(name, why) for name, why in replaced(before, after) if name in stateful] == []


def test_no_resource_with_a_fixed_name_is_replaced(before, after):
    """CloudFormation makes the new one first, and its name is taken: the update would be rolled back."""
    named = set(fixed_names(before).values())
    assert len(named) > 40
    assert [(name, why) for name, why in replaced(before, after) if name in named] == []


def test_no_fixed_name_moves_to_another_logical_id(before, after):
    old, new = fixed_names(before), fixed_names(after)
    assert {key: (old[key], new[key]) for key in old.keys() & new.keys() if old[key] != new[key]} == {}
