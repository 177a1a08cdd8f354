"""Doing one thing for many items at a time. Who calls may put another way in its place: one after the other."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """`do` for every item, at most `workers` at a time; the answers in the items' order."""

    def __call__(self, do: Callable[[T], R], items: Sequence[T], workers: int, /) -> Sequence[R]:
        """What `do` raises is raised."""
        ...


def in_threads(do: Callable[[T], R], items: Sequence[T], workers: int, /) -> Sequence[R]:
    """A pool of threads for this one call."""
    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(items)))) as pool:
        return list(pool.map(do, items))


def in_turn(do: Callable[[T], R], items: Sequence[T], _workers: int, /) -> Sequence[R]:
    """One after the other in the caller's own thread."""
    return [do(item) for item in items]
