"""Records in memory that are written at the version that their writer has read, as `put_version` of the table does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from leeward.disruption.record import DisruptionRecord
from leeward.upgrade.record import UpgradeRecord
from simulation.aws.wire import Wire

R = TypeVar("R", DisruptionRecord, UpgradeRecord)


class VersionedRecords(Generic[R]):
    """One record for each key. `key` and `same` name fields of the record: its key, and what distinguishes one run
    or upgrade of the key from the next. `wrote` receives every write, with the record before it.
    """

    def __init__(self, *, key: str, same: str, wrote: Callable[[R | None, R], None]) -> None:
        self._key, self._same = key, same
        self._wrote: Callable[[R | None, R], None] = wrote
        self.records: dict[str, R] = {}
        self.wire = Wire()

    def read(self, key: str) -> R | None:
        """Return the record as the caller parses its item."""
        there = self.records.get(key)
        return None if there is None else self.wire.parsed(self._named(key), there)

    def write(self, record: R) -> R | None:
        """Write the record, only at the version that the caller read, of the same run; a first one where no open record
        is in its way. None otherwise.
        """
        key: str = getattr(record, self._key)
        there = self.records.get(key)
        if record.version:
            same = there is not None and getattr(there, self._same) == getattr(record, self._same)
            free = same and there is not None and there.version == record.version
        else:
            free = there is None or there.ended is not None
        if not free:
            return None
        written = replace(record, version=record.version + 1)
        self.records[key] = written
        self.wire.written(self._named(key))
        self._wrote(there, written)
        return written

    def _named(self, key: str) -> str:
        return f"{self._key}#{key}"
