"""Every command has a JSON Schema, and what it prints with -o json is valid."""

import argparse
import json
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.inspection import ANALYSES
from leeward.cli.main import build_parser
from leeward.upgrade.preflight.findings import Code
from tests.cli.command import NOON
from tests.cli.live_answers import ANSWERS
from tests.cli.test_golden import OFFLINE

SCHEMAS = Path("docs/schema")
NO_JSON = {"completion", "help", "options"}  # a script for a shell, and helps
NO_COMMAND = {"node-policy", "run-record", "plan-until-done"}  # of files, and of an option
REQUESTS = ("start", "pause", "resume", "abort", "rollback")
SCHEMA_OF = {
    "resume": "pause",
    **{f"inspect {name}": name for name in ANALYSES},
    **{f"policy {action}": "policy" for action in ("validate", "diff", "apply")},
    **{f"upgrade {action}": "upgrade-request" for action in REQUESTS},
}  # of any other command: its name
OF_TABLES = {"--no-headers", "--sort-by", "field", "pods"}  # options that JSON refuses, as the golden files have them


def schema(command):
    return json.loads((SCHEMAS / f"{SCHEMA_OF.get(command, command.replace(' ', '-'))}.json").read_text())


def commands(parser, path=""):
    """Every command, with each of its actions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                deeper = list(commands(below, f"{path} {name}".strip()))
                chosen = next((one.choices for one in below._actions if one.dest == "action" and one.choices), ())
                yield from deeper or [f"{path} {name} {one}".strip() for one in chosen] or [f"{path} {name}".strip()]


def command_of(arguments):
    """`upgrade plan` of its arguments."""
    if "--until-done" in arguments:
        return "plan until done"
    return " ".join(arguments[:2] if arguments[0] in {"upgrade", "policy", "zone", "inspect"} else arguments[:1])


def test_every_command_has_a_schema_that_names_it():
    lost = [
        one for one in commands(build_parser()) if one not in NO_JSON and f"leeward {one}" not in schema(one)["title"]
    ]
    assert lost == []


def test_every_schema_is_of_a_command_and_is_a_schema():
    used = {SCHEMA_OF.get(one, one.replace(" ", "-")) for one in commands(build_parser())} - NO_JSON
    assert {file.stem for file in SCHEMAS.glob("*.json")} == used | NO_COMMAND
    for file in SCHEMAS.glob("*.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads(file.read_text()))


def test_every_command_is_printed_here():
    offline = {command_of(arguments) for _, *arguments in OFFLINE.values()}
    assert offline | {name.replace("-", " ") for name in ANSWERS} >= set(commands(build_parser())) - NO_JSON


def test_both_schemas_with_findings_have_all_codes():
    codes = [one.value for one in Code]
    for command in ("upgrade plan", "upgrade start"):
        items = schema(command)["properties"]["findings"]["items"]["properties"]
        assert sorted(items["code"]["enum"]) == sorted(codes)


@pytest.mark.parametrize("name", [*OFFLINE, *ANSWERS])
def test_what_a_command_prints_is_valid(leeward, tmp_path, monkeypatch, name):
    if name in ANSWERS:
        arguments = ANSWERS[name](monkeypatch, tmp_path)
    else:
        source, *arguments = (one for one in OFFLINE[name] if one not in OF_TABLES)
        folder = source(tmp_path) if callable(source) else source
        arguments += [] if folder is None else ["--snapshot", folder, "--now", NOON]
    result = leeward(*arguments, "-o", "json")
    assert result.code in {0, 1}
    jsonschema.Draft202012Validator(schema(command_of(arguments))).validate(result.json)
