"""What a controller has to look at: a set that keeps its order, so that runs repeat exactly."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Worklist(Generic[T]):
    def __init__(self) -> None:
        self._items: dict[T, None] = {}

    def add(self, item: T) -> None:
        self._items[item] = None

    def drain(self) -> list[T]:
        """Everything noted so far, oldest first; the list is empty afterwards."""
        items = list(self._items)
        self._items.clear()
        return items

    def __bool__(self) -> bool:
        return bool(self._items)
