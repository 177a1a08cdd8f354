"""Records on their way through the table: all of them as they are, unless environments of two versions share it."""

from typing import TypeVar

R = TypeVar("R")


class Wire:
    """What writers put into an item beside the record, and what readers make of it: nothing, by one version alone."""

    def written(self, key: str) -> None:
        """Observe a write of the calling environment."""

    def parsed(self, _key: str, record: R) -> R:
        """Return the record as the calling environment parses its item. May raise NewerRecordError."""
        return record
