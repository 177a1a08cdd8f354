"""Maximum size of an Auto Scaling group while it is raised for replacements, and the owner's value below it."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedMaximum:
    """Item of one group in the table. `before`: the owner's MaxSize. `raised`: every value that was written instead of
    it, each before the call that sets it. `holders`: instances whose replacements need the capacity. `restoring`: since
    when a caller puts the owner's value back; nothing is launched during that time. An item without `raised` means
    nothing.
    """

    group: str
    before: int = 0
    raised: tuple[int, ...] = ()
    holders: tuple[str, ...] = ()
    restoring: datetime | None = None
    version: int = 0

    @property
    def active(self) -> bool:
        """True if MaxSize may be one that Leeward set."""
        return bool(self.raised)

    def explains(self, maximum: int) -> bool:
        """Return whether that MaxSize is the owner's as recorded, or one written for replacements."""
        return self.active and (maximum == self.before or maximum in self.raised)

    def settled(self) -> Self:
        """Return the item with nothing to put back. It stays, so that its version only grows."""
        return replace(self, before=0, raised=(), holders=(), restoring=None)
