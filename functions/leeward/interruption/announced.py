"""Decisions about what EC2 announces for a later moment: the end of a Capacity Block, a change of the host.

Where the policy wants to begin later than the message comes, the minute reconciler begins (`leeward.reconcile`)."""

from datetime import timedelta

from leeward.interruption.decision import Action
from leeward.interruption.world import Place
from leeward.model.message import CapacityBlockExpiration, NodeMessage, ScheduledChange
from leeward.model.termination import drain_begins
from leeward.model.times import format_instant
from leeward.policy.document import InterruptionPolicy

WARNED_EARLY = timedelta(minutes=2)  # a warning that comes so much before the drain is due begins it


def capacity_block(message: CapacityBlockExpiration, place: Place) -> tuple[Action, str]:
    """Drain, unless the policy wants to begin later than the warning comes: the minute reconciler begins then."""
    block = message.block
    ends = f"{place.id}: its Capacity Block {block.reservation} ends at {format_instant(block.ends)}"
    if message.unread:
        ends = f"{ends}, as its warning implies: found the end-date {message.unread}"
    policy = place.policy.interruption if place.policy else InterruptionPolicy()
    begins = block.drained_from(place.type, policy.drain_block_before)
    if begins > message.at + WARNED_EARLY:
        return Action.NONE, f"{ends}: the minute reconciler begins its drain at {format_instant(begins)}"
    return Action.DRAIN, ends


def scheduled_change(message: ScheduledChange, place: Place) -> tuple[Action, str]:
    """Drain, unless EC2 reboots the instance later and the policy waits for that: the minute reconciler begins then."""
    policy = place.policy
    if not waits_for_reboot(message, place) or policy is None or message.deadline is None:
        return Action.DRAIN, f"{place.id}: AWS has scheduled a change of its host"
    reboots = f"{place.id}: EC2 reboots it at {format_instant(message.deadline)}"
    begins = drain_begins(message.deadline, policy.drain.longest)
    if begins > message.at + WARNED_EARLY:
        return Action.NONE, f"{reboots}: the minute reconciler begins its drain at {format_instant(begins)}"
    return Action.DRAIN, f"{reboots}, and it returns to service then"


def waits_for_reboot(message: NodeMessage, place: Place) -> bool:
    """Return whether the message announces a reboot by EC2, after which the policy keeps the node."""
    waits = place.policy is not None and place.policy.interruption.waits_for_reboot
    return waits and isinstance(message, ScheduledChange) and message.reboots and message.deadline is not None
