"""Cross-check of a message with EC2 and Auto Scaling. A state change that arrives late, after its instance has started
again, a hook that no longer waits, and a message that AWS has not written drain no node in service."""

from dataclasses import dataclass
from datetime import timedelta

from leeward.interruption.decision import RecordOutcome
from leeward.interruption.world import Place
from leeward.model.group import LEAVING
from leeward.model.instance import ALIVE, ENDED, CapacityType
from leeward.model.message import Kind, Message

AGREES_WITHIN = timedelta(seconds=20)  # of delivery: the answers of EC2 and Auto Scaling lag behind their messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Reason not to act on the message. `outcome`: MALFORMED if AWS cannot have written it, DONE if it is late.
    `lasting`: no later answer of AWS can differ.
    """

    why: str
    outcome: RecordOutcome
    lasting: bool = False

    def outcome_after(self, waited: timedelta) -> RecordOutcome:
        """Return RETRY while AWS's answers may still lag, else the outcome. `waited`: since it was put in the queue."""
        return self.outcome if self.lasting or waited >= AGREES_WITHIN else RecordOutcome.RETRY


def contradiction(message: Message, place: Place) -> Contradiction | None:
    """Return AWS's contradiction of the message. None if AWS agrees, or was not asked about this instance or group."""
    if message.kind in (Kind.SPOT_INTERRUPTION, Kind.REBALANCE_RECOMMENDATION):
        return _not_spot(message, place)
    if message.kind is Kind.STATE_CHANGE:
        return _runs(message, place)
    if message.kind is Kind.ASG_TERMINATE:
        return _waits_no_longer(message, place)
    return None


def _not_spot(message: Message, place: Place) -> Contradiction | None:
    if not place.confirmed or place.instance is None or place.instance.capacity_type is CapacityType.SPOT:
        return None
    why = f"{place.id}: {message.kind.value} of an instance that EC2 lists as {place.instance.capacity_type.value}"
    return Contradiction(why=why, outcome=RecordOutcome.MALFORMED, lasting=True)


def _runs(message: Message, place: Place) -> Contradiction | None:
    if not place.confirmed or place.instance is None or place.instance.state not in ALIVE:
        return None
    why = f"{place.id}: the message says {message.state}, EC2 says {place.instance.state}"
    return Contradiction(why=why, outcome=RecordOutcome.MALFORMED if message.state in ENDED else RecordOutcome.DONE)


def _waits_no_longer(message: Message, place: Place) -> Contradiction | None:
    if place.lifecycle is None or place.lifecycle.startswith(LEAVING):
        return None
    hook = message.hook.hook if message.hook else "?"
    why = f"{place.id}: hook {hook} no longer waits, {place.group_name} lists the instance as {place.lifecycle}"
    return Contradiction(why=why, outcome=RecordOutcome.DONE)
