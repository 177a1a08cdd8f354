"""Waits of an upgrade that no longer move: how long one may last, and what blocks it by then.

Decides from the record since when a wait has stood still. A wait stands still while the nodes that it is for stay
the same, no drain begins or ends, and no pod leaves them. Nodes that another controller or a person terminates count
as well: an upgrade that ends names the node, what blocks it, the object and the fix, and is started again
afterwards."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

from leeward.model.node import Node
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.document import DrainPolicy
from leeward.ports.clock import Clock
from leeward.ports.records import Claims, Upgrades
from leeward.upgrade.lease import written
from leeward.upgrade.preflight import Preflight
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.scene import Scene
from leeward.upgrade.status import blocking_drains
from leeward.upgrade.unavailable_nodes import still_there

STALLED = timedelta(minutes=40)  # longer than a group tries to launch before an operator should look
AFTER_DRAIN = timedelta(minutes=15)  # load balancers, volumes, settling and the end of an instance
MOST_NAMED = 5  # nodes of a failure; the others are blocked by the same objects most often


def leaving_nodes(preflight: Preflight, record: UpgradeRecord, held: Mapping[str, str]) -> tuple[str, ...]:
    """Return instances whose end the upgrade waits for: those whose termination it has requested, and old nodes that
    others terminate. `held`: those of the first that their hook holds, which end when their pods leave.
    """
    others = {one.instance.id for one in preflight.old if one.node is not None and one.node.marked}
    return tuple(sorted((record.under_way.keys() | others) - held.keys()))


def longest_wait(drain: DrainPolicy) -> timedelta:
    """Return the time in which something has to move: no shorter than a drain that uses all of its time."""
    longest = max(drain.timeout, drain.termination_grace_period or timedelta())
    return max(STALLED, longest + AFTER_DRAIN)


def pods_left(instances: Iterable[str], preflight: Preflight) -> int:
    """Count pods on these instances that have to leave and have not left."""
    nodes = _nodes(instances, preflight).values()
    return sum(still_there(pod) for node in nodes for pod in preflight.world.pods_on(node.name))


def waited(
    record: UpgradeRecord,
    what: str,
    objects: Iterable[str],
    limit: timedelta,
    clock: Clock,
    upgrades: Upgrades,
    *,
    pods: int = 0,
) -> tuple[UpgradeRecord, bool]:
    """Return the record, and whether this wait has stood still for longer than `limit`. Its beginning is written when
    what is waited for changes; a repeat finds the same words and writes nothing. `pods`: those left, fewer of which is
    progress: compared when the limit is reached.
    """
    now, why = clock.now(), _words(record, what, sorted(objects))
    if record.why != why:
        return written(replace(record, phase_since=now, why=why, awaited=pods), upgrades), False
    if now - (record.phase_since or now) <= limit:
        return record, False
    if pods < record.awaited:
        return written(replace(record, phase_since=now, awaited=pods), upgrades), False
    return record, True


def what_blocks(instances: Iterable[str], record: UpgradeRecord, scene: Scene, claims: Claims) -> str:
    """Return for each node that does not leave: who terminates it, what blocks that, and the fix."""
    named = sorted(instances)
    terminations = claims.read_all(named[:MOST_NAMED])
    nodes = _nodes(named, scene.preflight)
    told = [_blocked(one, nodes.get(one), terminations.get(one), record, scene) for one in named[:MOST_NAMED]]
    more = len(named) - len(told)
    return "; ".join([*told, *([f"and {more} more nodes"] if more else [])])


def _words(record: UpgradeRecord, what: str, objects: list[str]) -> str:
    """Return words that differ whenever the wait has moved: another attempt, drain, end or failure,
    or other objects.
    """
    digest = sha256(" ".join(objects).encode()).hexdigest()[:8]
    counts = f"attempt {record.attempt}, {record.started} started, {record.finished} gone, {len(record.failed)} failed"
    return f"{what}: {len(objects)} ({', '.join(objects[:MOST_NAMED])}; {digest}; {counts})"


def _nodes(instances: Iterable[str], preflight: Preflight) -> dict[str, Node]:
    wanted = set(instances)
    return {one.instance_id: one for one in preflight.world.nodes if one.instance_id in wanted}


def _blocked(
    instance: str, node: Node | None, termination: TerminationRecord | None, record: UpgradeRecord, scene: Scene
) -> str:
    name = node.name if node is not None else instance
    said = [*_objects(node, scene), *(termination.blocked_by if termination is not None else ())]
    if instance in record.under_way and termination is None and scene.preflight.world.terminating:
        others = ", ".join(sorted(scene.preflight.world.terminating)[:MOST_NAMED])
        said.append(f"the policy's budgets for Upgrade are held by {others}: wait for these or raise the budget")
    blocks = "; ".join(dict.fromkeys(said))
    return f"{name} does not leave ({_by(instance, termination, record)}): {blocks or _look_up(name, termination)}"


def _by(instance: str, termination: TerminationRecord | None, record: UpgradeRecord) -> str:
    """Return who terminates it."""
    if instance in record.under_way:
        return "terminated by this upgrade"
    if termination is None or termination.status is Status.CLOSED:
        return "tainted by another controller or a person"
    return f"terminated for {', '.join(dict.fromkeys(cause.kind.value for cause in termination.causes))}"


def _objects(node: Node | None, scene: Scene) -> list[str]:
    """Return what blocks the node in the cluster, each object with its fix."""
    if node is None:
        return []
    found = [
        f"{one.pod or 'the node'}: {one.object}: {one.fix}"
        for one in blocking_drains(scene.preflight)
        if one.node == node.name
    ]
    if node.deleting and node.finalizers:
        fix = f"let its controller release it: kubectl get node {node.name} -o jsonpath='{{.metadata.finalizers}}'"
        found.append(f"the Node is being deleted and has the finalizers {', '.join(node.finalizers)}: {fix}")
    return found


def _look_up(name: str, termination: TerminationRecord | None) -> str:
    if termination is not None and termination.failure:
        return f"{termination.failure}: leeward blockers {name}"
    return f"nothing in the cluster is known to block it: leeward blockers {name}, kubectl describe node {name}"
