"""model <- policy <- the rooms' pure modules <- handlers -> adapters; only adapters speak to AWS and Kubernetes."""

import ast
from pathlib import Path

import pytest

ROOT = Path("functions/leeward")
OUTSIDE = {"boto3", "botocore", "urllib3", "yaml", "rich"}
CLOCK_AND_CHANCE = {"os", "time", "random", "socket", "subprocess", "secrets", "uuid", "pathlib"}
SHELL = {"handler", "drain_handler", "telemetry", "metrics"}  # these may log and count; handlers build their ports
MODULES = sorted(ROOT.rglob("*.py"))
PURE = [
    path for path in MODULES if path.relative_to(ROOT).parts[0] not in {"adapters", "cli"} and path.stem not in SHELL
]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", PURE, ids=str)
def test_a_pure_module_reads_no_clock_environment_network_or_chance(path):
    tops = {name.split(".")[0] for name in imports(path)}
    assert not tops & (OUTSIDE | CLOCK_AND_CHANCE)
    assert not any(name.startswith(("leeward.adapters", "leeward.cli")) for name in imports(path))


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) != "adapters"], ids=str)
def test_only_adapters_import_the_clients(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"boto3", "botocore", "urllib3"}


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) != "cli" and p.parent.name != "folder"], ids=str)
def test_no_yaml_and_no_terminal_in_the_asset(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"yaml", "rich", "argparse"}


def test_the_command_line_alone_reads_snapshot_folders():
    offenders = [
        str(path)
        for path in MODULES
        if room(path) != "cli" and path.parent.name != "folder"
        if any(name.startswith("leeward.adapters.folder") for name in imports(path))
    ]
    assert offenders == []


def test_the_model_knows_only_the_errors_and_the_policy_only_the_model():
    for path in MODULES:
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("leeward.") and name.count(".")}
        if room(path) == "model":
            assert ours <= {"model", "errors"}, path
        if room(path) == "policy":
            assert ours <= {"model", "policy", "errors"}, path


def test_no_room_is_called_utils():
    words = {"utils", "util", "common", "helpers", "helper", "manager", "processor", "shared"}
    assert not [path for path in MODULES if words & set(path.relative_to(ROOT).with_suffix("").parts)]
