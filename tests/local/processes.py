"""The local stack as a process of its own, and which processes there are, for tests that look what is left behind."""

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 600  # seconds: only how long a test that fails takes


@contextmanager
def stack_of(command, directory):
    """The process of the command once its stack is ready; it prints into the folder's file `output`."""
    log = directory / "output"
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + PATIENCE
    while "Ctrl-C" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.3)
    yield process
    process.kill()
    process.wait()


def processes_in(directory):
    """Command lines, alive now, that name the folder in which a run keeps everything of its own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue  # it ended while we looked
        if str(directory) in words:
            found.append(words)
    return found
