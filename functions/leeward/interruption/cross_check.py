"""Cross-check of a message with EC2 and Auto Scaling. A state change that arrives late, after its instance has started
again, a hook that no longer waits, and a message that AWS has not written drain no node in service.

Costs no call on the path of a spot warning: the instance is read anyway. EC2 is asked for its scheduled events only
where AWS Health announces one (`lookup.py`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from leeward.interruption.decision import RecordOutcome
from leeward.interruption.world import InstancePlace
from leeward.model.instance import ALIVE, ENDED, CapacityType
from leeward.model.lifecycle import ENDING, IN_POOL, IN_WORK, ROOT_IN_WORK, role_of
from leeward.model.message import (
    CapacityBlockExpiration,
    CapacityReservationInterruption,
    InterruptionMessage,
    LifecycleTermination,
    RebalanceRecommendation,
    RootVolumeReplacement,
    ScheduledChange,
    SpotInterruption,
    StateChange,
)

AGREES_WITHIN = timedelta(seconds=20)  # of delivery: the answers of EC2 and Auto Scaling lag behind their messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Reason not to act on the message. `outcome`: MALFORMED if AWS cannot have written it, DONE if it is late.
    `lasting`: no later answer of AWS can differ. `answers_hook`: a hook of ours that it names is answered all the same:
    where nothing waits, the answer changes nothing.
    """

    why: str
    outcome: RecordOutcome
    lasting: bool = False
    answers_hook: bool = False

    def outcome_after(self, waited: timedelta) -> RecordOutcome:
        """Return RETRY while AWS's answers may still lag, else the outcome. `waited`: since it was put in the queue."""
        return self.outcome if self.lasting or waited >= AGREES_WITHIN else RecordOutcome.RETRY


def contradictions(message: InterruptionMessage, places: Iterable[InstancePlace]) -> Mapping[str, Contradiction]:
    """Return AWS's contradictions by instance; empty if AWS agrees. That of the message as a whole has an empty key."""
    if isinstance(message, CapacityBlockExpiration) and not message.listed:
        why = f"EC2 lists no active Capacity Block {message.block.reservation}"
        return {"": Contradiction(why=why, outcome=RecordOutcome.DONE)}
    found = {place.id: contradiction(message, place) for place in places}
    return {instance: against for instance, against in found.items() if against is not None}


def lags(against: Mapping[str, Contradiction], waited: timedelta) -> bool:
    """Return whether an answer of AWS may still change."""
    return any(contradiction.outcome_after(waited) is RecordOutcome.RETRY for contradiction in against.values())


def contradiction(message: InterruptionMessage, place: InstancePlace) -> Contradiction | None:
    """Return AWS's contradiction of the message. None if AWS agrees, or was not asked about this instance or group."""
    match message:
        case SpotInterruption() | RebalanceRecommendation():
            return _not_spot(message, place)
        case CapacityReservationInterruption():
            return _not_reserved(message, place)
        case ScheduledChange():
            return _not_scheduled(place)
        case StateChange():
            return _runs(message, place)
        case LifecycleTermination() | RootVolumeReplacement():
            return _not_held(message, place)
        case _:
            return None


def _not_spot(message: SpotInterruption | RebalanceRecommendation, place: InstancePlace) -> Contradiction | None:
    if not place.confirmed or place.instance is None or place.instance.capacity_type is CapacityType.SPOT:
        return None
    why = f"{place.id}: {message.kind.value} of an instance that EC2 lists as {place.instance.capacity_type.value}"
    return Contradiction(why=why, outcome=RecordOutcome.MALFORMED, lasting=True)


def _not_reserved(message: CapacityReservationInterruption, place: InstancePlace) -> Contradiction | None:
    if not place.confirmed or place.instance is None or place.instance.reservation:
        return None
    why = f"{place.id}: {message.kind.value} of an instance that EC2 lists in no capacity reservation"
    return Contradiction(why=why, outcome=RecordOutcome.MALFORMED)


def _not_scheduled(place: InstancePlace) -> Contradiction | None:
    """Return that EC2 has scheduled nothing for the instance. One that does not run has no status, and is not asked
    about; an event that EC2 lists later is claimed by the minute reconciler.
    """
    runs = place.instance is not None and place.instance.state == "running"
    if place.scheduled is None or not runs or any(not event.over for event in place.scheduled):
        return None
    why = f"{place.id}: EC2 lists no scheduled event of it that is still to come"
    return Contradiction(why=why, outcome=RecordOutcome.DONE)


def _runs(message: StateChange, place: InstancePlace) -> Contradiction | None:
    if not place.confirmed or place.instance is None or place.instance.state not in ALIVE:
        return None
    why = f"{place.id}: the message says {message.state}, EC2 says {place.instance.state}"
    return Contradiction(why=why, outcome=RecordOutcome.MALFORMED if message.state in ENDED else RecordOutcome.DONE)


def _not_held(message: LifecycleTermination | RootVolumeReplacement, place: InstancePlace) -> Contradiction | None:
    """Return that the group that the message names does not hold the instance: only its own list shows that. An
    instance that EC2 has ended may have left the list: nothing of it is in service.
    """
    if place.lifecycle is None:
        if not place.group_read or place.gone:
            return None
        why = f"{place.id}: {place.group_name} does not list the instance"
        return Contradiction(why=why, outcome=RecordOutcome.DONE, answers_hook=True)
    if role_of(place.lifecycle) in ENDING | IN_WORK | IN_POOL and place.lifecycle not in ROOT_IN_WORK:
        return None
    name = message.hook.hook
    why = f"{place.id}: hook {name} no longer waits, {place.group_name} lists the instance as {place.lifecycle}"
    return Contradiction(why=why, outcome=RecordOutcome.DONE)
