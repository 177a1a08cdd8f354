"""The table's four calls with plain Python values: the wire's types and the names of expressions stay here."""

from collections.abc import Iterator, Mapping
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from leeward.adapters.aws.batches import pages
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call, is_lost_condition

OPEN_INDEX = "open"

Item = dict[str, Any]


class Table:
    """One DynamoDB table with hash key `pk`. `#name` in an expression stands for the attribute `name`."""

    def __init__(self, clients: AwsClients, name: str) -> None:
        self._clients = clients
        self._name = name
        self._serializer: Any = TypeSerializer()
        self._deserializer: Any = TypeDeserializer()

    def get(self, pk: str) -> Item | None:
        """Strongly consistent."""
        with aws_call("dynamodb:GetItem", f"{self._name}/{pk}"):
            answer = self._client.get_item(TableName=self._name, Key=self._key(pk), ConsistentRead=True)
        item = answer.get("Item")
        return self._plain(item) if item else None

    def put(self, item: Item, *, condition: str, values: Mapping[str, Any] | None = None) -> tuple[bool, Item | None]:
        """(True, None), or (False, the item that is there) when the condition does not hold."""
        arguments: dict[str, Any] = {
            "TableName": self._name,
            "Item": self._wire(item),
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        names = _names(condition)
        if names:
            arguments["ExpressionAttributeNames"] = names
        if values:
            arguments["ExpressionAttributeValues"] = self._wire(values)
        with aws_call("dynamodb:PutItem", f"{self._name}/{item['pk']}"):
            try:
                self._client.put_item(**arguments)
            except ClientError as error:
                if not is_lost_condition(error):
                    raise
                there = error.response.get("Item")
                return False, self._plain(there) if there else None
        return True, None

    def update(
        self,
        pk: str,
        expression: str,
        *,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Item | None:
        """The item after the update, None when the condition does not hold. `names`: for parts that are data."""
        arguments: dict[str, Any] = {
            "TableName": self._name,
            "Key": self._key(pk),
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {**_names(f"{expression} {condition}"), **(names or {})},
            "ReturnValues": "ALL_NEW",
        }
        if values:
            arguments["ExpressionAttributeValues"] = self._wire(values)
        with aws_call("dynamodb:UpdateItem", f"{self._name}/{pk}"):
            try:
                answer = self._client.update_item(**arguments)
            except ClientError as error:
                if not is_lost_condition(error):
                    raise
                return None
        return self._plain(answer["Attributes"])

    def open_keys(self, kind: str) -> Iterator[str]:
        """Hash keys of all items whose attribute `open` says `kind`, from the sparse index."""
        with aws_call("dynamodb:Query", f"{self._name}/{OPEN_INDEX}"):
            for page in pages(
                self._client,
                "query",
                TableName=self._name,
                IndexName=OPEN_INDEX,
                KeyConditionExpression="#open = :open",
                ExpressionAttributeNames={"#open": "open"},
                ExpressionAttributeValues={":open": {"S": kind}},
            ):
                yield from (item["pk"]["S"] for item in page.get("Items", ()))

    @property
    def _client(self) -> Any:
        return self._clients.get("dynamodb")

    def _key(self, pk: str) -> Item:
        return {"pk": {"S": pk}}

    def _wire(self, values: Mapping[str, Any]) -> Item:
        return {name: self._serializer.serialize(value) for name, value in values.items()}

    def _plain(self, values: Mapping[str, Any]) -> Item:
        return {name: self._deserializer.deserialize(value) for name, value in values.items()}


def _names(expression: str) -> dict[str, str]:
    """`#status` -> `status` for every placeholder of the expression."""
    words = expression.replace(".", " ").replace(",", " ").replace("(", " ").replace(")", " ").split()
    return {word: word[1:] for word in words if word.startswith("#")}
