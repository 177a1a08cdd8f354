"""Offsets that the product owes a group, kept apart from the product's own ledger: launches of ours, decrements of
ours, requests of owners.

Owners who shrink the group have seen the larger size, so that what we owe may be written off: the books hold the least
and the most that can be owed, and only what is certain is held against the product."""

from dataclasses import dataclass


@dataclass(slots=True)
class Book:
    """Debt of one group. `least` and `most` count launches of ours that are neither paid nor written off; `overpaid`
    counts decrements of ours that paid for nothing.
    """

    least: int = 0
    most: int = 0
    overpaid: int = 0

    def launched(self) -> None:
        """Record that we requested one more instance."""
        self.least += 1
        self.most += 1

    def paid(self) -> None:
        """Record that we terminated one instance with decrement."""
        self.overpaid += self.most == 0
        self.least, self.most = max(self.least - 1, 0), max(self.most - 1, 0)

    def taken_by_owner(self) -> None:
        """Record that an owner ended or detached an instance with decrement: where it was to pay, that debt is written
        off.
        """
        self.least = max(self.least - 1, 0)

    def resized_by_owner(self) -> None:
        """Record that an owner set a size: it is meant absolutely, so that the whole debt may be written off
        (docs/designs/capacity-ledger.md).
        """
        self.least = 0
