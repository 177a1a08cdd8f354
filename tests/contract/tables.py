"""Table `leeward` on a local DynamoDB; one where the answer to the first try of each write is lost, and botocore sends
it again."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.table import DynamoTable

TABLES = (TABLE, REPEATED) = ("the table", "the table with each write twice")
WRITES = {"put_item", "update_item", "delete_item"}


def make_table(name="leeward"):
    boto3.client("dynamodb", region_name="us-east-1").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "open")],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [{"AttributeName": "open", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )


class Repeating:
    """A client of DynamoDB that carries out each write twice and shows the second answer alone."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def twice(**arguments: Any) -> Any:
            with suppress(ClientError):
                call(**arguments)
            return call(**arguments)

        return twice if name in WRITES else call


@contextmanager
def a_table(monkeypatch: pytest.MonkeyPatch, kind: str = TABLE) -> Iterator[DynamoTable]:
    """The table, empty; `kind`: one of TABLES."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        if kind == REPEATED:
            client = Repeating(AwsClients("us-east-1").get("dynamodb"))
            monkeypatch.setattr(DynamoTable, "_client", property(lambda _: client))
        yield DynamoTable(AwsClients("us-east-1"), "leeward")
