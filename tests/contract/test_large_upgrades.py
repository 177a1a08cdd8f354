"""An upgrade of 5,000 nodes fits the items of a DynamoDB table, 400 KB each, whatever becomes of its nodes."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from moto import mock_aws

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.table import DynamoTable, to_wire
from leeward.adapters.aws.workflow_records import DynamoUpgrades
from leeward.model.codec import encode
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord
from leeward.upgrade.capacity_ledger import conclude, with_warning
from leeward.upgrade.preflight.findings import Code, warning
from leeward.upgrade.preflight.gather import MOST_FINDINGS
from leeward.upgrade.preflight.plan import UpgradePlan
from leeward.upgrade.record import OpenLaunch, cause_id, tag_for
from leeward.upgrade.surge.sizes import Strategy, sizes
from leeward.upgrade.waves.drain_selection import TRIES
from tests.contract.tables import make_table
from tests.contract.test_upgrades import NOW, a_record
from tests.fakes.builders import a_subject

NODES, TOGETHER = 5000, 100
IDS = [f"i-{number:017x}" for number in range(NODES)]
BUDGET = "shop/checkout-frontend-7d5f6b9c4-x2x5q: PodDisruptionBudget shop/checkout-frontend allows no disruption"
LIMIT = 400_000


@pytest.fixture
def upgrades(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        yield DynamoUpgrades(DynamoTable(AwsClients("us-east-1"), "leeward"))


def returned(record, instance):
    cause = Cause(id=cause_id(record, instance), kind=CauseKind.UPGRADE, at=NOW)
    return TerminationRecord(
        subject=a_subject(instance),
        status=Status.CLOSED,
        outcome=Outcome.RETURNED_TO_SERVICE,
        attempt=1,
        version=1,
        causes=(cause,),
        blocked_by=(BUDGET,) * 5,
    )


def with_every_drain_failed():
    """Each of the nodes was tried as often as one start tries it, and was returned."""
    record = a_record(failed=(), desired=NODES, maximum=NODES + TOGETHER)
    for _ in range(TRIES):
        for first in range(0, NODES, TOGETHER):
            going = IDS[first : first + TOGETHER]
            record = replace(record, under_way={one: tag_for(record, number) for number, one in enumerate(going)})
            record = conclude(record, {one: returned(record, one) for one in going}).record
    return record


def in_full_swing(record):
    """As many on their way and launched ahead as there can be, and twenty remarks about all of them."""
    going, new = IDS[:TOGETHER], [f"i-{number:017x}" for number in range(NODES, NODES + TOGETHER)]
    record = replace(
        record,
        under_way={one: tag_for(record, number) for number, one in enumerate(going)},
        ahead={one: OpenLaunch(zone="us-east-1a", offset_by=old) for one, old in zip(new, going, strict=True)},
        given_up=tuple(IDS[-200:]),
        phase_since=NOW + timedelta(hours=1),
    )
    for number in range(30):
        record = with_warning(record, f"{number}: {', '.join(IDS)} never joined the cluster and were ended")
    return record


def size(item):
    """At least what DynamoDB counts: names and values as UTF-8."""
    return len(json.dumps({name: to_wire(value) for name, value in item.items()}))


def test_a_record_of_5000_nodes_whose_drains_have_all_failed_is_written_and_read_again(upgrades):
    record = in_full_swing(with_every_drain_failed())
    assert len(record.failed) == NODES * TRIES
    written = upgrades.write(record)
    assert upgrades.read(record.group) == written
    compact = sum(len(name) + 1 for name in record.failed) + size(encode(replace(record, failed=())))
    assert compact < LIMIT * 0.75


def test_the_latest_failures_are_kept_with_their_reasons():
    record = with_every_drain_failed()
    assert len(record.reasons) == 100
    assert IDS[-1] in record.reasons


def test_a_plan_of_5000_nodes_is_kept_and_read_again(upgrades):
    names = [f"ip-10-{number // 250}-{number % 250}-17.ap-southeast-2.compute.internal" for number in range(NODES)]
    found = [warning(Code.PDB_ALLOWS_NONE_NOW, f"pdb shop/checkout-{n}", BUDGET, BUDGET) for n in range(MOST_FINDINGS)]
    plan = UpgradePlan(
        group="web-a",
        strategy=Strategy.DEFAULT,
        parallel=TOGETHER,
        surge=TOGETHER,
        sizes=sizes(desired=NODES, maximum=NODES, extra=TOGETHER),
        waves=tuple(tuple(names[first : first + TOGETHER]) for first in range(0, NODES, TOGETHER)),
        seconds=9000,
        cost=12.5,
        findings=tuple(found),
    )
    upgrades.keep_plan("web-a", {"plan": plan.to_json()})
    kept = upgrades.plan("web-a")
    assert kept is not None
    assert UpgradePlan.from_json(kept["plan"]) == plan
