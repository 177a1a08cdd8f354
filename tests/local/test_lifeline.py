"""Nothing of the local stack outlives the process that started it."""

import subprocess
import sys
import time

import pytest

from local import lifeline
from tests.local.processes import processes_in

pytestmark = pytest.mark.local

STACK = """
import sys
from pathlib import Path
from local.stack import LocalStack
with LocalStack(directory=Path(sys.argv[1])) as stack:
    print("ready", flush=True)
    sys.stdin.read()
"""
DEAF_CHILD = """
import sys
import time
from pathlib import Path
from local import lifeline
folder = Path(sys.argv[1])
lifeline.start("deaf", str(folder), log=folder / "log", grace=0.3)
while not (folder / "heard").exists():
    time.sleep(0.01)
print("ready", flush=True)
sys.stdin.read()
"""
DEAF = """
import signal
import sys
from pathlib import Path
heard = Path(sys.argv[1], "heard")
signal.signal(signal.SIGTERM, lambda *_: heard.write_text("SIGTERM"))
heard.touch()
while True:
    signal.pause()
"""


@pytest.fixture
def parent(tmp_path):
    """Starts `program` with our folder as its first argument, and waits until it says that it is ready."""
    started = []

    def start(program):
        command = [sys.executable, "-c", program, str(tmp_path)]
        started.append(
            subprocess.Popen(command, cwd=lifeline.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert started[-1].stdout.readline() == "ready\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def left(directory):
    """The processes that name the folder, once there are none or 120 s have gone by."""
    deadline = time.monotonic() + 120
    while (found := processes_in(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def test_the_local_stack_ends_with_a_parent_that_was_killed(parent, tmp_path):
    killed = parent(STACK)
    assert {"local.aws", "local.cluster"} <= {word for line in processes_in(tmp_path) for word in line.split()}
    killed.kill()
    assert left(tmp_path) == []


def test_a_child_that_does_not_listen_ends_as_well(parent, tmp_path, monkeypatch):
    (tmp_path / "deaf.py").write_text(DEAF)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    killed = parent(DEAF_CHILD)
    killed.kill()
    assert left(tmp_path) == []
    assert (tmp_path / "heard").read_text() == "SIGTERM"


def test_a_child_lives_on_while_its_parent_does_and_is_reported_its_arguments(tmp_path, monkeypatch):
    (tmp_path / "brief.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = lifeline.start("brief", "--port", "1", log=tmp_path / "log")
    lifeline.release(child, 30)
    assert (child.returncode, (tmp_path / "log").read_text()) == (0, "__main__ ['--port', '1']\n")
