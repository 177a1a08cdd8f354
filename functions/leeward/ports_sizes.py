"""Port for the maximum sizes that replacements have raised. The rest of the seam is `ports.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.maximum import RaisedMaximum


class Maxima(Protocol):
    """The table's items of raised maximum sizes, one for each group. Conditional writes: the loser reads again."""

    def read(self, group: str) -> RaisedMaximum | None:
        """The item, strongly consistent; None for a group that was never raised."""
        ...

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """Those that are there, by group, strongly consistent; a hundred with each call."""
        ...

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """The item with version + 1, written if the version that it carries is still the newest (0: there is none);
        None when another writer was faster.
        """
        ...
