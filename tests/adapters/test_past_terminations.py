"""All termination records of a cluster, from the whole table; on moto's DynamoDB."""

from dataclasses import replace
from datetime import timedelta

import pytest
from moto import mock_aws

from leeward.adapters.aws.claims import DynamoClaims
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.past_terminations import DynamoPastTerminations
from leeward.adapters.aws.table import DynamoTable
from leeward.model.termination import Outcome, Status
from tests.contract.tables import make_table
from tests.contract.test_claims import NOW, a_cause, a_subject
from tests.fakes.builders import DEPLOYMENT
from tests.fakes.clock import FakeClock


@pytest.fixture
def table(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        yield DynamoTable(AwsClients("us-east-1"), "leeward")


def test_open_and_closed_records_of_one_cluster_are_read(table):
    claims = DynamoClaims(table, FakeClock(), DEPLOYMENT)
    for instance, cluster in (("i-0bbb", "blue"), ("i-0aaa", "blue"), ("i-0ccc", "green")):
        claims.claim(replace(a_subject(instance), cluster=cluster), a_cause(f"event-{instance}"), NOW)
    claims.once("health#1", timedelta(days=1), NOW)  # an item that is no record
    claims.close("i-0bbb", version=1, outcome=Outcome.TERMINATED, now=NOW)
    found = DynamoPastTerminations(table).of_cluster("blue")
    assert [(record.instance, record.status) for record in found] == [
        ("i-0aaa", Status.OPEN),
        ("i-0bbb", Status.CLOSED),
    ]


def test_a_table_of_several_pages_is_read_whole(table):
    claims = DynamoClaims(table, FakeClock(), DEPLOYMENT)
    names = [f"i-{number:017x}" for number in range(12)]
    for name in names:
        claims.claim(a_subject(name), a_cause(f"event-{name}", reason="x" * 100_000), NOW)  # a page has one megabyte
    assert [record.instance for record in DynamoPastTerminations(table).of_cluster("blue")] == names
