"""Lists of past events that stay small: the latest entries, counted from the beginning of the run.

The rules read new entries after every event, so what lies far back has been read; a run of a month would otherwise keep
all of it."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

T = TypeVar("T")
KEPT = 1000  # entries: many times what can happen between two reads


class Journal(Sequence[T]):
    """List that grows at its end. Its length and its positions count everything ever noted; iterating gives what is
    kept.
    """

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, kept: int = KEPT) -> None:
        self._latest: deque[T] = deque(maxlen=kept)
        self._noted = 0

    def append(self, entry: T) -> None:
        """Add an entry; the oldest may be forgotten."""
        self._latest.append(entry)
        self._noted += 1

    def __len__(self) -> int:
        return self._noted

    def __iter__(self) -> Iterator[T]:
        return iter(self._latest)

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> list[T]: ...
    def __getitem__(self, position: int | slice) -> T | list[T]:
        """Return the entry or entries. Raises IndexError for a forgotten one, so that no reader skips it silently."""
        forgotten = self._noted - len(self._latest)
        if isinstance(position, slice):
            begin, end, step = position.indices(self._noted)
            self._check(begin, forgotten, empty=begin >= end)
            return list(islice(self._latest, max(begin - forgotten, 0), max(end - forgotten, 0), step))
        at = position if position >= 0 else position + self._noted
        self._check(at, forgotten, empty=False)
        return self._latest[at - forgotten]

    def __eq__(self, other: object) -> bool:
        """Compare what is kept, also with a list."""
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    def __repr__(self) -> str:
        return f"Journal({list(self)!r})"

    def _check(self, position: int, forgotten: int, *, empty: bool) -> None:
        if not empty and not forgotten <= position < self._noted:
            raise IndexError(f"entry {position}: found {forgotten} to {self._noted - 1}")
