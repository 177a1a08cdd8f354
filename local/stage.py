"""Frame of every demo: a local stack in a folder of its own, lines of progress, the exit code."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from local.stack import LocalStack, LocalStackError

WIDTH = 140  # columns without a terminal
console = Console(width=None if sys.stdout.isatty() else WIDTH)


def perform(play: Callable[[LocalStack], bool], foreign: Path | None = None) -> int:
    """Run the play and return exit code 0 only if it reports that every promise was kept; the stack has stopped
    then. `foreign`: kubeconfig of the cluster to use in place of the emulated one.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leeward-demo-") as directory:
        try:
            with LocalStack(directory=Path(directory), foreign=foreign) as stack:
                kept = play(stack)
        except LocalStackError as error:
            console.print(f"[bold red]the demo could not run:[/] {error}")
            return 1
    console.print(f"\n{time.monotonic() - began:.0f} s in all; the local stack has stopped.")
    return 0 if kept else 1


def wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until the condition holds. Raises LocalStackError naming the condition."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise LocalStackError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.3)


def say(line: str) -> None:
    """Print one line of progress."""
    console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {line}")
