"""Five calls of the table with plain Python values: the wire's types and the names of expressions stay here.

Texts, whole numbers, booleans, lists and maps are the only values of the records."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, is_lost_condition
from leeward.errors import ThrottledError

OPEN_INDEX = "open"
READ_TOGETHER = 100  # keys, as many as BatchGetItem takes
UNPROCESSED = 5  # repeated requests for the keys that an answer left over

Item = dict[str, Any]


class DynamoTable:
    """DynamoDB table with hash key `pk`. `#name` in an expression stands for the attribute `name`."""

    def __init__(self, clients: AwsClients, name: str) -> None:
        self._clients = clients
        self._name = name

    def get(self, pk: str) -> Item | None:
        """Read an item, strongly consistent."""
        with aws_call("dynamodb:GetItem", f"{self._name}/{pk}"):
            answer = self._client.get_item(TableName=self._name, Key=self._key(pk), ConsistentRead=True)
        item = answer.get("Item")
        return _plain(item) if item else None

    def get_all(self, pks: Iterable[str], *, consistent: bool = False) -> Iterator[Item]:
        """Yield the existing items, with one BatchGetItem for a hundred distinct keys. Keys that DynamoDB leaves over
        when it is throttled or the answer grows beyond 16 MB are requested again.
        """
        for some in chunks(pks, READ_TOGETHER):
            yield from self._get_some(some, consistent=consistent)

    def _get_some(self, pks: Iterable[str], *, consistent: bool) -> Iterator[Item]:
        wanted: dict[str, Any] = {self._name: {"Keys": [self._key(pk) for pk in pks], "ConsistentRead": consistent}}
        for _ in range(UNPROCESSED):
            with aws_call("dynamodb:BatchGetItem", self._name):
                answer = self._client.batch_get_item(RequestItems=wanted)
            yield from (_plain(item) for item in answer.get("Responses", {}).get(self._name, ()))
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                return
        raise ThrottledError(f"dynamodb:BatchGetItem on {self._name}: keys were left over {UNPROCESSED} times")

    def put(self, item: Item, *, condition: str, values: Mapping[str, Any] | None = None) -> tuple[bool, Item | None]:
        """Return (True, None), or (False, the present item) when the condition does not hold."""
        arguments: dict[str, Any] = {
            "TableName": self._name,
            "Item": _wire(item),
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        names = _names(condition)
        if names:
            arguments["ExpressionAttributeNames"] = names
        if values:
            arguments["ExpressionAttributeValues"] = _wire(values)
        with aws_call("dynamodb:PutItem", f"{self._name}/{item['pk']}"):
            try:
                self._client.put_item(**arguments)
            except ClientError as error:
                if not is_lost_condition(error):
                    raise
                there: Any = error.response.get("Item")
                return False, _plain(there) if there else None
        return True, None

    def put_version(self, item: Item, *, version: int, same: str) -> bool:
        """Write the next version of a record, its hash key among the attributes; return whether it is there. `version`:
        the one that was read, 0 for a new record, which may follow one that has ended. Versions restart with each
        record, so the attribute `same` must be the same.

        A writer whose answer got lost recognizes its own mark when botocore repeats the write.
        """
        mark = new_mark()
        condition, values = "attribute_not_exists(pk) OR attribute_exists(#ended)", dict[str, Any]()
        if version:
            condition = f"#version = :version AND #{same} = :same"
            values = {":version": version, ":same": item[same]}
        done, there = self.put({"by": mark, **item}, condition=condition, values=values)
        return done or (there is not None and there.get("by") == mark)

    def put_kept(self, item: Item) -> bool:
        """Write an item that is never deleted at the version after the one that was read, in its attribute `version`;
        return whether it is there. As `put_version` does, a repeated write recognizes its own mark, `writer`.
        """
        mark, read = new_mark(), item["version"] - 1
        condition = "#version = :version" if read else "attribute_not_exists(pk)"
        values = {":version": read} if read else None
        done, there = self.put({**item, "writer": mark}, condition=condition, values=values)
        return done or (there is not None and there.get("writer") == mark)

    def update(
        self,
        pk: str,
        expression: str,
        *,
        condition: str = "",
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
        mark: str = "",
    ) -> Item | None:
        """Return the item after the update, None when the condition does not hold. `names`: for parts that are data;
        `mark`: attribute that the update sets to `:mark`, a `new_mark`. By it a writer whose answer got lost recognizes
        its own write when botocore repeats it.
        """
        arguments: dict[str, Any] = {
            "TableName": self._name,
            "Key": self._key(pk),
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {**_names(f"{expression} {condition}"), **(names or {})},
            "ReturnValues": "ALL_NEW",
            **({"ConditionExpression": condition} if condition else {}),
            **({"ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if mark else {}),
        }
        if values:
            arguments["ExpressionAttributeValues"] = _wire(values)
        with aws_call("dynamodb:UpdateItem", f"{self._name}/{pk}"):
            try:
                answer = self._client.update_item(**arguments)
            except ClientError as error:
                if not is_lost_condition(error):
                    raise
                present: Any = error.response.get("Item")
                there = _plain(present or {})
                return there if mark and there.get(mark) == values[":mark"] else None
        return _plain(answer["Attributes"])

    def all_of(self, prefix: str) -> Iterator[Item]:
        """Yield all items whose hash key begins so, with a Scan; eventually consistent."""
        with aws_call("dynamodb:Scan", self._name):
            for page in pages(
                self._client,
                "scan",
                TableName=self._name,
                FilterExpression="begins_with(pk, :prefix)",
                ExpressionAttributeValues={":prefix": {"S": prefix}},
            ):
                yield from map(_plain, page.get("Items", ()))

    def open_keys(self, kind: str) -> Iterator[str]:
        """Yield the hash keys of all items whose attribute `open` is `kind`, from the sparse index."""
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


def new_mark() -> str:
    """Return a mark for one write: no other writer has it, and the same write has it when it is repeated."""
    return uuid.uuid4().hex


def to_wire(value: Any) -> Item:
    """Convert `"a"` to `{"S": "a"}`, recursively. Raises TypeError for values that records do not hold."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case Mapping():
            return {"M": {name: to_wire(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [to_wire(inner) for inner in value]}
        case _:
            raise TypeError(f"no attribute type for {type(value).__name__}")


def from_wire(value: Mapping[str, Any]) -> Any:
    """Convert a value back; a value that another writer stored in another type is returned unchanged."""
    ((kind, inner),) = value.items()
    match kind:
        case "N":
            return int(inner) if inner.lstrip("-").isdigit() else float(inner)
        case "M":
            return {name: from_wire(part) for name, part in inner.items()}
        case "L":
            return [from_wire(part) for part in inner]
        case "NULL":
            return None
        case _:
            return inner


def _wire(values: Mapping[str, Any]) -> Item:
    return {name: to_wire(value) for name, value in values.items()}


def _plain(values: Mapping[str, Any]) -> Item:
    return {name: from_wire(value) for name, value in values.items()}


def _names(expression: str) -> dict[str, str]:
    """Map `#status` to `status` for every placeholder of the expression."""
    words = expression.replace(".", " ").replace(",", " ").replace("(", " ").replace(")", " ").split()
    return {word: word[1:] for word in words if word.startswith("#")}


class Change:
    """UpdateExpression that grows by one assignment or removal at a time."""

    def __init__(self) -> None:
        self._sets: list[str] = []
        self._removes: list[str] = []
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def set(self, attribute: str, value: Any, *, keep: bool = False) -> None:
        """Set an attribute; `keep`: only where there is none yet."""
        new = self._value(value)
        self._sets.append(f"#{attribute} = {f'if_not_exists(#{attribute}, {new})' if keep else new}")

    def set_in(self, attribute: str, name: str, value: Any, *, keep: bool = False) -> None:
        """Set an entry of a map; `keep`: only where there is none yet."""
        path = f"#{attribute}.{self._name(name)}"
        new = self._value(value)
        self._sets.append(f"{path} = if_not_exists({path}, {new})" if keep else f"{path} = {new}")

    def remove_in(self, attribute: str, name: str) -> None:
        """Remove an entry of a map, if it is there."""
        self._removes.append(f"#{attribute}.{self._name(name)}")

    def written(self) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Return expression, names and values."""
        parts = [("SET", self._sets), ("REMOVE", self._removes)]
        expression = " ".join(f"{verb} {', '.join(items)}" for verb, items in parts if items)
        return expression, self._names, self._values

    def _name(self, name: str) -> str:
        placeholder = f"#n{len(self._names)}"
        self._names[placeholder] = name
        return placeholder

    def _value(self, value: Any) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder
