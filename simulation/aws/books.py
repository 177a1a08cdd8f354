"""What we owe a group, kept apart from the product's own ledger: launches of ours, what we paid, what owners did.

Owners who shrink the group have seen the larger size, so that what we owe may be forgiven: the books hold the least and
the most that can be owed, and only what is certain is held against the product."""

from dataclasses import dataclass


@dataclass(slots=True)
class Book:
    """One group's. `least` and `most` launches of ours are neither paid nor forgiven; `overpaid` counts decrements of
    ours that paid for nothing.
    """

    least: int = 0
    most: int = 0
    overpaid: int = 0

    def launched(self) -> None:
        """We asked for one more."""
        self.least += 1
        self.most += 1

    def paid(self) -> None:
        """We terminated one with decrement."""
        self.overpaid += self.most == 0
        self.least, self.most = max(self.least - 1, 0), max(self.most - 1, 0)

    def taken_by_owner(self) -> None:
        """An owner ended or detached one with decrement: where it was to pay, that is forgiven."""
        self.least = max(self.least - 1, 0)

    def resized_by_owner(self) -> None:
        """An owner set a size: meant absolutely, so that all may be forgiven (docs/designs/capacity-ledger.md)."""
        self.least = 0
