"""Runner of the `leeward` command on the local stack, as a person types it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from leeward.adapters.wiring import command_line_ports
from leeward.ports import Ports
from local.stack import LocalStack, LocalStackError
from local.stage import WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Output of the command, and its exit code."""

    code: int
    text: str

    @property
    def document(self) -> dict[str, Any]:
        """JSON document of `-o json`."""
        found: dict[str, Any] = json.loads(self.text)
        return found


def leeward(stack: LocalStack, *arguments: str) -> Said:
    """Run the command in a process of its own. Raises LocalStackError if the command rejects its input."""
    done = subprocess.run(
        [sys.executable, "-m", "leeward.cli.main", *arguments],
        env={**stack.environment(), "COLUMNS": str(WIDTH)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 1} or (done.returncode and not done.stdout):
        raise LocalStackError(f"leeward {' '.join(arguments)}: {done.stderr.strip()}")
    return Said(code=done.returncode, text=done.stdout)


@contextmanager
def acting_on(stack: LocalStack) -> Iterator[Ports]:
    """Give the ports of the command line on the stack; until the end of the block this process has the stack's
    environment.
    """
    before = dict(os.environ)
    os.environ.update(stack.environment())
    try:
        yield command_line_ports(stack.cluster)
    finally:
        os.environ.clear()
        os.environ.update(before)
