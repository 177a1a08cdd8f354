"""Parts of mappings and journals that belong to one of several clusters, read from the whole at each call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

from simulation.journal import Journal

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Part(Mapping[K, V]):
    """Entries of a mapping that `mine` accepts."""

    def __init__(self, whole: Callable[[], Mapping[K, V]], mine: Callable[[K], bool]) -> None:
        self._whole, self._mine = whole, mine

    def __getitem__(self, key: K) -> V:
        if not self._mine(key):
            raise KeyError(key)
        return self._whole()[key]

    def __iter__(self) -> Iterator[K]:
        return iter([key for key in self._whole() if self._mine(key)])

    def __len__(self) -> int:
        return sum(map(self._mine, self._whole()))


class Excerpt(Sequence[T]):
    """Entries of a growing list that `mine` accepts; it grows at its end too."""

    def __init__(self, whole: Sequence[T], mine: Callable[[T], bool]) -> None:
        self._whole, self._mine = whole, mine
        self._read = 0
        self._kept = Journal[T]()

    def __len__(self) -> int:
        return len(self._caught_up())

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[T]: ...
    def __getitem__(self, position: int | slice) -> T | Sequence[T]:
        """Return the entry or entries. Raises IndexError for one that the journal has forgotten."""
        return self._caught_up()[position]

    def __iter__(self) -> Iterator[T]:
        return iter(self._caught_up())

    def _caught_up(self) -> Journal[T]:
        there = len(self._whole)
        if self._read < there:
            for entry in self._whole[self._read :]:
                if self._mine(entry):
                    self._kept.append(entry)
            self._read = there
        return self._kept
