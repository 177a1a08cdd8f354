"""Lifeline by which no process of the local stack outlives its parent, even if the parent was killed.

A child of ours has one end of a pipe as its standard input, its lifeline; only the parent holds the other end. However
the parent ends, the system closes that end, and the child sends itself SIGTERM. This file is also the command that runs
a Python module with its standard input as lifeline: `python -m local.lifeline GRACE MODULE ARGUMENT ...`.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GRACE_SECONDS = 20.0


def start(
    module: str,
    *arguments: str,
    log: Path,
    environment: Mapping[str, str] | None = None,
    grace: float = GRACE_SECONDS,
) -> subprocess.Popen[bytes]:
    """Run `python -m module` as a child that ends with this process, both its outputs in the file `log`.

    When this process has ended, the child gets a SIGTERM, and `grace` seconds later it is killed if it still runs. It
    has a session of its own: a Ctrl-C reaches the parent, which ends it in its turn. Collect it with `release`.
    """
    with log.open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "local.lifeline", str(grace), module, *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


def release(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Collect a child after its termination was requested; one that does not end within `seconds` is killed."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdin:
        child.stdin.close()


def main(grace: str, module: str, *arguments: str) -> None:
    """Run as the module, with its arguments, until it or the lifeline ends."""
    threading.Thread(target=_end_with_the_lifeline, args=[float(grace)], name="lifeline", daemon=True).start()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_the_lifeline(grace: float) -> None:
    while os.read(0, 1024):
        pass  # no process writes; only the end counts
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
