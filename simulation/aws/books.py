"""Offsets that the product owes a group, kept apart from the product's own ledger: launches of ours, decrements of
ours, requests of owners.

Owners who shrink the group have seen the larger size, so that what we owe may be written off: the books hold the least
and the most that can be owed, and only what is certain is held against the product."""

from dataclasses import dataclass


@dataclass(slots=True)
class Book:
    """Debt of one group. `least` and `most` count launches of ours that are neither paid nor written off; `overpaid`
    counts decrements of ours that paid for nothing; `taken` decrements of owners that may have paid for launches. Where
    we paid for the same launches, the group is smaller than owed, and later launches bring that back: `least` is below
    zero by as many at most. `upgrading`: an upgrade has launched and may continue, so that a decrement of an owner may
    pay for a launch that it still makes (docs/designs/capacity-ledger.md).
    """

    least: int = 0
    most: int = 0
    overpaid: int = 0
    taken: int = 0
    upgrading: bool = False

    def launched(self) -> None:
        """Record that we requested one more instance."""
        self.least += 1
        self.most += 1

    def paid(self) -> None:
        """Record that we terminated one instance with decrement."""
        self.overpaid += self.most == 0
        self.least, self.most = max(self.least - 1, -self.taken), max(self.most - 1, 0)

    def taken_by_owner(self) -> None:
        """Record that an owner ended or detached an instance with decrement: where it was to pay, that debt is written
        off.
        """
        self.taken += self.least > 0 or self.upgrading
        self.least = self.least - 1 if self.upgrading else min(self.least, max(self.least - 1, 0))

    def written_off(self, launches: int) -> None:
        """Record launches whose debt may be over."""
        self.least = min(self.least, max(self.least - launches, 0))

    def upgrades(self, *, upgrading: bool) -> None:
        """Record whether an upgrade may still launch for what owners take; after it nothing is paid in advance."""
        if self.upgrading and not upgrading:
            self.least, self.taken = max(self.least, 0), 0
        self.upgrading = upgrading

    def resized_by_owner(self) -> None:
        """Record that an owner set a size: it is meant absolutely, so that the whole debt may be written off
        (docs/designs/capacity-ledger.md).
        """
        self.least, self.taken = 0, 0
