"""Options, exit codes and messages, whatever the verb."""

import argparse
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from leeward import __version__
from leeward.cli import drift
from leeward.cli.examples import EXAMPLES
from leeward.cli.inspection import ANALYSES
from leeward.cli.main import COMMANDS, DEBUG, HEADINGS, build_parser, parse_arguments
from leeward.model.times import format_instant
from tests.cli.command import NOON, SMALL

OFFLINE = ("--snapshot", SMALL, "--now", NOON)


def test_general_options_stand_before_or_after_the_verb(leeward):
    before = leeward(*OFFLINE, "-o", "json", "drain", "node-a")
    after = leeward("drain", "node-a", *OFFLINE, "-o", "json")
    between = leeward("--now", NOON, "drain", "--snapshot", SMALL, "node-a", "--output=json")
    assert before == after == between
    assert before.json["node"] == "node-a"


def test_an_option_after_the_verb_wins():
    arguments = parse_arguments(["--seed", "1", "--region", "us-east-1", "drain", "n", "--seed", "2"])
    assert (arguments.seed, arguments.region, arguments.output) == (2, "us-east-1", "table")


OPTIONS = (("--snapshot", "x"), ("-o", "json"), ("-ojson",), ("--output=json",), ("--region", "us-east-1"))


def arguments_of(parser):
    """Arguments that take several values, and actions that are none."""
    return [action for action in parser._actions if not action.option_strings and action.nargs in {"*", "+"}]


def test_names_stand_on_both_sides_of_any_option():
    paths = [path.split() for path, parser in parsers(build_parser()) if arguments_of(parser)]
    assert paths == [["inspect", "explain-event"], ["drain"], ["upgrade", "start"], ["policy"], ["help"]]
    for path, option in itertools.product(paths, OPTIONS):
        fixed = ["validate"] if path == ["policy"] else []
        apart = parse_arguments([*path, *fixed, "name-a", *option, "name-b", "--seed", "3", "name-c"])
        together = parse_arguments([*path, *fixed, "name-a", "name-b", "name-c", *option, "--seed", "3"])
        apart.now = together.now
        assert apart == together, (path, option)


def test_a_name_is_never_taken_for_the_value_that_an_option_lacks(leeward):
    assert "argument --snapshot: found nothing, expected one value" in leeward.refuses("drain", "node-a", "--snapshot")
    assert "unknown arguments: --bogus node-b, expected none" in leeward.refuses("drain", "node-a", "--bogus", "node-b")
    assert parse_arguments(["drain", "--keep", "n", "--", "-m"]).nodes == ["n", "-m"]


def test_flags_of_kubectl_take_no_name_for_their_value(leeward):
    result = leeward("drain", "node-a", "--dry-run", "node-b", "--force=true", *OFFLINE, "-o", "json")
    assert [plan["node"] for plan in result.json] == ["node-a", "node-b"]


def test_now_is_the_clocks_time_unless_given():
    given = parse_arguments(["--now", "1931-05-06T10:00:00+02:00", "drain", "n"]).now
    assert format_instant(given) == "1931-05-06T08:00:00Z"
    assert parse_arguments(["drain", "n"]).now.tzinfo is not None


def test_json_and_yaml_say_the_same(leeward):
    as_json = leeward("drain", "node-a", *OFFLINE, "-o", "json")
    as_yaml = leeward("drain", "node-a", *OFFLINE, "-o", "yaml")
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)
    assert as_json.code == as_yaml.code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["drain", "n", "--bogus"], "drain: found unknown arguments: --bogus, expected none"),
        (["blockers", "n", "m"], "blockers: found unknown arguments: m, expected none"),
        (
            ["drain", "n", "--now", "2024-05-01T12:00:00"],
            "drain: argument --now: found '2024-05-01T12:00:00', "
            "expected an RFC 3339 time such as 2024-05-01T12:00:00Z",
        ),
        (["--seed", "x", "drain", "n"], "argument --seed: found 'x', expected a whole number"),
        (["--account", "123", "drain", "n"], "argument --account: found '123', expected twelve digits"),
        (
            ["--region", "mars", "drain", "n"],
            "argument --region: found 'mars', expected an AWS region such as us-east-1",
        ),
        (["--cluster", "a b", "drain", "n"], "argument --cluster: found 'a b', expected the name of an EKS cluster"),
        (["drain", "n", "--cluster"], "drain: argument --cluster: found nothing, expected one value"),
    ],
)
def test_bad_arguments_are_reported_in_one_sentence(leeward, arguments, message):
    reported, _, see = leeward.refuses(*arguments).partition(" (see leeward ")
    assert reported == message
    assert see.endswith("--help)")


@pytest.fixture
def a_defect(monkeypatch):
    """A command that reads a key which is not there."""
    monkeypatch.setattr(drift, "cluster_of", lambda *_: {}["spec"])


def test_an_unexpected_exception_is_one_sentence_with_its_place(leeward, monkeypatch, a_defect):
    monkeypatch.delenv(DEBUG)
    reported = leeward.refuses("drift", *OFFLINE)
    assert re.fullmatch(
        r"found a defect of Leeward itself \(KeyError: 'spec' \(leeward\.cli\.drift\.run, line \d+\)\), expected none; "
        "LEEWARD_DEBUG=1 shows its traceback",
        reported,
    )


def test_its_traceback_is_shown_where_it_is_asked_for(leeward, a_defect):
    with pytest.raises(KeyError, match="spec"):
        leeward("drift", *OFFLINE)


@pytest.mark.parametrize("arguments", [["--help"], ["drain", "--help"], ["inspect", "zones", "--help"], ["--version"]])
def test_help_is_no_error(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        build_parser(arguments).parse_args(arguments)
    assert ended.value.code == 0
    assert "leeward" in capsys.readouterr().out


def test_without_arguments_the_help_is_printed(leeward):
    result = leeward()
    assert (result.code, result.err) == (0, "")
    assert "roll a group to a new template" in result.out
    assert leeward("help").out == result.out


@pytest.mark.parametrize("command", ["drain", "inspect zones", "upgrade start"])
def test_help_shows_the_help_of_a_command(leeward, command):
    result = leeward("help", *command.split())
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"usage: leeward {command} ")


def test_the_help_has_each_command_once_below_its_heading(leeward):
    text = leeward("help").out
    headings = [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and line[0].isalpha()]
    assert headings == [*HEADINGS, "options"]
    assert [name for name in COMMANDS if len(re.findall(rf"^  {name} ", text, re.MULTILINE)) != 1] == []


def test_general_options_are_shown_by_leeward_options_and_by_no_help(leeward):
    shown = leeward("options").out
    general = {"--cluster", "--snapshot", "--now", "--output", "--no-headers", "--sort-by", "--seed", "--account"}
    general |= {"--region", "--profile", "--cluster-profile", "--cluster-region"}
    assert {word.strip(",") for word in shown.split() if word.startswith("--")} == general
    for path, parser in parsers(build_parser()):
        usage, *rest = parser.format_help().partition("examples:")[0].split("\n\n", 1)
        assert not general & set(re.findall(r"--[a-z-]+", usage)), path
        assert not general & {line.split()[0] for line in "".join(rest).splitlines() if line.startswith("  --")}, path
        assert "leeward options shows the options that every command takes" in parser.format_help().replace("\n", " ")


@pytest.mark.parametrize("name", ANALYSES)
def test_the_name_of_an_analysis_alone_is_answered_with_the_command_that_has_it(leeward, name):
    for words in ((name,), (f"{name}x",), ("help", name), ("--cluster", "demo", name)):
        assert f"expected another one; did you mean inspect {name}? (see leeward --help)" in leeward.refuses(*words)
    assert leeward("help", "inspect", name).code == 0


@pytest.mark.parametrize(
    ("command", "hint"), [("plna", "plan"), ("upgarde", "upgrade"), ("Doctor", "doctor"), ("blocker", "blockers")]
)
def test_an_unknown_command_names_the_nearest(leeward, command, hint):
    assert f"; did you mean {hint}?" in leeward.refuses(command)
    assert f"; did you mean {hint}?" in leeward.refuses("help", command)


def test_kubectl_finds_the_command_as_a_plugin():
    scripts = tomllib.loads(Path("pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-leeward"] == scripts["leeward"]


def test_the_version_is_a_command_and_an_option(leeward):
    assert leeward("version").out == f"leeward {__version__}\n"


def test_the_help_of_every_command_explains_every_option():
    commands = next(action for action in build_parser()._actions if action.choices and "drain" in action.choices)
    for name, parser in commands.choices.items():
        assert parser.description, name
        assert all(action.help for action in parser._actions), name


@pytest.mark.parametrize("columns", [80, 120])
def test_the_paragraphs_of_every_help_fit_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for path, parser in parsers(build_parser()):
        text = parser.format_help().partition("examples:")[0]
        assert [line for line in text.splitlines() if len(line) > columns] == [], path


def test_an_example_stands_on_one_line_whatever_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = dict(parsers(build_parser()))["upgrade start"].format_help()
    assert "  leeward upgrade start web batch --cluster prod --kubernetes-version 1.31 --watch\n" in text


def parsers(parser, path=""):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield f"{path} {name}".strip(), below
                yield from parsers(below, f"{path} {name}".strip())


def test_the_help_of_every_command_has_examples_of_itself():
    shown = {path: parser.format_help() for path, parser in parsers(build_parser())}
    assert set(shown) == set(EXAMPLES)
    assert [path for path, text in shown.items() if f"examples:\n  leeward {EXAMPLES[path][0]}\n" not in text] == []
    assert [(path, one) for path, ones in EXAMPLES.items() for one in ones if not one.startswith(path)] == []


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_an_example_parses(example):
    words = shlex.split(example)
    ends = next((place for place, word in enumerate(words) if word in {"<", ">"}), len(words))
    assert callable(parse_arguments(words[:ends]).run)


def imported(*arguments):
    """Modules that a process has after this help."""
    code = "import sys, leeward.cli.main as m\ntry: m.main(sys.argv[1:])\nexcept SystemExit: print(*sys.modules)"
    command = [sys.executable, "-c", code, *arguments, "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_help_imports_no_command():
    """Importing all of them takes half a second of CPU."""
    modules = imported()
    ours = ("examples", "inspection", "main", "nearest", "options", "output", "parser")
    assert {name for name in modules if name.startswith("leeward.cli.")} == {f"leeward.cli.{name}" for name in ours}
    assert len(modules) <= 150  # 0.06 s of CPU


@pytest.mark.parametrize("command", [("plan",), ("blockers",), ("upgrade", "plan"), ("upgrade", "start")], ids=" ".join)
def test_help_of_a_command_imports_what_its_arguments_need(command):
    """No planner, no reader of folders: 0.08 s of CPU, with them 0.35."""
    modules = imported(*command)
    work = ("scheduling", "snapshot", "adapters", "disruption.methods", "policy", "ports", "blockers.find")
    assert [name for name in modules if name.startswith(tuple(f"leeward.{one}" for one in work))] == []
    assert len(modules) <= 180


def shell(line):
    """Output and exit code of a process: the interpreter flushes its buffers at the end."""
    command = ["bash", "-c", f"{sys.executable} -m leeward.cli.main {line}"]
    environment = {**os.environ, "PYTHONPATH": "functions"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_full_disk_is_no_defect_of_the_command():
    done = shell("completion bash > /dev/full")
    assert (done.returncode, done.stderr) == (2, "leeward: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_the_caller_has_closed_moves_nothing_into_the_other(closed):
    done = shell(f"plan --snapshot /nonexistent {closed}")
    assert (done.returncode, done.stdout, "defect" in done.stderr) == (2, "", False)
    assert "defect" not in shell(f"top --snapshot {SMALL} {closed}").stderr


LIBRARIES = {"boto3", "botocore", "jsonschema", "kubernetes", "rich", "urllib3"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "help"])
def test_no_help_imports_a_library_of_aws_or_kubernetes(command):
    assert imported(command) & LIBRARIES == set()


def test_a_reader_that_leaves_early_is_no_traceback():
    done = shell(f"drain --group web-1 --snapshot {SMALL} | head -c 1")
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 1, "")
