"""`make demo` as a user runs it: every promise kept, and nothing left behind."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from tests.local.processes import processes_in

pytestmark = pytest.mark.local

PATIENCE = 1200  # seconds: only how long a demo that does not end takes


def test_the_demo_keeps_every_promise_and_leaves_no_process_or_port_behind(tmp_path):
    environment, began = {**os.environ, "TMPDIR": str(tmp_path)}, time.monotonic()
    running = subprocess.Popen(
        [sys.executable, "-m", "local.demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    deadline = began + PATIENCE
    while len(processes_in(tmp_path)) < 2:  # so that the check at the end is known to see the local stack
        assert time.monotonic() < deadline
        time.sleep(0.2)
    output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, output
    assert "BROKEN" not in output
    assert len(re.findall(r"^kept ", output, re.MULTILINE)) == 10
    report = re.search(r"drawn: (\S+)", output).group(1)
    record = RunRecord.from_json(json.loads(Path(report).with_name("record.json").read_text()))
    assert record.end - record.start < timedelta(seconds=time.monotonic() - began)
    assert len(record.nodes) >= 13  # ten, and three replacements
    assert not [workload.name for workload in record.workloads if workload.under]
    assert Path(report).read_text(encoding="utf-8") == page(record)
    assert processes_in(tmp_path) == []
    ports = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", output)}
    assert len(ports) == 2
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
