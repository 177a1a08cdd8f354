"""`ports.autoscaling.Maxima` on DynamoDB: one item a group, `maximum#GROUP`, written at the version that was read."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from leeward.adapters.aws.table import Item, Table
from leeward.model.maximum import RaisedMaximum
from leeward.model.times import format_instant, parse_instant

MAXIMUM = "maximum"  # first part of an item's key


class DynamoMaxima:
    """Raised maximum sizes in the table `leeward`. Items stay: a version that begins again would be met twice."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, group: str) -> RaisedMaximum | None:
        """Read the item with one GetItem, strongly consistent."""
        item = self._table.get(_key(group))
        return _made(item) if item is not None else None

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """Read the items with BatchGetItem, a hundred at a time."""
        items = [_made(item) for item in self._table.get_all(map(_key, groups), consistent=True)]
        return {item.group: item for item in items}

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """Write the item with one conditional PutItem."""
        written = replace(item, version=item.version + 1)
        return written if self._table.put_kept(_item(written)) else None


def _key(group: str) -> str:
    return f"{MAXIMUM}#{group}"


def _item(raised: RaisedMaximum) -> Item:
    item: Item = {
        "pk": _key(raised.group),
        "before": raised.before,
        "raised": list(raised.raised),
        "holders": list(raised.holders),
        "version": raised.version,
    }
    return {**item, "restoring": format_instant(raised.restoring)} if raised.restoring is not None else item


def _made(item: Mapping[str, Any]) -> RaisedMaximum:
    restoring = item.get("restoring")
    return RaisedMaximum(
        group=str(item["pk"]).removeprefix(f"{MAXIMUM}#"),
        before=item["before"],
        raised=tuple(item["raised"]),
        holders=tuple(item["holders"]),
        restoring=parse_instant(restoring) if restoring else None,
        version=item["version"],
    )
