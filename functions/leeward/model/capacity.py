"""Capacity ledger: surge instances, what offsets each of them (docs/designs/capacity-ledger.md), and the owner's
MaxSize while it is raised for replacements.

Entries and settlements are data in every record. An entry also has a key, which names it in the table and in the cause
that requests its offset; the key is compared, never parsed."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Self


class SurgeOwner(StrEnum):
    """Workflow that chooses another instance where the requested one does not offset the surge instance."""

    TERMINATION = "termination"  # passed on to another member of the group, from one termination to the next
    UPGRADE = "upgrade"  # returned to the group's upgrade
    DISRUPTION = "disruption"  # returned to the disruption run


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeInstance:
    """Instance by which a group is one too large until one termination with decrement has offset it.

    It was launched by Leeward. Of a disruption run it is a node that the run removes: the group has to shrink by each
    of them, whether a replacement was launched or not. `request` distinguishes the requests that an upgrade or a run
    makes for the same instance: one that was returned and is requested again is another entry. A launch that its
    upgrade or run gives up becomes an entry of the terminations, without a request; where every member was asked,
    terminations begin another round, whose request names the instance that was asked last.
    """

    owner: SurgeOwner
    instance: str
    request: str = ""

    @property
    def key(self) -> str:
        """Key of the entry, the same for every request of the same offset."""
        return "/".join(filter(None, (self.owner.value, self.instance, self.request)))

    @property
    def returns(self) -> bool:
        """True if an unused request returns to the owner; otherwise the termination passes it on."""
        return self.owner is not SurgeOwner.TERMINATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Offset of a surge instance by the termination with decrement of `instance`."""

    instance: str


class NoOffset(StrEnum):
    """Ways in which a surge instance leaves the ledger of a termination without a decrement."""

    WRITTEN_OFF = "written-off"  # another actor has made the group smaller since, or it may not become smaller
    RETURNED = "returned"  # to its owner, which chooses another instance


Settlement = Offset | NoOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedMaximum:
    """Item of one group in the table. An item without `raised` means nothing."""

    group: str
    before: int = 0  # the owner's MaxSize
    raised: tuple[int, ...] = ()  # every value that was written instead, each before the call that sets it; newest last
    holders: tuple[str, ...] = ()  # instances whose replacements need the capacity
    restoring: datetime | None = None  # since when a caller puts the owner's value back; nothing is launched meanwhile
    version: int = 0

    @property
    def active(self) -> bool:
        """True if MaxSize may be one that Leeward set."""
        return bool(self.raised)

    def explains(self, maximum: int) -> bool:
        """Return whether that MaxSize is the owner's as recorded, or one written for replacements."""
        return self.active and (maximum == self.before or maximum in self.raised)

    def of_owner(self, maximum: int) -> Self:
        """Return the item for the group's present MaxSize: one that it does not explain is the owner's choice."""
        return self if self.explains(maximum) else replace(self, before=maximum, raised=())

    def raised_to(self, maximum: int) -> Self:
        """Return the item with a value that is about to be set."""
        return replace(self, raised=(*(value for value in self.raised if value != maximum), maximum))

    def settled(self) -> Self:
        """Return the item with nothing to put back. It stays, so that its version only grows."""
        return replace(self, before=0, raised=(), holders=(), restoring=None)
