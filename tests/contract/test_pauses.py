"""What every `ports.records.PauseSwitches` does: the table's adapter on a local DynamoDB, the simulation's model, the
fake."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from moto import mock_aws

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.pauses import DynamoPauses
from leeward.adapters.aws.table import DynamoTable
from leeward.model.pause import PauseRecord, PauseScope
from simulation.aws.pauses import SimPauses
from tests.contract.tables import TABLES, a_table
from tests.fakes.builders import a_pause
from tests.fakes.pauses import FakePauses

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
PAUSED = PauseRecord(cluster="blue").paused(a_pause()).paused(a_pause(group="web-a", until=NOW, scope=PauseScope.ALL))


@pytest.fixture(params=[*TABLES, "the model", "the fake"])
def switches(request, monkeypatch):
    if request.param in TABLES:
        with a_table(monkeypatch, request.param) as table:
            yield DynamoPauses(table)
    else:
        yield SimPauses() if request.param == "the model" else FakePauses()


def test_a_cluster_that_was_never_paused_has_no_item(switches):
    assert switches.read("blue") == PauseRecord(cluster="blue")


def test_a_record_comes_back_as_it_was_one_version_later(switches):
    assert switches.write(PAUSED) == replace(PAUSED, version=1) == switches.read("blue")
    resumed = switches.write(replace(PAUSED, version=1).resumed("web-a", "arn:b", "over"))
    assert (resumed.version, resumed.by, [pause.group for pause in resumed.pauses]) == (2, "arn:b", [""])
    assert switches.read("blue") == resumed


def test_only_who_read_the_newest_version_writes(switches):
    first = switches.write(PAUSED)
    assert switches.write(PAUSED) is None
    second = switches.write(first.resumed("", "arn:b", "over"))
    assert switches.write(first.resumed("web-a", "arn:c", "over")) is None
    assert switches.read("blue") == second


def test_where_nothing_is_deployed_nothing_is_paused(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        assert DynamoPauses(DynamoTable(AwsClients("us-east-1"), "leeward")).read("blue").pauses == ()
