"""`ports.autoscaling.Maxima` on DynamoDB: one item a group, `maximum#GROUP`, written at the version that was read.
A group of another account or Region than the deployment's own has `ACCOUNT/REGION/` before its name in the key."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leeward.adapters.aws.table import DynamoTable
from leeward.model.capacity import RaisedMaximum
from leeward.model.codec import decode, encode

MAXIMUM = "maximum"  # first part of an item's key


class DynamoMaxima:
    """Raised maximum sizes in the table `leeward`. Items stay: a version that begins again would be met twice."""

    def __init__(self, table: DynamoTable, scope: str = "") -> None:
        """`scope`: `ACCOUNT/REGION/` of groups elsewhere, before their names in the keys."""
        self._table = table
        self._prefix = f"{MAXIMUM}#{scope}"

    def read(self, group: str) -> RaisedMaximum | None:
        """Read the item with one GetItem, strongly consistent."""
        item = self._table.get(self._key(group))
        return decode(RaisedMaximum, item) if item is not None else None

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """Read the items with BatchGetItem, a hundred at a time."""
        items = [decode(RaisedMaximum, item) for item in self._table.get_all(map(self._key, groups), consistent=True)]
        return {item.group: item for item in items}

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """Write the item with one conditional PutItem."""
        written = replace(item, version=item.version + 1)
        return written if self._table.put_kept({"pk": self._key(item.group), **encode(written)}) else None

    def _key(self, group: str) -> str:
        return f"{self._prefix}{group}"
