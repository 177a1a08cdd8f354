"""Executions that an operator starts in the console with a wrong input end in a state of their own, whose cause says
what to enter."""

import json
import re
from pathlib import Path

import pytest

from simulation.definitions import definitions
from tests.fakes.builders import CLUSTER, GROUP
from tests.state_machines.causes import flaws
from tests.state_machines.graph import existing
from tests.state_machines.started import by_product, executed
from tests.state_machines.test_walks import I, a_system

KEYS = {
    "node-termination": ("instance", I, "i-0123456789abcdef0"),
    "node-group-upgrade": ("group", GROUP, "web"),
    "managed-node-group-upgrade": ("group", GROUP, "web"),
    "disruption": ("cluster", CLUSTER, "blue"),
}  # machine -> key, a name that exists, the name in the example
machines = pytest.mark.parametrize("machine", sorted(existing()))
EXAMPLE = re.compile(r"\. Enter (\{.*?\})")


def started(machine, given, system):
    functions = {
        state["Arguments"]["Payload"]["step"]: state["Arguments"]["FunctionName"]
        for state in definitions()[machine]["States"].values()
        if state["Type"] == "Task" and "Payload" in state["Arguments"]
    }
    return executed(machine, given, lambda payload: by_product(system, payload, functions[payload["step"]]))


def wrong_inputs(machine):
    key, name, _ = KEYS[machine]
    return {
        "an empty object": {},
        "an empty list": [],
        "a list": [{key: name}],
        "a text": name,
        "an empty text": "",
        "a number": 5,
        "true": True,
        "null": None,
        "unknown keys": {"Node": name},
        "one unknown key": {key: name, "dryRun": True},
        "a name that is a number": {key: 5},
        "a name that is null": {key: None},
        "a name that is empty": {key: ""},
        "a name that is a list": {key: [name]},
        "a name that is an object": {key: {"Name": '{"a": "b"}'}},
        "a name that does not exist": {key: "i-00000000000000000"},
        "a name with other letters": {key: 'i-{"\x1b[2J\n'},
        "a long name": {key: "i-" + "0" * 100_000},
        "a version of another type": {key: name, "v": "1"},
        "a document of a step with a word that is none": {key: name, "next": "nonsense"},
        "a document of a step with a wrong type": {key: name, "next": "wait", "pause": {"a": 1}},
    }


UPGRADES = {
    "no group": {"groups": []},
    "groups that are no list": {"groups": "web"},
    "groups that are no texts": {"groups": [GROUP, 5]},
    "a group twice": {"groups": [GROUP, GROUP]},
    "a second group that does not exist": {"groups": [GROUP, "nowhere"]},
    "an action that is none": {"group": GROUP, "action": "stop"},
    "an action without an upgrade": {"group": GROUP, "action": "abort"},
    "a code that is no list": {"group": GROUP, "override": "PdbNeverAllows"},
    "force as a text": {"group": GROUP, "force": "yes"},
    "two targets": {"group": GROUP, "ami": "ami-1", "kubernetesVersion": "1.34"},
}


@machines
def test_a_wrong_input_ends_in_a_state_of_its_own_that_says_what_to_enter(machine):
    key, _, example = KEYS[machine]
    wrong = {}
    inputs = wrong_inputs(machine) | (UPGRADES if key == "group" else {})
    for what, given in inputs.items():
        system = a_system()
        end = started(machine, given, system)
        shown, found = EXAMPLE.search(end.cause), flaws(end.error, end.cause)
        if found or end.error != "InvalidInput" or not shown or json.loads(shown[1]) != {key: example}:
            wrong[what] = (found, end.error, end.cause)
        assert not system.claims.records
        assert system.executions.open == set()
    assert wrong == {}


@machines
def test_the_example_itself_is_accepted(machine):
    key, name, _ = KEYS[machine]
    assert started(machine, {key: name}, a_system()).state != "InvalidInput"


@pytest.mark.parametrize("given", [{"launchTemplateVersion": 7}, {"ami": None, "then": None}])
def test_a_version_as_a_number_and_a_null_are_accepted(given):
    assert started("node-group-upgrade", {"group": GROUP} | given, a_system()).state != "InvalidInput"


@machines
def test_the_cause_names_what_was_found(machine):
    key, _, _ = KEYS[machine]
    assert f"{key}: found none, expected " in started(machine, {}, a_system()).cause
    assert f"{key}: found a number, expected " in started(machine, {key: 5}, a_system()).cause


@machines
def test_the_documentation_lists_the_key_of_each_machine(machine):
    text = Path("docs/operations.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `leeward-{machine}` \|.*$", text, re.MULTILINE)
    assert f'{{"{KEYS[machine][0]}": "' in row or "the same input" in row
