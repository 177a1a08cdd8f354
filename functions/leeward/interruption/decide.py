"""Decision about a message: one total function from message and world to a decision with its reasons.

How a node is drained or replaced is decided in the termination package. No side effects.

What EC2 announces for a later moment, the end of a Capacity Block or a change of the host, is left to the minute
reconciler (`leeward.reconcile`) where the policy wants to begin later than the message comes."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from leeward.interruption.cross_check import AGREES_WITHIN, Contradiction, contradictions, lags
from leeward.interruption.decision import Decision, NodeAction, NodeDecision, RecordOutcome, ScarceOffering
from leeward.interruption.hooks import answers, hook_verdict, is_listed, listed, switched_off
from leeward.interruption.world import InstancePlace, MessageWorld
from leeward.model.counts import count_of
from leeward.model.instance import CapacityType
from leeward.model.lifecycle import IN_POOL, IN_WORK, LifecycleRole, role_of
from leeward.model.message import (
    CapacityBlockExpiration,
    CapacityReservationInterruption,
    ExecutionEnded,
    HookAction,
    InterruptionMessage,
    LifecycleAction,
    LifecycleLaunch,
    LifecycleTermination,
    NodeMessage,
    NoOp,
    RebalanceRecommendation,
    RootVolumeReplacement,
    ScheduledChange,
    SpotInterruption,
    StateChange,
    ZonalShiftNotice,
    deadline_of,
    hook_of,
)
from leeward.model.termination import Cause, CauseKind, Reboot, RebootBy, drain_begins
from leeward.model.times import format_instant
from leeward.model.zonal_shift import ShiftSource, ZonalShift
from leeward.policy.document import InterruptionPolicy, Rebalance
from leeward.termination.decisions import FAR_AHEAD

STRONGEST_FIRST = tuple(NodeAction)
MOST_REASONS = 20  # instances whose reasons the decision repeats; each one's own stands beside it
UNNAMED = "the instances of its Capacity Block (no snapshot: which they are is not known)"
YOUNG = timedelta(minutes=30)  # since its launch; users report recommendations within five minutes, again and again
STOPPING = frozenset({"stopping", "stopped"})
WARNED_EARLY = timedelta(minutes=2)  # a warning that comes so much before the drain is due begins it


def decide(
    message: InterruptionMessage, world: MessageWorld, *, now: datetime, waited: timedelta = AGREES_WITHIN
) -> Decision:
    """Decide per instance and for the whole message; the message's action is the strongest of its instances'. `waited`:
    since it was sent to the queue. A message that AWS contradicts is delivered again for a while, then has no effect.
    """
    match message:
        case NoOp():
            return _nothing(message, message.reason)
        case ExecutionEnded(execution=name, status=status):
            reason = f"execution {name} ended with {status}: the next attempt begins if its record is still open"
            return replace(_nothing(message, reason), ended_execution=name)
        case ZonalShiftNotice():
            return _about_zones(message, world)
        case _:
            return _about_nodes(message, world, now=now, waited=waited)


def _about_zones(message: ZonalShiftNotice, world: MessageWorld) -> Decision:
    """Decide on a zonal shift: it drains nothing. The shifts of every cluster that it may be about are read again."""
    if not world.serves(message.account, message.region):
        return _foreign(message)
    clusters = tuple(name for name in world.clusters if message.concerns(name))
    what = f"zonal shift away from {message.zone_id or 'a zone'} ({message.shift.value})"
    if world.clusters and not clusters:
        return _nothing(message, f"{what}: about {', '.join(message.resources)}, none of our clusters")
    change = "is in effect" if message.began else "is over"
    asked = f"the zonal shifts of {', '.join(clusters) or 'each cluster'} are read"
    announced = ZonalShift(zone_id=message.zone_id, kind=message.shift, since=message.at, source=ShiftSource.EVENT)
    return replace(
        _nothing(message, f"{what} {change}: {asked}"),
        shifted=clusters,
        announced=announced if message.began and message.zone_id else None,
    )


def _about_nodes(message: NodeMessage, world: MessageWorld, *, now: datetime, waited: timedelta) -> Decision:
    if not world.serves(message.account, message.region):
        return _foreign(message)
    message = _as_its_group_says(message, world)
    hook = hook_of(message)
    deadline = deadline_of(message) if hook is None else hook_deadline(message, hook, world)
    decided = tuple(_node(message, deadline, instance, world) for instance in message.instances)
    against = _against(message, decided, world)
    if against and not any(node.action is not NodeAction.NONE and node.instance not in against for node in decided):
        return replace(_refused(message, against, world, waited), deadline=deadline)
    if world.unchecked and waited < AGREES_WITHIN and any(node.action is not NodeAction.NONE for node in decided):
        return replace(_nothing(message, world.unchecked), outcome=RecordOutcome.RETRY)
    nodes = tuple(_agreed(node, against) for node in decided)
    unnamed = isinstance(message, CapacityBlockExpiration) and not nodes and not world.complete
    without = NodeAction.DRAIN if unnamed else NodeAction.NONE
    decision = Decision(
        kind=message.kind,
        outcome=RecordOutcome.RETRY if lags(against, waited) else RecordOutcome.DONE,
        action=min((node.action for node in nodes), key=STRONGEST_FIRST.index, default=without),
        reason=UNNAMED if unnamed else _summary(nodes),
        at=message.at,
        deadline=deadline,
        nodes=nodes,
        deferred=_can_be_deferred(message, now) and any(node.action.terminates for node in nodes),
        unavailable=_unavailable(message, nodes, world),
    )
    return decision if hook is None else _with_hook(decision, hook, world)


def _as_its_group_says(message: NodeMessage, world: MessageWorld) -> NodeMessage:
    """Return a terminate action as a replacement of the root volume where its group says that it keeps the instance: a
    notification that a hook sends directly may not name the action.
    """
    if not isinstance(message, LifecycleTermination):
        return message
    if role_of(_place(message, message.hook.instance, world).lifecycle) not in IN_WORK:
        return message
    return RootVolumeReplacement(
        event_id=message.event_id,
        at=message.at,
        instances=message.instances,
        account=message.account,
        region=message.region,
        hook=message.hook,
    )


def _against(message: NodeMessage, nodes: tuple[NodeDecision, ...], world: MessageWorld) -> Mapping[str, Contradiction]:
    """Return AWS's contradictions of a message that takes nodes out of service, by instance; empty if AWS agrees."""
    acting = [node.instance for node in nodes if node.action is not NodeAction.NONE]
    return contradictions(message, [_place(message, instance, world) for instance in acting])


def _agreed(node: NodeDecision, against: Mapping[str, Contradiction]) -> NodeDecision:
    """Return the decision about a node, without an action where AWS contradicts the message."""
    if node.instance not in against:
        return node
    reason = against[node.instance].why
    return NodeDecision(instance=node.instance, action=NodeAction.NONE, reason=reason, cluster=node.cluster)


def _refused(
    message: NodeMessage, against: Mapping[str, Contradiction], world: MessageWorld, waited: timedelta
) -> Decision:
    """Return the decision about a message of which AWS confirms nothing. A hook of ours that it names is answered if
    nothing can wait in it for a drain.
    """
    first, hook = next(iter(against.values())), hook_of(message)
    refused = _nothing(message, "; ".join(contradiction.why for contradiction in list(against.values())[:MOST_REASONS]))
    refused = replace(refused, outcome=RecordOutcome.RETRY if lags(against, waited) else first.outcome)
    if hook is None or not first.answers_hook or refused.outcome is RecordOutcome.RETRY:
        return refused
    return _with_hook(refused, hook, world)


def _foreign(message: InterruptionMessage) -> Decision:
    where = f"account {message.account or '?'}, region {message.region or '?'}"
    return _nothing(message, f"from {where}: none of our clusters is there")


def malformed(reason: str) -> Decision:
    """Return the decision about a malformed body."""
    return Decision(kind=None, outcome=RecordOutcome.MALFORMED, action=NodeAction.NONE, reason=reason)


def _nothing(message: InterruptionMessage, reason: str) -> Decision:
    return Decision(
        kind=message.kind,
        outcome=RecordOutcome.DONE,
        action=NodeAction.NONE,
        reason=reason,
        at=message.at,
        deadline=deadline_of(message),
        nodes=tuple(NodeDecision(instance=i, action=NodeAction.NONE, reason=reason) for i in message.instances),
    )


def hook_deadline(message: NodeMessage, action: HookAction, world: MessageWorld) -> datetime | None:
    """Return when the group continues unanswered: `at` + HeartbeatTimeout; None for launches and unknown time-outs."""
    if not action.terminating or not is_listed(action, world):
        return None
    try:
        return message.at + timedelta(seconds=listed(action, world).heartbeat_timeout)
    except OverflowError:
        return None


def _place(message: NodeMessage, instance: str, world: MessageWorld) -> InstancePlace:
    hook = hook_of(message)
    return world.locate(instance, hook.group if hook is not None else None)


def _node(message: NodeMessage, deadline: datetime | None, instance: str, world: MessageWorld) -> NodeDecision:
    place = _place(message, instance, world)
    if not world.complete:
        action, why = _action(message, place)
        return _claimed(message, deadline, place, world, action, f"{why} (no snapshot: taken as selected and ours)")
    kept = _left_alone(message, place, world)
    if kept:
        return NodeDecision(instance=instance, action=NodeAction.NONE, reason=kept, cluster=place.cluster)
    action, why = _action(message, place)
    return _claimed(message, deadline, place, world, action, f"{why} ({world.unchecked})" if world.unchecked else why)


def _left_alone(message: NodeMessage, place: InstancePlace, world: MessageWorld) -> str | None:
    """Return why Leeward leaves the instance alone, the first reason that holds; None if it does not."""
    if place.group_name is None:
        what = "no Auto Scaling group holds it" if place.known else "EC2 does not know it"
        return f"{place.id}: {what}"
    if place.cluster is None and world.tagged:
        return f"{place.id}: group {place.group_name} belongs to none of our clusters"
    if place.policy is None and not place.open:  # a termination that is under way learns what AWS reports
        return f"{place.id}: no policy selects group {place.group_name}"
    off = switched_off(place)
    if off:
        return f"{place.id}: {off}"
    if not place.known:
        return f"{place.id}: EC2 does not know it"
    return _nothing_to_drain(message, place)


def _nothing_to_drain(message: NodeMessage, place: InstancePlace) -> str | None:
    if isinstance(message, LifecycleAction) and message.hook.without_pods:
        return f"{place.id}: an instance of a warm pool holds no pods"
    if place.node is not None or not place.nodes_seen or isinstance(message, LifecycleLaunch):
        return None
    if place.gone:
        return f"{place.id}: EC2 has ended it and no Node is left"
    warmed = place.lifecycle is None or role_of(place.lifecycle) in IN_POOL
    stops = isinstance(message, StateChange) and message.state in STOPPING
    if stops and place.group is not None and warmed:
        return f"{place.id}: it stops in a warm pool, without a Node"
    return None


def _action(message: NodeMessage, place: InstancePlace) -> tuple[NodeAction, str]:
    match message:
        case RebalanceRecommendation():
            return _rebalance(message, place)
        case LifecycleLaunch():
            return NodeAction.NONE, f"{place.id}: it is being launched, there is nothing to drain"
        case SpotInterruption():
            why = "EC2 takes the spot instance two minutes after the warning"
        case CapacityReservationInterruption():
            why = "EC2 takes back its capacity reservation two minutes after the warning"
        case CapacityBlockExpiration():
            return capacity_block(message, place)
        case ScheduledChange():
            return scheduled_change(message, place)
        case StateChange(state=state):
            why = f"the instance is {state}"
        case LifecycleTermination():
            why = "its group is terminating it"
        case RootVolumeReplacement():
            why = _kept_by_its_group(place)
        case _:
            assert_never(message)
    return NodeAction.DRAIN, f"{place.id}: {why}"


def _kept_by_its_group(place: InstancePlace) -> str:
    if place.lifecycle is not None and role_of(place.lifecycle) is LifecycleRole.UNKNOWN:
        return f"its group says {place.lifecycle}, which this version does not know: it is drained and stays"
    return "its group replaces its root volume, which reboots it: it is drained and stays"


def _rebalance(message: RebalanceRecommendation, place: InstancePlace) -> tuple[NodeAction, str]:
    """Decide by the policy. A young node is left: its replacement would come from the same capacity minutes later, and
    be recommended as well. A cordon would have the same effect, because pods that find no room make the group grow.
    """
    setting = place.policy.interruption.rebalance if place.policy else Rebalance.REPLACE
    match setting:
        case Rebalance.IGNORE:
            return NodeAction.NONE, f"{place.id}: the policy ignores rebalance recommendations"
        case Rebalance.CORDON:
            return NodeAction.CORDON, f"{place.id}: the policy only cordons on a rebalance recommendation"
        case Rebalance.REPLACE if place.group is not None and place.group.capacity_rebalance:
            return NodeAction.NONE, (
                f"{place.id}: group {place.group_name} has CapacityRebalance on: it launches the replacement itself, "
                "and its terminate hook brings the node to us"
            )
        case Rebalance.REPLACE if _age(message, place) < YOUNG:
            minutes = int(_age(message, place).total_seconds() // 60)
            return NodeAction.NONE, (
                f"{place.id}: rebalance recommendation {minutes} min after its launch: a node younger than "
                f"{int(YOUNG.total_seconds() // 60)} min is left, and new nodes come from other zones for a while"
            )
        case Rebalance.REPLACE:
            return NodeAction.REPLACE, f"{place.id}: rebalance recommendation: replaced first, then drained"


def _is_left_for_its_age(message: NodeMessage, place: InstancePlace, world: MessageWorld) -> bool:
    if not isinstance(message, RebalanceRecommendation) or place.policy is None or _left_alone(message, place, world):
        return False
    launches = place.group is not None and place.group.capacity_rebalance
    replaces = place.policy.interruption.rebalance is Rebalance.REPLACE and not launches
    return replaces and _age(message, place) < YOUNG


def _age(message: RebalanceRecommendation, place: InstancePlace) -> timedelta:
    return message.at - place.instance.launched if place.instance is not None else timedelta.max


def _claimed(
    message: NodeMessage,
    deadline: datetime | None,
    place: InstancePlace,
    world: MessageWorld,
    action: NodeAction,
    why: str,
) -> NodeDecision:
    if not action.terminates:
        return NodeDecision(instance=place.id, action=action, reason=why, cluster=place.cluster)
    if isinstance(message, CapacityBlockExpiration):
        deadline = message.block.taken_at(place.type)
    hook, confirmed = hook_of(message), isinstance(message, StateChange) and place.confirmed
    cause = Cause(
        id=f"{message.event_id}#{place.id}",
        kind=CauseKind(message.kind.value),
        at=message.at,
        deadline=deadline,
        reason=why,
        hook=hook.hook if hook else None,
        hook_ours=hook is not None and answers(hook, place, world),
        state=place.instance.state if confirmed and place.instance else "",
        hook_default=listed(hook, world).default if hook is not None and is_listed(hook, world) else None,
        reboot=_reboot(message, place),
    )
    return NodeDecision(
        instance=place.id,
        action=action,
        reason=why,
        cluster=place.cluster,
        subject=place.subject(),
        cause=cause,
    )


def _reboot(message: NodeMessage, place: InstancePlace) -> Reboot | None:
    """Return who reboots the instance, which stays; None if it ends."""
    if isinstance(message, RootVolumeReplacement):
        return Reboot(by=RebootBy.GROUP)
    return Reboot(by=RebootBy.EC2) if waits_for_reboot(message, place) else None


def _with_hook(decision: Decision, action: HookAction, world: MessageWorld) -> Decision:
    verdict = hook_verdict(action, world.locate(action.instance, action.group), decision.nodes[0], world)
    return replace(decision, hook=verdict.answer, keep_hook=verdict.kept, reason=f"{decision.reason}; {verdict.why}")


def _can_be_deferred(message: NodeMessage, now: datetime) -> bool:
    begins = message.deadline if isinstance(message, ScheduledChange) else None
    return begins is not None and begins - now > FAR_AHEAD


def _unavailable(message: NodeMessage, nodes: tuple[NodeDecision, ...], world: MessageWorld) -> ScarceOffering | None:
    """Return the spot capacity that EC2 takes back, or is about to: it is running out where the instance runs."""
    place = world.locate(message.instances[0]) if message.instances else None
    if place is None or not isinstance(message, SpotInterruption | RebalanceRecommendation):
        return None
    if not any(node.action.terminates for node in nodes) and not _is_left_for_its_age(message, place, world):
        return None
    subject = place.subject()
    if not subject.instance_type or not subject.zone:
        return None
    return ScarceOffering(instance_type=subject.instance_type, zone=subject.zone, capacity_type=CapacityType.SPOT)


def _summary(nodes: tuple[NodeDecision, ...]) -> str:
    """Return the reasons in one sentence: all of a few instances; a Health event may name thousands."""
    reasons = [node.reason for node in nodes[:MOST_REASONS]]
    rest = [f"and {count_of(len(nodes) - MOST_REASONS, 'instance')} more"] if len(nodes) > MOST_REASONS else []
    return "; ".join([*reasons, *rest]) or "it names no instance"


def capacity_block(message: CapacityBlockExpiration, place: InstancePlace) -> tuple[NodeAction, str]:
    """Drain, unless the policy wants to begin later than the warning comes: the minute reconciler begins then."""
    block = message.block
    ends = f"{place.id}: its Capacity Block {block.reservation} ends at {format_instant(block.ends)}"
    if message.unread:
        ends = f"{ends}, as its warning implies: found the end-date {message.unread}"
    policy = place.policy.interruption if place.policy else InterruptionPolicy()
    begins = block.drained_from(place.type, policy.drain_block_before)
    if begins > message.at + WARNED_EARLY:
        return NodeAction.NONE, f"{ends}: the minute reconciler begins its drain at {format_instant(begins)}"
    return NodeAction.DRAIN, ends


def scheduled_change(message: ScheduledChange, place: InstancePlace) -> tuple[NodeAction, str]:
    """Drain, unless EC2 reboots the instance later and the policy waits for that: the minute reconciler begins then."""
    policy = place.policy
    if not waits_for_reboot(message, place) or policy is None or message.deadline is None:
        return NodeAction.DRAIN, f"{place.id}: AWS has scheduled a change of its host"
    reboots = f"{place.id}: EC2 reboots it at {format_instant(message.deadline)}"
    begins = drain_begins(message.deadline, policy.drain.longest)
    if begins > message.at + WARNED_EARLY:
        return NodeAction.NONE, f"{reboots}: the minute reconciler begins its drain at {format_instant(begins)}"
    return NodeAction.DRAIN, f"{reboots}, and it returns to service then"


def waits_for_reboot(message: NodeMessage, place: InstancePlace) -> bool:
    """Return whether the message announces a reboot by EC2, after which the policy keeps the node."""
    waits = place.policy is not None and place.policy.interruption.waits_for_reboot
    return waits and isinstance(message, ScheduledChange) and message.reboots and message.deadline is not None
