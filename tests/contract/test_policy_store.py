"""What every `ports.records.PolicyStore` does: the table's adapter on a local DynamoDB, and the simulation's model."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from moto import mock_aws

from leeward.adapters.aws.applied_policies import DynamoPolicies
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.table import DynamoTable
from leeward.policy.document import LARGEST_SET, AppliedPolicies
from simulation.aws.applied_policies import SimPolicyStore
from tests.contract.tables import TABLES, a_table

SET = AppliedPolicies(
    cluster="blue",
    documents=(("01-web", '{"kind":"NodePolicy"}'), ("02-ünï", "{}")),
    by="arn:aws:iam::111122223333:role/ops",
    at=datetime(2026, 3, 2, 10, 0, tzinfo=UTC),
)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


@pytest.fixture(params=[*TABLES, "the model"])
def store(request, monkeypatch):
    if request.param in TABLES:
        with a_table(monkeypatch, request.param) as table:
            yield DynamoPolicies(table)
    else:
        yield SimPolicyStore()


def test_a_cluster_to_which_none_was_applied_has_no_item(store):
    assert store.read("blue") == AppliedPolicies(cluster="blue")


def test_a_set_comes_back_as_it_was_one_version_later(store):
    assert store.write(SET) == replace(SET, version=1) == store.read("blue")
    assert store.read("green").version == 0


def test_only_who_read_the_newest_version_writes(store):
    first = store.write(SET)
    assert store.write(replace(SET, by="another")) is None
    second = store.write(replace(first, documents=()))
    assert store.read("blue") == second == replace(SET, version=2, documents=())


def test_the_largest_set_fits_one_item(store):
    assert store.write(replace(SET, documents=(("01-web", "x" * LARGEST_SET),))) is not None


def test_where_nothing_is_deployed_nothing_is_applied():
    with mock_aws():
        assert DynamoPolicies(DynamoTable(AwsClients("us-east-1"), "leeward")).read("blue").documents == ()
