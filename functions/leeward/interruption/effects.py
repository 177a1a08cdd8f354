"""What a decision does outside, one small idempotent effect each. Doing one twice is the same as doing it once."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType

from leeward.errors import ClusterUnreachableError, LeewardError
from leeward.interruption.decision import Action, Decision, HookAnswer, NodeDecision
from leeward.interruption.marking import Marking
from leeward.interruption.world import World
from leeward.model.message import Kind
from leeward.model.node import disruption_taint
from leeward.model.promise import SHORT_FOR, Pool
from leeward.model.termination import Cause, Outcome, Status, Subject
from leeward.ports import Ports
from leeward.termination.heartbeats import AT_EVERY_CHANCE, beat
from leeward.termination.situation import survey
from leeward.termination.starting import start
from leeward.termination.verdict import retry_after

Effect = Callable[[], str | None]  # does it; answers with a warning for the log, or None
RESTARTS_AT_ONCE = 3  # an execution that dies again and again is left to the sweeper, with growing pauses

EVENT_REASONS: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.SPOT_INTERRUPTION: "SpotInterruption",
        Kind.CAPACITY_RESERVATION: "CapacityReservationInterruption",
        Kind.REBALANCE_RECOMMENDATION: "RebalanceRecommendation",
        Kind.SCHEDULED_CHANGE: "ScheduledChange",
        Kind.STATE_CHANGE: "InstanceStateChange",
        Kind.ASG_TERMINATE: "GroupTerminating",
    }
)


def effects_of(decision: Decision, world: World, marking: Marking, ports: Ports) -> Iterator[tuple[str, Effect]]:
    """The effects of one decision, each under a key that is the same for every duplicate of its message."""
    for node in decision.nodes:
        if node.subject is not None and node.cause is not None:
            claim = partial(_claim, node.subject, node.cause, node, decision, world, marking, ports)
            yield f"claim {node.cause.id}", claim
        elif node.action is Action.CORDON:
            yield f"cordon {node.instance}", partial(_cordon, node, decision, world, marking, ports)
    if decision.unavailable is not None:
        pool = Pool(instance_type=decision.unavailable.instance_type, zone=decision.unavailable.zone)
        for cluster in sorted({node.cluster for node in decision.nodes if node.cluster}):
            yield f"short {cluster} {pool.instance_type} {pool.zone}", partial(_run_short, cluster, pool, ports)
    if decision.hook is not None and decision.hook.at_once:
        action = decision.hook.action
        yield f"answer {action.group} {action.hook} {action.instance}", partial(_answer, decision.hook, ports)
    if decision.ended_execution:
        yield f"revive {decision.ended_execution}", partial(_revive, decision.ended_execution, ports)


def _claim(
    subject: Subject,
    cause: Cause,
    node: NodeDecision,
    decision: Decision,
    world: World,
    marking: Marking,
    ports: Ports,
) -> str | None:
    """Claim or join, then start; each alone is idempotent, and a redelivery mends what broke between them.

    A record that has been closed knows this cause already: the message came late or twice, and a mark that it has
    just put on a node that was given back comes off again.
    """
    record = ports.claims.claim(subject, cause, ports.clock.now())
    if record.status is Status.CLOSED:
        if record.outcome is Outcome.GIVEN_BACK and node.instance in marking.fresh and node.cluster:
            ports.clusters.kubernetes(node.cluster).unmark(
                marking.fresh[node.instance], disruption_taint(ports.deployment)
            )
        return None
    if not decision.paced:
        record = start(record, ports)
        if record.token and len(record.causes) > 1:
            ports.executions.wake(record.token)
    return _tell(node, decision, world, ports) or _mark_warning(node, marking)


def _cordon(node: NodeDecision, decision: Decision, world: World, marking: Marking, ports: Ports) -> str | None:
    """The mark was all there is to do, so a failed one fails the record; so does an API that showed no nodes."""
    if node.cluster in world.unseen or node.instance in marking.failed:
        raise marking.failed.get(node.instance) or ClusterUnreachableError(f"cluster {node.cluster} shows no nodes")
    return _tell(node, decision, world, ports)


def _run_short(cluster: str, pool: Pool, ports: Ports) -> str | None:
    """Remembered for a while, so that replacements go elsewhere. One that is not remembered costs a launch at most."""
    try:
        ports.catalog.run_short(cluster, pool, ports.clock.now() + SHORT_FOR)
    except LeewardError as error:
        return f"not remembered that {pool.instance_type} is short in {pool.zone}: {error}"
    return None


def _answer(answer: HookAnswer, ports: Ports) -> str | None:
    """By instance id; an action that waits no more was answered before, or the group has gone on without us."""
    action = answer.action
    waited = ports.groups.complete(group=action.group, hook=action.hook, instance=action.instance, result=answer.result)
    return None if waited else f"hook {action.hook} of {action.instance} was not waiting any more"


def _revive(execution: str, ports: Ports) -> str | None:
    """An execution of ours ended badly: if its record is still open and nothing runs for it, the next attempt begins.

    One that has noted when to try again, or that died several times, is left to the sweeper; a hook that holds its
    instance is heartbeaten first, so that some sweeps may fail.
    """
    record = ports.claims.read(execution.rpartition("-")[0])
    if record is None or record.status is Status.CLOSED or ports.executions.running(record.instance, record.attempt):
        return None
    now = ports.clock.now()
    if record.times.get("retry", now) > now:
        return None
    if record.tries >= RESTARTS_AT_ONCE:
        beat(survey(record, ports), ports, AT_EVERY_CHANCE)
        ports.claims.note(record.instance, times={"retry": now + max(retry_after(record.tries), timedelta(minutes=1))})
        return f"attempt {record.attempt} of {record.instance} ended badly: the sweeper tries again later"
    start(record, ports)
    return None


def _tell(node: NodeDecision, decision: Decision, world: World, ports: Ports) -> str | None:
    """An Event on the Node. What is only told must not fail what was done."""
    subject = world.nodes.get(node.instance)
    if subject is None or node.cluster is None or decision.kind is None:
        return None
    try:
        ports.clusters.kubernetes(node.cluster).event(
            subject,
            reason=EVENT_REASONS[decision.kind],
            message=f"Leeward will {node.action.value} this node: {node.reason}",
            warning=True,
            now=ports.clock.now(),
        )
    except LeewardError as error:
        return f"no Event on {subject.name}: {error}"
    return None


def _mark_warning(node: NodeDecision, marking: Marking) -> str | None:
    failed = marking.failed.get(node.instance)
    return f"{node.instance} is not tainted yet, the drain will do it: {failed}" if failed else None
