"""`make demo-upgrade` as a user runs it: every promise kept, whether or not the execution is stopped on its way."""

import json
import re
from pathlib import Path

import pytest

from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from tests.local.demos import demo

pytestmark = [pytest.mark.local, pytest.mark.long]  # in each run a deployed stack rolls groups (chain/upgrades)

PROMISES, OF_THE_SMALL_ONE = 13, 11  # two of them are about budgets in the way


def test_the_upgrade_demo_names_both_budgets_and_keeps_every_promise(tmp_path):
    output = demo("demo_upgrade", tmp_path, promises=PROMISES)
    assert "blocker: PdbNeverAllows" in output
    assert re.search(r"upgrading: .*held by pdb default/orders, about \d+ s left", output)
    report = re.search(r"drawn: (\S+)", output).group(1)
    record = RunRecord.from_json(json.loads(Path(report).with_name("record.json").read_text()))
    assert len({node.instance for node in record.nodes}) == 24  # twelve old, twelve new
    assert not [workload.name for workload in record.workloads if workload.under]
    assert Path(report).read_text(encoding="utf-8") == page(record)


def test_a_small_upgrade_that_is_killed_and_started_again_ends_with_all_nodes_new_and_everything_restored(tmp_path):
    output = demo("demo_upgrade", tmp_path, "--small", "--kill-at", "5", promises=OF_THE_SMALL_ONE)
    assert "killed shop-workers-1 after" in output
    assert "SUCCEEDED; ABORTED (killed by the demo)" in output


@pytest.mark.parametrize("seed", range(1, 11))
def test_a_killed_upgrade_that_is_started_again_ends_with_all_nodes_new_and_everything_restored(tmp_path, seed):
    output = demo(tmp_path, "--kill-at", str(seed))
    assert "killed shop-workers-1 after" in output
