"""Many termination records of which some may be malformed, or of a newer version: the others are read all the same.

A step that reads the records of other nodes must not fail for one of them. What it takes an unreadable record for is
decided where it is read: the assumption that harms least."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from leeward.errors import LeewardError, NewerRecordError, UnexpectedError
from leeward.isolation import attempt
from leeward.model.termination import TerminationRecord
from leeward.ports.records import Claims


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableRecords:
    """Existing records by instance. `unreadable`: instances whose record cannot be parsed, and why."""

    read: Mapping[str, TerminationRecord] = field(default_factory=dict)
    unreadable: Mapping[str, LeewardError] = field(default_factory=dict)


def read_apart(instances: Iterable[str], claims: Claims) -> ReadableRecords:
    """Read the records in one call; where one of them cannot be parsed, in halves until it is alone. Raises the table's
    errors: an unknown record must not be taken for a missing one.
    """
    names = list(dict.fromkeys(instances))
    if not names:
        return ReadableRecords()
    together = attempt(lambda: claims.read_all(names))
    if not isinstance(together, LeewardError):
        return ReadableRecords(read=together)
    if not isinstance(together, NewerRecordError | UnexpectedError):
        raise together
    if len(names) == 1:
        return ReadableRecords(unreadable={names[0]: together})
    halves = [read_apart(part, claims) for part in (names[: len(names) // 2], names[len(names) // 2 :])]
    first, second = halves
    return ReadableRecords(read={**first.read, **second.read}, unreadable={**first.unreadable, **second.unreadable})
