"""The second form of a broken build: what no seed reaches is planted before named test files run, one of which fails.

Adapters, the local stack, the command line and pure planning are not in the simulation, or are its model. Their builds
are edits as well (`editing.py`); the tests run in a process of their own, with this module as a pytest plugin."""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module

import pytest

from tests.drawing import BROKEN_BUILD
from tests.simulation.mutations.editing import Edit, apply_all

BUILD = BROKEN_BUILD
LONGEST = 300  # seconds of the named tests
PLUGIN = "tests.simulation.mutations.plant"
OPTIONS = ("-x", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", "-n", "0", "-m", "not long", "--tb=line")
FAILED = 1  # pytest's exit code where tests have failed: not 2 (interrupted), 3 (internal error) or 5 (no tests)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """`story`: what a careless engineer would have done; `tests`: files or test ids, one of which has to fail."""

    name: str
    story: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def caught_by(build: Planted) -> str:
    """The first test that fails, empty where all pass. Raises RuntimeError where the tests could not run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *build.tests],
        env={**environment, BUILD: build.name},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode not in {0, FAILED}:
        raise RuntimeError(f"{build.name}: the tests did not run: {done.stdout[-2000:]}{done.stderr[-500:]}")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")) and "::" in line]
    return failed[0].partition(" ")[2].split(" - ")[0] if failed else ""


def pytest_configure(config: pytest.Config) -> None:
    """Plant the build that the environment names, for the whole run."""
    name = os.environ.get(BUILD)
    if name:
        builds = import_module("tests.simulation.mutations.planted").PLANTED
        monkeypatch = pytest.MonkeyPatch()
        apply_all(next(one for one in builds if one.name == name).edits, monkeypatch)
        config.add_cleanup(monkeypatch.undo)
