"""`ports.autoscaling.Maxima` in memory: one item a group, with the table's conditional writes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leeward.model.capacity import RaisedMaximum


class SimMaxima:
    """Raised maxima. `items` by group."""

    def __init__(self) -> None:
        self.items: dict[str, RaisedMaximum] = {}

    def read(self, group: str) -> RaisedMaximum | None:
        """Return the group's current item."""
        return self.items.get(group)

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """Return the current items of the groups."""
        return {name: self.items[name] for name in groups if name in self.items}

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """Write the item, only at the version that the caller read; None otherwise."""
        there = self.items.get(item.group)
        if item.version != (there.version if there is not None else 0):
            return None
        self.items[item.group] = replace(item, version=item.version + 1)
        return self.items[item.group]
