"""Sentence of the Event that a message writes on its Node: what Leeward has done or will do, never what is over.

A message may join a termination at any point: its cause may even be a consequence of that termination (the group's
lifecycle action, EC2's state changes). The record that the claim returned says how far the termination has come."""

from leeward.interruption.decision import Action, Decision, NodeDecision
from leeward.model.message import InterruptionMessage, MessageKind, StateChange
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant

CONSEQUENCES = frozenset(
    {MessageKind.STATE_CHANGE, MessageKind.ASG_TERMINATE}
)  # messages that a termination by Leeward causes
ENDED = frozenset({"shutting-down", "terminated"})  # states of an instance on which no pod can be evicted any more


def event_sentence(
    node: NodeDecision,
    decision: Decision,
    message: InterruptionMessage | None,
    record: TerminationRecord | None,
) -> str | None:
    """Return the sentence; None where it would be false, or repeat what another Event has said.

    `record`: the termination as the claim left it, None for a node that is cordoned only.
    """
    if record is None:
        return f"Leeward has cordoned this node: {node.reason}" if node.action is Action.CORDON else None
    if "drained" in record.times or ("terminating" in record.times and decision.kind in CONSEQUENCES):
        return None
    if isinstance(message, StateChange) and message.state in ENDED:
        return f"Leeward will remove this Node: {node.reason}"
    if "draining" in record.times:
        return f"Leeward is draining this node: {node.reason}"
    return f"Leeward will {node.action.value} this node{_when(decision)}: {node.reason}"


def _when(decision: Decision) -> str:
    """Return until when a change that AWS has announced well ahead is drained for."""
    if not decision.deferred or decision.deadline is None:
        return ""
    return f" before {format_instant(decision.deadline)}, as soon as its budgets allow"
