"""What users run on their accounts: apart from the local stack, judged by pure modules, in files of a readable size."""

import ast
from pathlib import Path

ROOT = Path("account_test")
MODULES = sorted(ROOT.rglob("*.py"))
PURE = {"judge", "recording", "results", "table"}
LARGEST_FILE, LARGEST_FUNCTION = 300, 50  # lines


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_only_the_local_stage_knows_the_local_stack():
    offenders = [
        f"{path}: {name}"
        for path in MODULES
        for name in imports(path)
        if name.split(".")[0] in {"local", "simulation", "tests", "bench"} and path.stem != "on_local_stack"
    ]
    assert offenders == []


def test_what_judges_and_reports_asks_nothing_of_aws_or_the_clock():
    offenders = [
        f"{path}: {name}"
        for path in MODULES
        if path.stem in PURE
        for name in imports(path)
        if name.split(".")[0] in {"boto3", "botocore", "time", "os", "subprocess"}
        or name.startswith("leeward.adapters")
    ]
    assert offenders == []


def test_files_and_functions_can_be_read_at_one_go():
    long_files = [str(path) for path in MODULES if len(path.read_text().splitlines()) > LARGEST_FILE]
    long_functions = [
        f"{path}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= LARGEST_FUNCTION
    ]
    assert (long_files, long_functions) == ([], [])
