"""One asset for all functions: pure Python, small, without the command line; and it is made once."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from infra import asset as asset_module
from infra.asset import build_asset
from infra.bytecode import runtime_python
from leeward.adapters.initialization import NEEDS
from leeward.errors import InvalidInputError
from tests.infra.conftest import ROOT

LAMBDA_BRINGS = ("boto3", "botocore", "s3transfer", "dateutil", "urllib3", "six", "jmespath")
# ruamel.yaml is in the asset, but only a NodeConfig that is YAML may import it
STAYS_HOME = {"yaml", "ruamel", "rich", "jsonschema_rs", "aws_cdk", "moto", "ministack", "starlette"}

WRITES = """
from types import SimpleNamespace
from leeward.adapters.entry import entry_point
from leeward.adapters.telemetry import throttled
context = SimpleNamespace(aws_request_id="r", function_name="f", memory_limit_in_mb=512, invoked_function_arn="arn")
event = {"step": "drain", "run": {"instance": "i-0abc", "attempt": 1}}
entry_point("termination")(lambda event, context: throttled("ec2:DescribeInstances"))(event, context)
"""
STARTS = """
import dataclasses, importlib, json, marshal, sys
from types import SimpleNamespace
sys.path[:0] = json.loads(sys.argv[1])
from leeward import generated_code
made, taken, run = [], [], dataclasses.exec
generated_code.marshal = SimpleNamespace(loads=lambda raw: taken.append(raw) or marshal.loads(raw))
dataclasses.exec = lambda *arguments: made.append(arguments[0]) or run(*arguments)
for handler in json.loads(sys.argv[2]):
    importlib.import_module(handler.rpartition(".")[0])
from leeward.adapters.initialization import NEEDS
for need in NEEDS.values():
    for module in need.modules:
        importlib.import_module(module)
print(json.dumps([len(made), len(taken)]))
"""


@pytest.fixture(scope="module")
def asset():
    return build_asset(ROOT).folder


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_all_functions_run_from_the_same_asset(template):
    codes = [function["Code"] for function in template.resources("AWS::Lambda::Function").values()]
    assert len(codes) == 9
    assert all(code == codes[0] for code in codes)
    assets = json.loads((template.assembly / "Leeward.assets.json").read_text())["files"]
    assert sum(file["source"]["packaging"] == "zip" for file in assets.values()) == 1


def test_nothing_in_it_is_native(asset):
    assert not [path for path in files(asset) if path.suffix in {".so", ".pyd", ".dylib"}]


def test_every_module_is_compiled_for_the_runtime_and_valid_without_its_modification_time(asset):
    """PEP 552: the word after the magic number is 1 for a hash that is not checked."""
    if runtime_python() is None:
        pytest.skip("not run: no Python 3.13, the functions' runtime, is installed")
    compiled = {path: path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc" for path in asset.rglob("*.py")}
    assert [path for path, cached in compiled.items() if not cached.exists()] == []
    assert {cached.read_bytes()[4:8] for cached in compiled.values()} == {b"\x01\0\0\0"}
    assert b"/var/task/leeward/telemetry.py" in compiled[asset / "leeward" / "telemetry.py"].read_bytes()


def test_no_dataclass_compiles_its_methods_when_a_function_starts(asset):
    python = runtime_python()
    if python is None:
        pytest.skip("not run: no Python 3.13, the functions' runtime, is installed")
    path = [str(asset), str(Path(find_spec("botocore").origin).parent.parent)]
    command = [python, "-I", "-S", "-B", "-c", STARTS, json.dumps(path), json.dumps(list(NEEDS))]
    environment = {"AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    made, taken = json.loads(done.stdout)
    assert made == taken > 300


def test_without_the_runtime_s_python_the_asset_is_not_compiled_and_says_so(tree, pip):
    made = build_asset(tree)
    assert not made.compiled
    assert not list(made.folder.rglob("*.pyc"))


def test_it_leaves_out_what_lambda_brings_and_what_stays_home(asset):
    assert not [
        name for name in ("boto3", "botocore", "urllib3", "yaml", "rich", "jsonschema_rs") if (asset / name).exists()
    ]
    assert not (asset / "leeward" / "cli").exists()
    assert not (asset / "leeward" / "adapters" / "folder").exists()
    assert not (asset / "leeward" / "doctor").exists()
    assert not (asset / "leeward" / "adapters" / "doctor").exists()
    assert not (asset / "bin").exists()
    assert not (asset / "aws_lambda_powertools" / "event_handler").exists()
    assert {path.name for path in (asset / "aws_lambda_powertools" / "utilities").glob("*[!_]")} <= {
        *("__init__.py", "jmespath_utils")
    }
    assert not [path for path in files(asset) if path.name.endswith(".asl.yaml")]


def test_it_is_smaller_than_twelve_megabytes(asset):
    assert sum(path.stat().st_size for path in files(asset)) < 12 * 1024 * 1024


def test_nothing_in_it_names_this_machine(asset):
    here = str(ROOT).encode()
    assert not [path for path in files(asset) if here in path.read_bytes()]


def test_every_handler_imports_with_nothing_but_the_asset_and_boto3(template, asset, tmp_path):
    """Isolated, without site-packages and without any environment: a missing package would otherwise be found here."""
    for package in LAMBDA_BRINGS:
        spec = find_spec(package)
        (tmp_path / Path(spec.origin).name if package == "six" else tmp_path / package).symlink_to(
            spec.origin if package == "six" else spec.submodule_search_locations[0]
        )
    handlers = [function["Handler"] for function in template.resources("AWS::Lambda::Function").values()]
    script = (
        "import sys, json, importlib\n"
        f"sys.path[:0] = [{str(asset)!r}, {str(tmp_path)!r}]\n"
        "sys.dont_write_bytecode = True\n"
        f"for handler in {handlers!r}:\n"
        "    module, name = handler.rsplit('.', 1)\n"
        "    assert callable(getattr(importlib.import_module(module), name)), handler\n"
        f"{WRITES}"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, env={}, check=False
    )
    assert done.returncode == 0, done.stderr
    cold, line, point, modules = map(json.loads, done.stdout.splitlines())
    assert (cold["ColdStart"], line["execution"], point["CallsThrottled"]) == ([1], "i-0abc-1", [1])
    assert not set(modules) & STAYS_HOME


@pytest.fixture
def tree(tmp_path):
    """A small tree to change, with packages that are already there."""
    package = tmp_path / "functions" / "leeward"
    (package / "cli" / "report").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cli" / "main.py").write_text("")
    (tmp_path / "functions" / "requirements.txt").write_text("six==1.17.0\n")
    return tmp_path


@pytest.fixture
def pip(monkeypatch):
    """Counts the calls and installs one file, as pip would."""
    calls = []

    def install(command, **_):
        calls.append(command)
        (target,) = [part.split("=", 1)[1] for part in command if part.startswith("--target=")]
        Path(target, "six.py").write_text("")
        notes = Path(target, "six-1.17.0.dist-info")
        notes.mkdir()
        for name in ("METADATA", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
            (notes / name).write_text("" if name == "METADATA" else target)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(asset_module.subprocess, "run", install)
    monkeypatch.setattr(asset_module, "runtime_python", lambda: None)
    return calls


def test_a_change_of_our_code_makes_another_asset_without_pip(tree, pip):
    first = build_asset(tree)
    (tree / "functions" / "leeward" / "__init__.py").write_text("changed = True\n")
    second = build_asset(tree)
    assert first.digest != second.digest
    assert len(pip) == 1
    assert (second.folder / "leeward" / "__init__.py").read_text() == "changed = True\n"
    assert (second.folder / "six.py").exists()


def test_what_is_not_in_the_asset_does_not_change_its_digest(tree, pip):
    first = build_asset(tree)
    (tree / "functions" / "leeward" / "cli" / "main.py").write_text("changed = True\n")
    (tree / "functions" / "leeward" / "cli" / "report" / "page.py").write_text("changed = True\n")
    (tree / "functions" / "leeward" / "__pycache__").mkdir()
    (tree / "functions" / "leeward" / "__pycache__" / "x.pyc").write_text("")
    requirements = tree / "functions" / "requirements.txt"
    requirements.write_text("# why six\n" + requirements.read_text())
    assert build_asset(tree) == first
    assert len(pip) == 1


def test_only_the_last_assets_are_kept(tree, pip):
    for number in range(8):
        (tree / "functions" / "leeward" / "__init__.py").write_text(f"number = {number}\n")
        os.utime(build_asset(tree).folder, (number, number))
    kept = {(path / "leeward" / "__init__.py").read_text() for path in (tree / "build" / "asset").iterdir()}
    assert kept == {f"number = {number}\n" for number in (3, 4, 5, 6, 7)}


def test_the_digest_is_over_the_files_that_pip_installed_and_not_over_what_pip_notes_about_them(tree, pip):
    """A package that was changed after its hash was checked is another asset, and so is a new file of it."""
    first = build_asset(tree)
    (packages,) = (tree / "build" / "packages").iterdir()
    assert {path.name for path in packages.rglob("*") if path.is_file()} == {"METADATA", "six.py"}
    (packages / "six.py").write_text("changed = True\n")
    second = build_asset(tree)
    (packages / "cli").mkdir()
    (packages / "cli" / "six.py").write_text("")
    third = build_asset(tree)
    assert len({first.digest, second.digest, third.digest}) == 3
    assert (third.folder / "cli" / "six.py").exists()
    assert len(pip) == 1


def test_the_same_files_make_the_same_digest_in_another_folder_at_another_time(tree, pip, tmp_path_factory):
    first = build_asset(tree)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(tree / "functions", elsewhere / "functions")
    for path in elsewhere.rglob("*"):
        os.utime(path, (1, 1))
    assert build_asset(elsewhere).digest == first.digest


def test_another_pin_installs_again(tree, pip):
    build_asset(tree)
    (tree / "functions" / "requirements.txt").write_text("six==1.16.0\n")
    build_asset(tree)
    assert len(pip) == 2


def test_pip_takes_only_wheels_that_run_anywhere(tree, pip):
    build_asset(tree)
    assert {"--require-hashes", "--platform=any", "--abi=none", "--only-binary=:all:", "--no-compile"} <= set(pip[0])


def test_a_failing_pip_is_one_sentence_and_leaves_nothing_behind(tree, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "ERROR: noise\nERROR: No matching distribution found for six\n")
    monkeypatch.setattr(asset_module.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(InvalidInputError, match=r"requirements\.txt: pip cannot install .*No matching distribution"):
        build_asset(tree)
    assert not list((tree / "build" / "packages").iterdir())
