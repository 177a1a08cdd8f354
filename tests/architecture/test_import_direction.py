"""model <- policy <- the rooms' pure modules <- handlers -> adapters; only adapters speak to AWS and Kubernetes."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path("functions/leeward")
OUTSIDE = {"boto3", "botocore", "urllib3", "yaml", "rich", "jsonschema_rs"}
CLOCK_AND_CHANCE = {"os", "time", "random", "socket", "subprocess", "secrets", "uuid", "pathlib"}
# these may log and count; handlers build their ports; generated_code reads bytecode of the asset
SHELL = {"handler", "drain_handler", "telemetry", "metrics", "generated_code"}
ENVIRONMENT = {"PYTHONPATH": "functions"}
MODULES = sorted(ROOT.rglob("*.py"))


@cache
def imports(path):
    """Names that a module imports. Each file is parsed once for all rules, and not while tests are collected."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return sorted(names)


def package(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def offenders(forbidden, *, outside):
    """Modules that import one of these top-level names, except in the packages `outside` the rule."""
    return [
        f"{path}: {name}"
        for path in MODULES
        for name in imports(path)
        if package(path) not in outside and name.split(".")[0] in forbidden
    ]


def test_a_pure_module_reads_no_clock_environment_network_or_chance():
    pure = [path for path in MODULES if package(path) not in {"adapters", "cli"} and path.stem not in SHELL]
    assert len(pure) > 100
    assert [
        f"{path}: {name}"
        for path in pure
        for name in imports(path)
        if name.split(".")[0] in OUTSIDE | CLOCK_AND_CHANCE or name.startswith(("leeward.adapters", "leeward.cli"))
    ] == []


def test_the_drawing_of_a_report_is_pure():
    """As the packages are: `live.py` reads the facts, `command.py` writes the page."""
    drawing = [path for path in (ROOT / "cli" / "report").glob("*.py") if path.stem not in {"command", "live"}]
    assert len(drawing) > 5
    assert [
        f"{path}: {name}"
        for path in drawing
        for name in imports(path)
        if name.split(".")[0] in OUTSIDE | CLOCK_AND_CHANCE
        or (name.startswith(("leeward.adapters", "leeward.cli")) and not name.startswith("leeward.cli.report"))
    ] == []


def test_only_adapters_import_the_clients():
    assert offenders({"boto3", "botocore", "urllib3"}, outside={"adapters"}) == []


def test_powertools_is_imported_behind_the_telemetry_alone():
    """And late there: the command line, its wheel and the simulation do without it."""
    by = {path.as_posix() for path in MODULES for name in imports(path) if name.startswith("aws_lambda_powertools")}
    assert by == {"functions/leeward/adapters/powertools.py"}
    behind = {path.as_posix() for path in MODULES if "leeward.adapters.powertools" in imports(path)}
    behind |= {path.as_posix() for path in MODULES if path.name == "telemetry.py" and "powertools" in path.read_text()}
    assert behind == {"functions/leeward/adapters/entry.py", "functions/leeward/telemetry.py"}


def test_all_but_the_entry_points_is_imported_without_powertools():
    """Where the wheel of the command line is installed, it is not."""
    entered = [path for path in MODULES if "leeward.adapters.entry" in imports(path)]
    assert len(entered) == 8
    without = [path for path in MODULES if path not in entered and path.stem not in {"entry", "powertools"}]
    names = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in without]
    code = "import sys, importlib\nsys.modules['aws_lambda_powertools'] = None\n"
    code += f"for name in {names!r}: importlib.import_module(name.removesuffix('.__init__'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert found.stderr == ""


def test_no_yaml_no_schema_and_no_terminal_in_the_asset():
    found = offenders({"yaml", "argparse", "jsonschema_rs"}, outside={"cli"})
    assert [one for one in found if "/adapters/folder/" not in one] == []


def test_tables_are_plain_text():
    assert offenders({"rich"}, outside=set()) == []


def test_the_command_line_alone_reads_snapshot_folders():
    assert [
        str(path)
        for path in MODULES
        if package(path) != "cli" and path.parent.name != "folder"
        if any(name.startswith("leeward.adapters.folder") for name in imports(path))
    ] == []


def test_the_model_knows_only_the_errors_and_the_policy_only_the_model():
    for path in MODULES:
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("leeward.") and name.count(".")}
        if package(path) == "model":
            assert ours <= {"model", "errors"}, path
        if package(path) == "policy":
            assert ours <= {"model", "policy", "errors"}, path


def test_no_room_is_called_utils():
    words = {"utils", "util", "common", "helpers", "helper", "manager", "processor", "shared"}
    assert not [path for path in MODULES if words & set(path.relative_to(ROOT).with_suffix("").parts)]
