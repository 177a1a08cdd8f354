"""Entries of the capacity ledger: surge instances, and what offsets each of them (docs/designs/capacity-ledger.md).

Both are data in every record. An entry also has a key, which names it in the table and in the cause that requests its
offset; the key is compared, never parsed."""

from dataclasses import dataclass
from enum import StrEnum


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
