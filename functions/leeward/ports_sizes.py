"""Port for the maximum sizes that replacements have raised. The rest of the seam is `ports.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.maximum import RaisedMaximum


class Maxima(Protocol):
    """The table's items of raised maximum sizes, one for each group. Writes are conditional: the loser reads again."""

    def read(self, group: str) -> RaisedMaximum | None:
        """Return the item, strongly consistent; None for a group that was never raised."""
        ...

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """Return the items that exist, by group, strongly consistent; one call reads a hundred."""
        ...

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """Return the item with version + 1, written if the version that it carries is still the newest (0: there is
        none); None when another writer was faster.
        """
        ...
