"""Demos as a user runs them."""

import os
import re
import subprocess
import sys

from tests.local.processes import processes_in


def demo(name, tmp_path, *arguments, promises):
    """Run it to its end and return what it printed. Its local stack lives below `tmp_path`."""
    done = subprocess.run(
        [sys.executable, "-m", f"local.{name}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=1800,  # only how long one that does not end takes
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "BROKEN" not in done.stdout
    assert len(re.findall(r"^kept ", done.stdout, re.MULTILINE)) == promises
    assert processes_in(tmp_path) == []
    return done.stdout
