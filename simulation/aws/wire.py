"""Records on their way through the table: all of them as they are, unless environments of two versions share it."""

from typing import TypeVar

R = TypeVar("R")


class Wire:
    """Additions to items by writers, and their parse by readers. Environments of a single version add nothing."""

    def written(self, key: str) -> None:
        """Observe a write of the calling environment."""

    def parsed(self, _key: str, record: R) -> R:
        """Return the record as the calling environment parses its item. May raise NewerRecordError."""
        return record
