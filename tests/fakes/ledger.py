"""Entries of the capacity ledger, and what became of those of a record."""

from leeward.model.capacity import NoOffset, Offset, SurgeInstance, SurgeOwner
from leeward.model.termination import TerminationRecord


def a_surge(instance: str, owner: SurgeOwner = SurgeOwner.TERMINATION, request: str = "") -> SurgeInstance:
    return SurgeInstance(owner=owner, instance=instance, request=request)


def by(instance: str) -> Offset:
    return Offset(instance=instance)


def settled(record: TerminationRecord) -> list[str]:
    """The instances whose terminations offset the entries of the record, or why none does."""
    return [one.value if isinstance(one, NoOffset) else one.instance for one in record.offsets.values()]
