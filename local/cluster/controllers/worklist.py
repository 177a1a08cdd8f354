"""Queue of a controller: a set that keeps its order, so that runs repeat exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Worklist(Generic[T]):
    def __init__(self) -> None:
        self._items: dict[T, None] = {}

    def add(self, item: T) -> None:
        self._items[item] = None

    def drain(self) -> list[T]:
        """Return everything queued so far, oldest first; the list is empty afterwards."""
        items = list(self._items)
        self._items.clear()
        return items

    def work(self, act: Callable[[T], bool]) -> bool:
        """Process everything queued so far; return True when any of it did something (unlike `any`, it does not stop
        there).
        """
        if not self._items:
            return False
        acted = False
        for item in self.drain():
            acted = act(item) or acted
        return acted

    def __bool__(self) -> bool:
        return bool(self._items)
