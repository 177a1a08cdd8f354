"""Lists of past events that stay small: the latest entries, with their positions since the beginning of the run.

The rules read new entries after every event, so old entries have been read. Without a limit, a run of a month would
keep all of them."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

T = TypeVar("T")
KEPT = 10_000  # entries: more than a storm of thousands of warnings adds between two reads


class Journal(Sequence[T]):
    """List that grows at its end and forgets its oldest entries. Its length and positions count all entries ever added;
    iteration yields the kept ones.
    """

    __hash__ = None  # type: ignore[assignment]  # a mutable object with __eq__

    def __init__(self, kept: int = KEPT) -> None:
        self._latest: deque[T] = deque(maxlen=kept)
        self._added = 0

    def append(self, entry: T) -> None:
        """Add an entry. Beyond `kept` entries the oldest is forgotten."""
        self._latest.append(entry)
        self._added += 1

    def __len__(self) -> int:
        return self._added

    def __iter__(self) -> Iterator[T]:
        return iter(self._latest)

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> list[T]: ...
    def __getitem__(self, position: int | slice) -> T | list[T]:
        """Return the entry or entries. Raises IndexError for a forgotten one, so that no reader skips it silently. The
        step of a slice is positive.
        """
        forgotten = self._added - len(self._latest)
        if isinstance(position, slice):
            begin, end, step = position.indices(self._added)
            self._check(begin, forgotten, empty=begin >= end)
            return list(islice(self._latest, max(begin - forgotten, 0), max(end - forgotten, 0), step))
        at = position if position >= 0 else position + self._added
        self._check(at, forgotten, empty=False)
        return self._latest[at - forgotten]

    def __eq__(self, other: object) -> bool:
        """Compare the kept entries with those of any sequence."""
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    def __repr__(self) -> str:
        return f"Journal({list(self)!r})"

    def _check(self, position: int, forgotten: int, *, empty: bool) -> None:
        if not empty and not forgotten <= position < self._added:
            raise IndexError(f"entry {position}: found {forgotten} to {self._added - 1}")
