"""A first day with the real command line against the local stack, and the page that tells it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from local.interactive import state
from tests.local.first_day_page import PAGE, Replaced, differences, page
from tests.local.first_day_story import FOLDER, STORY, Command
from tests.local.processes import PATIENCE, processes_in, stack_of
from tests.tools import need

pytestmark = [pytest.mark.local, pytest.mark.long]

ROOT = Path.cwd()
SETTINGS = {
    "COLUMNS": "120",
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "CDK_DISABLE_VERSION_CHECK": "1",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    "MAKEFLAGS": "--no-print-directory",  # below `make tutorial` a make of the page would name its folder
}


@pytest.fixture
def first_terminal(tmp_path):
    """`make local STACK_ONLY=1`, ready."""
    with stack_of([sys.executable, "-m", "local", "--stack-only", "--dir", str(tmp_path)], tmp_path) as process:
        yield process


def run(command, environment):
    """The output of the command in a second terminal; its code and what it says are those that the story expects."""
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout


def missing(command: Command, output):
    """The expected patterns that the output does not have in their order."""
    lost, start = [], 0
    for pattern in command.expect:
        found = re.compile(pattern).search(output, start)
        if found is None:
            lost.append(pattern)
        else:
            start = found.end()
    return lost


def test_the_first_day_goes_as_the_page_tells_it(first_terminal, tmp_path):
    need("kubectl")
    shutil.rmtree(FOLDER, ignore_errors=True)
    stack = state.running(tmp_path)
    replaced, outputs, lost = Replaced(), {}, []
    path = os.pathsep.join([str(ROOT / ".venv/bin"), str(ROOT / "node_modules/.bin"), os.environ["PATH"]])
    environment = {**stack.environment(), **SETTINGS, "PATH": path, "LEEWARD_LOCAL_DIR": str(tmp_path)}
    for chapter in STORY:
        if chapter.schedules:
            for function in ("sync", "reconciler", "disruption-planner"):
                stack.client("lambda").invoke(FunctionName=f"leeward-{function}")
        for command in chapter.commands:
            began = time.monotonic()
            code, output = run(command.line, environment)
            sys.stdout.write(f"{time.monotonic() - began:.1f} s: {command.line}\n{output}")
            assert code == command.code, output
            lost += [f"{command.line}: {pattern}" for pattern in missing(command, output)]
            outputs[command.line] = replaced.text(output)
    assert lost == []
    if os.environ.get("GOLDEN_WRITE"):
        PAGE.write_text(page(outputs), encoding="utf-8")
    assert differences(PAGE.read_text(encoding="utf-8"), outputs) == []
    first_terminal.send_signal(signal.SIGINT)
    assert first_terminal.wait(PATIENCE) == 0
    assert processes_in(tmp_path) == []
