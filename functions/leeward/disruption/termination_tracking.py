"""Results of a run's terminations.

Decides from their records alone: a node is gone when its end shrank its group, or that was written off; it stayed when
it was returned to service, or when its group replaced it because another controller had ended it first."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.disruption.record import GONE, STAYED, DisruptionRecord, surge_of
from leeward.disruption.terminations import is_told
from leeward.model.surge_instance import NoOffset
from leeward.model.termination import Outcome, Status, TerminationRecord


def concluded(record: DisruptionRecord, terminations: Mapping[str, TerminationRecord]) -> DisruptionRecord:
    """Return the record with the ends that are known. Idempotent: run again on the result, it changes nothing."""
    found = dict(record.ends)
    for instance in record.going.values():
        termination = terminations.get(instance)
        if instance not in found and termination is not None and is_told(record, instance, termination):
            end = _end(record, instance, termination)
            if end:
                found[instance] = end
    return replace(record, ends=found) if found != record.ends else record


def under_way(record: DisruptionRecord) -> tuple[str, ...]:
    """Return the instances whose end is not known yet."""
    return tuple(instance for instance in record.going.values() if instance not in record.ends)


def _end(record: DisruptionRecord, instance: str, termination: TerminationRecord) -> str:
    settlement = termination.offsets.get(surge_of(record, instance))
    if termination.status is Status.OPEN:  # waits for a future maintenance, with the request of this run returned
        waits = settlement is NoOffset.RETURNED and termination.times.get("retry") is not None
        return STAYED if waits else ""
    if settlement is NoOffset.RETURNED or (settlement is None and termination.outcome is Outcome.GIVEN_BACK):
        return STAYED
    return GONE
