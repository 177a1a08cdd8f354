"""`make demo-consolidate` as a user runs it: every promise kept, and the dollars reported."""

import os
import re
import subprocess
import sys

import pytest

from tests.local.processes import processes_in

pytestmark = [pytest.mark.local, pytest.mark.long]

PROMISES = 11


def test_the_consolidation_demo_keeps_every_promise_and_says_what_is_saved(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "local.demo_consolidate"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=1800,  # only how long one that does not end takes
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "BROKEN" not in done.stdout
    assert len(re.findall(r"^kept ", done.stdout, re.MULTILINE)) == PROMISES
    assert re.search(r"\$1\.056 an hour saved", done.stdout)
    assert processes_in(tmp_path) == []
