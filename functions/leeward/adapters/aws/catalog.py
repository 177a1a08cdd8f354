"""`ports.Catalog` on DynamoDB: one item per cluster and kind, its content as compressed JSON.

The facts of 500 instance types are about 15 KB so, far from the 400 KB of an item."""

import base64
import json
import math
import zlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from leeward.adapters.aws.table import Table
from leeward.model.facts import FactKind, Sheet
from leeward.model.times import format_instant, parse_instant

FACTS = "facts"
KEPT = timedelta(days=7)  # of a cluster that is served no more


class DynamoCatalog:
    """Sheets in the table `leeward`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """All sheets of the cluster with one BatchGetItem."""
        kinds = {facts_key(cluster, kind): kind for kind in FactKind}
        return {kinds[item["pk"]]: _sheet(item) for item in self._table.get_all(kinds)}

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Overwrite, unless a later look is there already: of two syncs at once the later one stays."""
        synced = format_instant(sheet.synced)
        self._table.put(
            {
                "pk": facts_key(cluster, kind),
                "synced": synced,
                "content": _packed(sheet.content),
                "expires": math.ceil((sheet.synced + KEPT).timestamp()),
            },
            condition="attribute_not_exists(pk) OR #synced <= :synced",
            values={":synced": synced},
        )


def facts_key(cluster: str, kind: FactKind) -> str:
    """`facts#CLUSTER#KIND`; a cluster's name has no `#`."""
    return f"{FACTS}#{cluster}#{kind.value}"


def _sheet(item: Mapping[str, Any]) -> Sheet:
    content = json.loads(zlib.decompress(base64.b64decode(item["content"])))
    return Sheet(synced=parse_instant(item["synced"]), content=content)


def _packed(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
