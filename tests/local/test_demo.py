"""`make demo` as a user runs it: every promise kept, and nothing left behind."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.local


def processes():
    """Command lines of the local stack's processes that are alive now."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended while we looked
        if {"local.aws", "local.cluster"} & set(words) or "leeward-demo-" in " ".join(words):
            found.add((path.parent.name, " ".join(words)))
    return found


def test_the_demo_keeps_every_promise_and_leaves_no_process_or_port_behind():
    before = processes()
    done = subprocess.run(
        [sys.executable, "-m", "local.demo"], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BROKEN" not in done.stdout
    assert len(re.findall(r"^ +kept ", done.stdout, re.MULTILINE)) == 10
    assert processes() - before == set()
    ports = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", done.stdout)}
    assert len(ports) == 2
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
