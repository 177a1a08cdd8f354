"""What every `ports.records.Upgrades` does: the table's adapter on a local DynamoDB, the simulation's model and the
fake."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.workflow_records import DynamoUpgrades
from leeward.model.launch import LaunchTemplateRef
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, LaunchOrder, OpenLaunch, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from simulation.aws.upgrades import SimUpgrades
from tests.contract.tables import TABLES, a_table
from tests.fakes.upgrades import FakeUpgrades

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
EIGHT = LaunchTemplateRef(id="lt-1", name="web", version="8")


@pytest.fixture(params=[*TABLES, "the model", "the fake"])
def upgrades(request, monkeypatch):
    if request.param in TABLES:
        with a_table(monkeypatch, request.param) as table:
            yield DynamoUpgrades(table)
    else:
        yield SimUpgrades() if request.param == "the model" else FakeUpgrades()


def a_record(**more):
    target = UpgradeTarget(template=EIGHT, overrides={"m6g.large": EIGHT}, source=("lt-1", "8"))
    given = {
        "group": "web-a",
        "target": target,
        "previous": replace(target, template=None, source=None),
        "strategy": Strategy.MINIMAL,
        "desired": 3,
        "maximum": 5,
        "began": NOW,
        "failed": ("node-a", "node-b"),
        "cordoned": True,
        "canary_done": NOW + timedelta(minutes=5),
        "orders": {"3": LaunchOrder(zone="a", subnet="subnet-a", count=2)},
        "ahead": {"i-0new": OpenLaunch(zone="a", offset_by="i-0old"), "i-0next": OpenLaunch(zone="b")},
    }
    return UpgradeRecord(**{**given, **more})


def test_there_is_none_before_it_is_written(upgrades):
    assert upgrades.read("web-a") is None


def test_many_are_read_together_and_groups_without_one_are_left_out(upgrades):
    written = {name: upgrades.write(a_record(group=name)) for name in (f"web-{number}" for number in range(130))}
    assert upgrades.read_all([*written, "batch"]) == written
    assert upgrades.read_all([]) == {}


def test_a_record_comes_back_as_it_was_one_version_later(upgrades):
    written = upgrades.write(a_record())
    assert written == a_record(version=1)
    assert upgrades.read("web-a") == written


def test_groups_are_kept_apart(upgrades):
    upgrades.write(a_record())
    assert upgrades.read("web") is None
    assert upgrades.write(a_record(group="web")) is not None


def test_only_who_read_the_newest_version_writes(upgrades):
    first = upgrades.write(a_record())
    second = upgrades.write(replace(first, gone=1))
    assert second.version == 2
    assert upgrades.write(replace(first, control=ControlRequest.PAUSE)) is None
    assert upgrades.read("web-a") == second


def test_a_new_upgrade_begins_only_when_the_last_one_has_ended(upgrades):
    first = upgrades.write(a_record())
    assert upgrades.write(a_record(began=NOW + timedelta(hours=1))) is None
    ended = upgrades.write(replace(first, ended=NOW))
    again = upgrades.write(a_record(began=NOW + timedelta(hours=1)))
    assert again == a_record(began=NOW + timedelta(hours=1), version=1)
    assert upgrades.write(replace(ended, control=ControlRequest.ROLLBACK)) is None


def test_a_writer_of_an_earlier_upgrade_does_not_meet_the_same_version_of_a_later_one(upgrades):
    first = upgrades.write(a_record())
    upgrades.write(replace(first, ended=NOW))
    later = upgrades.write(a_record(began=NOW + timedelta(hours=1)))
    assert upgrades.write(replace(first, gone=1)) is None
    assert upgrades.read("web-a") == later


def test_one_that_has_ended_may_be_rolled_back(upgrades):
    ended = upgrades.write(a_record(ended=NOW))
    assert upgrades.write(replace(ended, control=ControlRequest.ROLLBACK, ended=None)).version == 2
    assert upgrades.read("web-a").ended is None


def test_what_pre_flight_found_is_kept_beside_the_record_over_what_was_there(upgrades):
    assert upgrades.plan("web-a") is None
    upgrades.keep_plan("web-a", {"at": "then", "plan": {}})
    document = {"at": "now", "plan": {"surgeCost": 0.25, "waves": [["node-a"]], "findings": []}}
    upgrades.keep_plan("web-a", document)
    assert upgrades.plan("web-a") == document
    assert upgrades.plan("web") is None
    assert upgrades.read("web-a") is None
