"""`make demo-upgrade` as a user runs it: every promise kept, whether or not the execution is stopped on its way."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from tests.local.processes import processes_in

pytestmark = [pytest.mark.local, pytest.mark.long]  # in each run a deployed stack rolls groups (chain/upgrades)

PROMISES, OF_THE_SMALL_ONE = 13, 11  # two of them are about budgets in the way


def demo(tmp_path, *arguments, promises=PROMISES):
    """Run it to its end; what it printed. Its local stack lives below `tmp_path`."""
    done = subprocess.run(
        [sys.executable, "-m", "local.demo_upgrade", *arguments],
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


def test_the_upgrade_demo_names_both_budgets_and_keeps_every_promise(tmp_path):
    output = demo(tmp_path)
    assert "blocker: PdbNeverAllows" in output
    assert re.search(r"upgrading: .*held by pdb default/orders, about \d+ s left", output)
    report = re.search(r"drawn: (\S+)", output).group(1)
    record = RunRecord.from_json(json.loads(Path(report).with_name("record.json").read_text()))
    assert len({node.instance for node in record.nodes}) == 24  # twelve old, twelve new
    assert not [workload.name for workload in record.workloads if workload.under]
    assert Path(report).read_text(encoding="utf-8") == page(record)


def test_a_small_upgrade_that_is_killed_and_started_again_ends_with_all_nodes_new_and_everything_restored(tmp_path):
    output = demo(tmp_path, "--small", "--kill-at", "5", promises=OF_THE_SMALL_ONE)
    assert "killed shop-workers-1 after" in output
    assert "SUCCEEDED; ABORTED (killed by the demo)" in output


@pytest.mark.parametrize("seed", range(1, 11))
def test_a_killed_upgrade_that_is_started_again_ends_with_all_nodes_new_and_everything_restored(tmp_path, seed):
    output = demo(tmp_path, "--kill-at", str(seed))
    assert "killed shop-workers-1 after" in output
