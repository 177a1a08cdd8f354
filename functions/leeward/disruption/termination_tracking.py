"""What the terminations of a round have come to.

Decides from their records alone: a node is gone when its end shrank its group, or that was forgiven; it stayed when it
was given back, or when its group replaced it because somebody else had ended it first."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.disruption.record import GONE, STAYED, RoundRecord, debt_name
from leeward.disruption.termination_requests import is_told
from leeward.model.termination import RETURNED, Outcome, Status, TerminationRecord


def concluded(record: RoundRecord, terminations: Mapping[str, TerminationRecord]) -> RoundRecord:
    """With the ends that are known. Run again on the result, it changes nothing."""
    found = dict(record.ends)
    for instance in record.going.values():
        termination = terminations.get(instance)
        if instance not in found and termination is not None and is_told(record, instance, termination):
            end = _end(record, instance, termination)
            if end:
                found[instance] = end
    return replace(record, ends=found) if found != record.ends else record


def under_way(record: RoundRecord) -> tuple[str, ...]:
    """Instances whose end is not known yet."""
    return tuple(instance for instance in record.going.values() if instance not in record.ends)


def _end(record: RoundRecord, instance: str, termination: TerminationRecord) -> str:
    payer = termination.payers.get(debt_name(record, instance))
    if termination.status is Status.OPEN:  # for a maintenance that lies ahead, what was asked of it having come back
        waits = payer == RETURNED and termination.times.get("retry") is not None
        return STAYED if waits else ""
    if payer == RETURNED or (payer is None and termination.outcome is Outcome.GIVEN_BACK):
        return STAYED
    return GONE
