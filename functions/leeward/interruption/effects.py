"""Side effects of a decision, each small and idempotent: the claim with its execution, taints on the nodes of one
cluster's messages, all at once and right after their terminations have been claimed, and Events on the nodes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import MappingProxyType

from leeward.errors import LeewardError, ObjectGoneError, RetryableError
from leeward.interruption.decision import Decision, HookAnswer, NodeAction, NodeDecision
from leeward.interruption.world import MessageWorld
from leeward.isolation import Executor, attempt, isolate_errors
from leeward.model.message import InterruptionMessage, MessageKind, StateChange
from leeward.model.node import Node, Taint, disruption_taint
from leeward.model.subnet import SHORT_FOR, Pool
from leeward.model.termination import ABRUPT, Cause, Status, Subject, TerminationRecord
from leeward.model.times import format_instant
from leeward.model.zonal_shift import ShiftSource, ZonalShift
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.kubernetes import Clusters
from leeward.telemetry import about
from leeward.termination.decisions import retry_after
from leeward.termination.heartbeats import AT_EVERY_CHANCE, record_heartbeat
from leeward.termination.requests import start, start_unclaimed
from leeward.termination.situation import survey

RESTARTS_AT_ONCE = 3  # an execution that keeps dying is left to the minute reconciler, with growing pauses

EVENT_REASONS: Mapping[MessageKind, str] = MappingProxyType(
    {
        MessageKind.SPOT_INTERRUPTION: "SpotInterruption",
        MessageKind.REBALANCE_RECOMMENDATION: "RebalanceRecommendation",
        MessageKind.SCHEDULED_CHANGE: "ScheduledChange",
        MessageKind.CAPACITY_RESERVATION: "CapacityReservationInterruption",
        MessageKind.CAPACITY_BLOCK: "CapacityBlockExpiration",
        MessageKind.STATE_CHANGE: "InstanceStateChange",
        MessageKind.ASG_TERMINATE: "GroupTerminating",
        MessageKind.REPLACE_ROOT_VOLUME: "RootVolumeReplacement",
    }
)
# Effect of `kubectl cordon`: Kubernetes itself keeps this taint on a node while spec.unschedulable is set. Our own
# taint would mean a node under termination, count as a disruption, and be removed by the minute reconciler.
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
CONSEQUENCES = frozenset(
    {MessageKind.STATE_CHANGE, MessageKind.ASG_TERMINATE}
)  # messages that a termination by Leeward causes
ENDED = frozenset({"shutting-down", "terminated"})  # states of an instance on which no pod can be evicted any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Result of one effect. `warning` for the log; `record`: the termination as a claim left it, open or closed."""

    warning: str | None = None
    record: TerminationRecord | None = None


Effect = Callable[[], Done]


def logged_for(
    record: str, message: InterruptionMessage | None, effects: Iterable[tuple[str, Effect]]
) -> dict[str, Effect]:
    """Return the effects of a record by their keys; each line that they write names the record and its message."""
    keys = {"messageId": record, "eventId": message.event_id if message else None}
    return {key: partial(_logged, keys, effect) for key, effect in effects}


def _logged(keys: Mapping[str, str | None], effect: Effect) -> Done:
    with about(**keys):
        return effect()


def actions_of(
    decision: Decision, ports: Ports, known: Mapping[str, TerminationRecord]
) -> Iterator[tuple[str, Effect]]:
    """Yield the effects of one decision on AWS and in the table, each under a key that is the same for every duplicate
    of its message. `known`: open records by instance, as the batch has read them. None calls Kubernetes: claims and
    starts never wait for a cluster.
    """
    for node in decision.nodes:
        if node.subject is not None and node.cause is not None:
            yield (
                claim_key(node.cause),
                partial(_claim, node.subject, node.cause, decision, ports, known.get(node.subject.instance)),
            )
    if decision.unavailable is not None:
        pool = Pool(instance_type=decision.unavailable.instance_type, zone=decision.unavailable.zone)
        for cluster in sorted({node.cluster for node in decision.nodes if node.cluster}):
            yield f"short {cluster} {pool.instance_type} {pool.zone}", partial(_mark_unavailable, cluster, pool, ports)
    if decision.hook is not None and decision.hook.at_once:
        action = decision.hook.action
        yield f"answer {action.group} {action.hook} {action.instance}", partial(_answer, decision.hook, ports.groups)
    for cluster in decision.shifted:
        zone = decision.announced.zone_id if decision.announced else ""
        yield f"shifts {cluster} {zone}", partial(_read_shifts, cluster, decision.announced, ports)
    if decision.ended_execution:
        yield f"revive {decision.ended_execution}", partial(_revive, decision.ended_execution, ports)


def events_of(
    decision: Decision,
    message: InterruptionMessage | None,
    nodes: Iterable[tuple[NodeDecision, TerminationRecord | None]],
    world: MessageWorld,
    ports: Ports,
) -> Iterator[tuple[str, Effect]]:
    """Yield an Event on each Node that was claimed (with its record) or cordoned, after all other effects."""
    for node, record in nodes:
        sentence = event_sentence(node, decision, message, record) if node.action is not NodeAction.NONE else None
        if sentence is not None:
            name = node.cause.id if node.cause else node.instance
            yield f"event {name}", partial(_write_event, node, decision.kind, sentence, world, ports)


def claim_key(cause: Cause) -> str:
    """Return the key of the effect that claims an instance for this cause."""
    return f"claim {cause.id}"


def _claim(subject: Subject, cause: Cause, decision: Decision, ports: Ports, known: TerminationRecord | None) -> Done:
    """Claim or join, then start. Each is idempotent, and a redelivery repairs a failure between them.

    A record that has been closed knows this cause already: the message came late or twice, and its node is not tainted
    again. Where the table takes no claim of an instance that EC2 takes within minutes, its pods are evicted without.
    """
    try:
        record = ports.claims.claim(subject, cause, ports.clock.now(), known)
    except RetryableError:
        if cause.kind in ABRUPT and cause.deadline is not None:
            with suppress(LeewardError):
                start_unclaimed(subject, cause.deadline, ports.executions)
        raise
    if record.status is Status.OPEN and not decision.deferred:
        start(record, ports)
    return Done(record=record)


def _mark_unavailable(cluster: str, pool: Pool, ports: Ports) -> Done:
    """Remember the shortage for a while, so that replacements use other capacity. A shortage that is not remembered
    costs one launch at most.
    """
    try:
        ports.catalog.mark_unavailable(cluster, pool, ports.clock.now() + SHORT_FOR)
    except LeewardError as error:
        return Done(warning=f"not remembered that {pool.instance_type} is short in {pool.zone}: {error}")
    return Done()


def _read_shifts(cluster: str, announced: ZonalShift | None, ports: Ports) -> Done:
    """Ask ARC for the cluster's zonal shifts and keep them. Where ARC does not answer the announced shift is kept, and
    the minute reconciler asks again. Reading twice is the same as reading once.
    """
    from leeward.sync.zonal_shifts import read_shifts  # late: a cold start for a spot warning does not need it

    read = read_shifts(
        cluster, ports.clock, ports.recovery, ports.catalog, source=ShiftSource.EVENT, announced=announced
    )
    changes = [f"{cluster}: {change}" for change in read.changes]
    changes += [f"{cluster}: the zonal shifts could not be read: {read.failed}"] if read.failed else []
    return Done(warning="; ".join(changes) or None)


def _answer(answer: HookAnswer, groups: Groups) -> Done:
    """Complete the hook by instance id. An action that waits no more was answered before, or the group has gone on
    without Leeward.
    """
    action = answer.action
    waited = groups.complete(group=action.group, hook=action.hook, instance=action.instance, result=answer.result)
    return Done(warning=None if waited else f"hook {action.hook} of {action.instance} was not waiting any more")


def _revive(execution: str, ports: Ports) -> Done:
    """Begin the next attempt after an execution of ours ended badly, if its record is still open and nothing runs for
    it.

    An execution that has noted its retry time, or that died several times, is left to the minute reconciler; a hook
    that holds its instance is heartbeaten first, so that some passes may fail.
    """
    record = ports.claims.read(execution.rpartition("-")[0])
    if record is None or record.status is Status.CLOSED or ports.executions.running(record.instance, record.attempt):
        return Done()
    now = ports.clock.now()
    if record.times.get("retry", now) > now:
        return Done()
    if record.tries >= RESTARTS_AT_ONCE:
        there = ports.of_cluster(record.subject.cluster)
        record_heartbeat(survey(record, there), there, AT_EVERY_CHANCE)
        again = now + max(retry_after(record.tries), timedelta(minutes=1))
        ports.claims.note_attempt(record.instance, record.attempt, times={"retry": again})
        return Done(
            warning=f"attempt {record.attempt} of {record.instance} failed: the minute reconciler retries it later"
        )
    start(record, ports)
    return Done()


def _write_event(
    node: NodeDecision, kind: MessageKind | None, sentence: str, world: MessageWorld, ports: Ports
) -> Done:
    """Write an Event on the Node. A failed Event must not fail the action."""
    subject = world.nodes.get(node.instance)
    if subject is None or node.cluster is None or kind is None:
        return Done()
    errors: list[LeewardError] = []
    with isolate_errors(errors.append):
        ports.clusters.kubernetes(node.cluster).event(
            subject,
            reason=EVENT_REASONS[kind],
            message=sentence,
            warning=True,
            now=ports.clock.now(),
        )
    return Done(warning=f"no Event on {subject.name}: {errors[0]}" if errors else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaint:
    """Node to be tainted."""

    cluster: str
    node: Node
    taint: Taint


@dataclass(slots=True)
class TaintResult:
    """Result of tainting, by instance id. `fresh`: nodes that carried no taint of ours before."""

    fresh: dict[str, Node] = field(default_factory=dict)
    failed: dict[str, LeewardError] = field(default_factory=dict)


def taint_nodes(
    decided: Iterable[tuple[Decision, NodeDecision]], world: MessageWorld, ports: Ports, workers: int, each: Executor
) -> TaintResult:
    """Taint and cordon, at most `workers` at a time. Idempotent: tainted nodes are left out.

    A failed taint is noted, never raised: the drain step taints again.
    """
    node_taints = tuple(_wanted(decided, world, ports.deployment).values())
    tainting = TaintResult()
    outcomes = each(lambda node_taint: attempt(lambda: _taint(node_taint, ports.clusters)), node_taints, workers)
    for node_taint, outcome in zip(node_taints, outcomes, strict=True):
        if isinstance(outcome, LeewardError):
            tainting.failed[node_taint.node.instance_id] = outcome
        elif outcome is not None and not node_taint.node.tainted:
            tainting.fresh[node_taint.node.instance_id] = outcome
    return tainting


def _wanted(
    decided: Iterable[tuple[Decision, NodeDecision]], world: MessageWorld, deployment: str
) -> dict[str, NodeTaint]:
    """Return one taint per node; a termination wins over a cordon. A deferred change is tainted when it is started."""
    wanted: dict[str, NodeTaint] = {}
    for decision, verdict in decided:
        node = world.nodes.get(verdict.instance)
        if node is None or verdict.cluster is None or verdict.action is NodeAction.NONE or decision.deferred:
            continue
        known = wanted.get(verdict.instance)
        if known is None or known.taint is CORDONED:
            taint = CORDONED if verdict.action is NodeAction.CORDON else disruption_taint(deployment)
            if not _carries(node, taint):
                wanted[verdict.instance] = NodeTaint(cluster=verdict.cluster, node=node, taint=taint)
    return wanted


def _carries(node: Node, taint: Taint) -> bool:
    same = any((there.key, there.effect) == (taint.key, taint.effect) for there in node.taints)
    return node.unschedulable and (same or taint is CORDONED)


def _taint(node_taint: NodeTaint, clusters: Clusters) -> Node | None:
    try:
        return clusters.kubernetes(node_taint.cluster).taint(node_taint.node, node_taint.taint)
    except ObjectGoneError:
        return None


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
        return f"Leeward has cordoned this node: {node.reason}" if node.action is NodeAction.CORDON else None
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
