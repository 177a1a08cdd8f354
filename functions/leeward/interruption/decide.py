"""Decision about a message: one total function from message and world to a decision with its reasons.

How a node is drained or replaced is decided in the termination package. No side effects."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from leeward.interruption.cross_check import AGREES_WITHIN, Contradiction, contradiction
from leeward.interruption.decision import Action, Decision, NodeDecision, Offering, RecordOutcome
from leeward.interruption.hooks import answers, hook_verdict, is_listed, listed, switched_off
from leeward.interruption.world import Place, World
from leeward.model.instance import CapacityType
from leeward.model.message import HookAction, Kind, Message
from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import Rebalance
from leeward.termination.decisions import FAR_AHEAD

STRONGEST_FIRST = tuple(Action)
WHY_DRAINED: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.SPOT_INTERRUPTION: "EC2 takes the spot instance two minutes after the warning",
        Kind.CAPACITY_RESERVATION: "EC2 takes back its capacity reservation two minutes after the warning",
        Kind.SCHEDULED_CHANGE: "AWS has scheduled a change of its host",
        Kind.STATE_CHANGE: "the instance is {state}",
        Kind.ASG_TERMINATE: "its group is terminating it",
    }
)
STOPPING = frozenset({"stopping", "stopped"})


def decide(message: Message, world: World, *, now: datetime, waited: timedelta = AGREES_WITHIN) -> Decision:
    """Decide per instance and for the whole message; the message's action is the strongest of its instances'. `waited`:
    since it was sent to the queue. A message that AWS contradicts is delivered again for a while, then has no effect.
    """
    if message.kind is Kind.NOOP:
        return _nothing(message, message.reason)
    if message.kind is Kind.EXECUTION_ENDED:
        reason = f"{message.reason}: the next attempt begins if its record is still open"
        return replace(_nothing(message, reason), ended_execution=message.ended_execution)
    if not world.serves(message.account, message.region):
        where = f"account {message.account or '?'}, region {message.region or '?'}"
        return _nothing(message, f"from {where}: none of our clusters is there")
    deadline = message.deadline if message.hook is None else hook_deadline(message, message.hook, world)
    message = replace(message, deadline=deadline)
    nodes = tuple(_node(message, instance, world) for instance in message.instances)
    against = _against(message, nodes, world)
    if against is not None:
        return replace(_nothing(message, against.why), outcome=against.outcome_after(waited))
    decision = Decision(
        kind=message.kind,
        outcome=RecordOutcome.DONE,
        action=min((node.action for node in nodes), key=STRONGEST_FIRST.index, default=Action.NONE),
        reason=_summary(nodes),
        at=message.at,
        deadline=deadline,
        nodes=nodes,
        paced=_paced(message, now) and any(node.action.terminates for node in nodes),
        unavailable=_unavailable(message, nodes, world),
    )
    return decision if message.hook is None else _with_hook(decision, message.hook, world)


def _against(message: Message, nodes: tuple[NodeDecision, ...], world: World) -> Contradiction | None:
    """Return AWS's contradiction of a message that takes a node out of service; messages that name several instances
    are not checked.
    """
    if len(nodes) != 1 or nodes[0].action is Action.NONE:
        return None
    return contradiction(message, world.locate(nodes[0].instance, message.hook.group if message.hook else None))


def malformed(reason: str) -> Decision:
    """Return the decision about a malformed body."""
    return Decision(kind=None, outcome=RecordOutcome.MALFORMED, action=Action.NONE, reason=reason)


def _nothing(message: Message, reason: str) -> Decision:
    return Decision(
        kind=message.kind,
        outcome=RecordOutcome.DONE,
        action=Action.NONE,
        reason=reason,
        at=message.at,
        deadline=message.deadline,
        nodes=tuple(NodeDecision(instance=i, action=Action.NONE, reason=reason) for i in message.instances),
    )


def hook_deadline(message: Message, action: HookAction, world: World) -> datetime | None:
    """Return when the group continues unanswered: `at` + HeartbeatTimeout; None for launches and unknown time-outs."""
    if not action.terminating or not is_listed(action, world):
        return None
    try:
        return message.at + timedelta(seconds=listed(action, world).heartbeat_timeout)
    except OverflowError:
        return None


def _node(message: Message, instance: str, world: World) -> NodeDecision:
    place = world.locate(instance, message.hook.group if message.hook else None)
    if not world.complete:
        action, why = _action(message, place)
        return _claimed(message, place, world, action, f"{why} (no snapshot: taken as selected and ours)")
    kept = _left_alone(message, place, world)
    if kept:
        return NodeDecision(instance=instance, action=Action.NONE, reason=kept, cluster=place.cluster)
    action, why = _action(message, place)
    return _claimed(message, place, world, action, why)


def _left_alone(message: Message, place: Place, world: World) -> str | None:
    """Return why Leeward leaves the instance alone, the first reason that holds; None if it does not."""
    if place.group_name is None:
        what = "no Auto Scaling group holds it" if place.known else "EC2 does not know it"
        return f"{place.id}: {what}"
    if place.cluster is None and world.tagged:
        return f"{place.id}: group {place.group_name} belongs to none of our clusters"
    if place.policy is None:
        return f"{place.id}: no policy selects group {place.group_name}"
    off = switched_off(place)
    if off:
        return f"{place.id}: {off}"
    if not place.known:
        return f"{place.id}: EC2 does not know it"
    return _nothing_to_drain(message, place)


def _nothing_to_drain(message: Message, place: Place) -> str | None:
    if message.hook and message.hook.without_pods:
        return f"{place.id}: an instance of a warm pool holds no pods"
    if place.node is not None or not place.nodes_seen or message.kind is Kind.ASG_LAUNCH:
        return None
    if place.gone:
        return f"{place.id}: EC2 has ended it and no Node is left"
    warmed = place.lifecycle is None or place.lifecycle.startswith("Warmed")
    if message.state in STOPPING and place.group is not None and warmed:
        return f"{place.id}: it stops in a warm pool, without a Node"
    return None


def _action(message: Message, place: Place) -> tuple[Action, str]:
    if message.kind is Kind.REBALANCE_RECOMMENDATION:
        return _rebalance(place)
    if message.kind is Kind.ASG_LAUNCH:
        return Action.NONE, f"{place.id}: it is being launched, there is nothing to drain"
    return Action.DRAIN, f"{place.id}: {WHY_DRAINED[message.kind].format(state=message.state)}"


def _rebalance(place: Place) -> tuple[Action, str]:
    setting = place.policy.interruption.rebalance if place.policy else Rebalance.REPLACE
    match setting:
        case Rebalance.IGNORE:
            return Action.NONE, f"{place.id}: the policy ignores rebalance recommendations"
        case Rebalance.CORDON:
            return Action.CORDON, f"{place.id}: the policy only cordons on a rebalance recommendation"
        case Rebalance.REPLACE if place.group is not None and place.group.capacity_rebalance:
            return Action.NONE, (
                f"{place.id}: group {place.group_name} has CapacityRebalance on: it launches the replacement itself, "
                "and its terminate hook brings the node to us"
            )
        case Rebalance.REPLACE:
            return Action.REPLACE, f"{place.id}: rebalance recommendation: replaced first, then drained"


def _claimed(message: Message, place: Place, world: World, action: Action, why: str) -> NodeDecision:
    if not action.terminates:
        return NodeDecision(instance=place.id, action=action, reason=why, cluster=place.cluster)
    hook, told = message.hook, message.kind is Kind.STATE_CHANGE and place.confirmed
    cause = Cause(
        id=f"{message.event_id}#{place.id}",
        kind=CauseKind(message.kind.value),
        at=message.at,
        deadline=message.deadline,
        reason=why,
        hook=hook.hook if hook else None,
        hook_ours=hook is not None and answers(hook, place, world),
        state=place.instance.state if told and place.instance else "",
        hook_default=listed(hook, world).default if hook is not None and is_listed(hook, world) else None,
    )
    return NodeDecision(
        instance=place.id,
        action=action,
        reason=why,
        cluster=place.cluster,
        subject=place.subject(),
        cause=cause,
    )


def _with_hook(decision: Decision, action: HookAction, world: World) -> Decision:
    verdict = hook_verdict(action, world.locate(action.instance, action.group), decision.nodes[0], world)
    return replace(decision, hook=verdict.answer, keep_hook=verdict.kept, reason=f"{decision.reason}; {verdict.why}")


def _paced(message: Message, now: datetime) -> bool:
    far = message.deadline is not None and message.deadline - now > FAR_AHEAD
    return message.kind is Kind.SCHEDULED_CHANGE and far


def _unavailable(message: Message, nodes: tuple[NodeDecision, ...], world: World) -> Offering | None:
    """Return the spot capacity that EC2 takes back: it is running out where the instance runs."""
    if message.kind is not Kind.SPOT_INTERRUPTION or not any(node.action.terminates for node in nodes):
        return None
    subject = world.locate(message.instances[0]).subject()
    if not subject.instance_type or not subject.zone:
        return None
    return Offering(instance_type=subject.instance_type, zone=subject.zone, capacity_type=CapacityType.SPOT)


def _summary(nodes: tuple[NodeDecision, ...]) -> str:
    return "; ".join(node.reason for node in nodes) or "it names no instance"
