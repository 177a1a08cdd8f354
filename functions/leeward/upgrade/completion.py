"""Ends of an upgrade: surplus launches offset, the group restored, the record closed or its failure recorded.

In every branch AZRebalance is resumed and the maximum size restored, as soon as it can be. Each wait ends: with the
group as it was, or with a failure that names what blocks it. Offsets of others are left to them.

Surplus is chosen from one observation and from the record. A node without evictable pods leaves at once. The others
leave within the limits that hold for old nodes: maxUnavailable, every budget with reason Upgrade, the budgets of their
pods.

After a failure old nodes return to service and to load balancers, because the next start may be days away; it cordons
them again when its gate opens. New nodes that no old node has left for stay: they may hold pods, and the next start
continues with them. The failure names them, and so does an Event, once a day as long as they are there."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from leeward.errors import LeewardError, ObjectGoneError
from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.facts import ClusterFacts
from leeward.model.group import AZ_REBALANCE
from leeward.model.node import Node
from leeward.model.termination import Status
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.autoscaling import Maxima
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog, Claims, Upgrades
from leeward.snapshot.launchable import price_of
from leeward.termination import capacity_ledger, maximum_size
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import with_warning, without
from leeward.upgrade.failures import describe_blocked
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Observation, observe
from leeward.upgrade.preflight.model import Preflight, in_shifted_zone, zone_of
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.run import LONGEST_WHY, REFUSED_UPDATE, UpgradeNext, UpgradeRun, read, start_next, written
from leeward.upgrade.start import begin_next
from leeward.upgrade.surge.orders import adopted, launch_ordered
from leeward.upgrade.terminations import request_offset, uncordon
from leeward.upgrade.waits import MOST_NAMED, UpgradeWait, again, longest_wait, track_wait
from leeward.upgrade.waves.drain_selection import busy_nodes
from leeward.upgrade.waves.model import WaveNode, has_to_leave, wave_node
from leeward.upgrade.waves.planner import next_nodes
from leeward.workflow.scale_down_protection import release_all
from leeward.workflow.steps import Step

EVENT = "UpgradeFailed"
REMINDED = timedelta(days=1)
LOOK = timedelta(minutes=5)  # after each full day: the minute reconciler comes at least once
LONGEST_LEFT = 300
SCALING_DOWN = "scaling down"
ERRORS = {
    UpgradeNext.BLOCKED: "PreflightBlocked",
    UpgradeNext.CREATION_FAILURE: "NodeCreationFailure",
    UpgradeNext.EVICTION_FAILURE: "PodEvictionFailure",
    UpgradeNext.UPDATE_FAILURE: REFUSED_UPDATE,
}
PATIENCE = timedelta(minutes=15)  # until offsets of others no longer keep the upgrade open
PAUSE = 10  # seconds


def scale_down(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Terminate a surplus where one is left: a new node that no old node has offset. The termination of the
    emptiest new node is requested for it, and from then on that termination restores the size.
    """
    record = launch_ordered(read(run, ports.upgrades), ports)
    observation = observe(record, ports)
    record = adopt_raised(record, observation, ports.upgrades)
    if record.others_scaled is not None and record.ahead:
        record = written(without(record, record.ahead), ports.upgrades)
    record = request_offsets(record, observation, ports)
    return wait_for_size(run, record, observation, ports)


def request_offsets(record: UpgradeRecord, observation: Observation, ports: Ports) -> UpgradeRecord:
    """Assign unassigned launches to named nodes: new ones and those launched ahead before others, the emptiest first,
    those in a zone with a zonal shift last; written to the record, then requested. Nodes with evictable pods are named
    only as the limits of drains allow now, the others in later turns. Launches by which the desired size is not larger
    were taken back by another writer: of these, first the ones that are leaving.
    """
    if record.unassigned:
        staying = capacity_ledger.staying(observation.group)
        unassigned = sorted(record.unassigned, key=lambda new: new in staying)
        larger = max(observation.group.desired - record.desired, 0)
        taken_back = unassigned[: max(len(unassigned) - larger, 0)]
        if taken_back:
            what = f"{', '.join(taken_back)}: launched ahead, and the desired size is no larger than without"
            record = written(with_warning(without(record, taken_back), what), ports.upgrades)
    free = _candidates(record, observation, ports.claims) if record.unassigned else []
    offsets = dict(zip(record.unassigned, (one.instance.id for one in free), strict=False))
    if offsets:
        record = written(record.with_offsets(offsets), ports.upgrades)
    requested = {new: by for new, by in record.assigned.items() if by not in record.under_way}
    for new, by in requested.items():
        request_offset(record, new, by, observation, ports)
    if not requested:
        return record
    warning = f"{', '.join(sorted(requested.values()))} are terminated to offset launches that no old node was left for"
    return written(with_warning(without(record, requested), warning), ports.upgrades)


def adopt_raised(record: UpgradeRecord, observation: Observation, upgrades: Upgrades) -> UpgradeRecord:
    """Adopt instances for which the desired size was raised; they may come after the last drain."""
    changed = adopted(record, observation)
    return written(changed, upgrades) if changed != record else record


def _candidates(record: UpgradeRecord, observation: Observation, claims: Claims) -> list[Member]:
    """Return the members whose termination may be requested now, the first to leave first. An operator's scale-in
    protection holds, but not for launches of the upgrade. One whose termination is open already is left alone.
    """
    preflight, taken = observation.preflight, set(record.assigned.values())
    terminations = read_apart((one.instance.id for one in preflight.members), claims)
    busy = {name for name, termination in terminations.read.items() if termination.status is Status.OPEN}
    busy |= terminations.unreadable.keys()
    free = [
        one
        for one in preflight.members
        if one.instance.id not in taken | busy and (not one.instance.protected or one.instance.id in record.ahead)
    ]
    free.sort(
        key=lambda one: (
            in_shifted_zone(preflight.snapshot, one),
            one.age is Age.OLD and one.instance.id not in record.ahead,
            pods_to_move(preflight, one),
            one.name,
        )
    )
    return may_leave_now(preflight, record, free[: len(record.unassigned)])


def pods_to_move(preflight: Preflight, member: Member) -> int:
    """Count the pods of the member that have to be evicted."""
    if member.node is None:
        return 0
    return sum(has_to_leave(pod) for pod in preflight.snapshot.pods_on(member.node.name))


def may_leave_now(preflight: Preflight, record: UpgradeRecord, candidates: Sequence[Member]) -> list[Member]:
    """Return the candidates, in their order, whose termination may be requested now. A requested surplus counts until
    its pods have left, also before its node is tainted.
    """
    full = {one.name: one for one in candidates if pods_to_move(preflight, one)}
    nodes = [_wave_node(preflight, one) for one in full.values()]
    chosen = set(next_nodes(nodes, busy_nodes(preflight, record), preflight.limits, preflight.constraints))
    return [one for one in candidates if one.name not in full or one.name in chosen]


def _wave_node(preflight: Preflight, member: Member) -> WaveNode:
    zone = zone_of(preflight.snapshot, member)
    if member.node is None:
        return WaveNode(name=member.name, zone=zone, created=preflight.snapshot.now)
    pods = preflight.snapshot.pods_on(member.node.name)
    return wave_node(member.name, zone, member.node.created, pods, preflight.index)


def wait_for_size(run: UpgradeRun, record: UpgradeRecord, observation: Observation, ports: Ports) -> UpgradeRun:
    """Wait until the desired size is what it was; what others changed, or have not offset, is left to them."""
    now = ports.clock.now()
    if record.ahead or record.raised:
        return _not_offset(run, record, observation, ports)
    if record.others_scaled is not None or observation.group.desired <= record.desired:
        return replace(run, next=UpgradeNext.RESTORE, why=f"desired size {observation.group.desired}")
    if record.wait_key != SCALING_DOWN:
        record = written(replace(record, phase_since=now, wait_key=SCALING_DOWN), ports.upgrades)
    if now - (record.phase_since or now) < PATIENCE:
        return again(
            run, UpgradeNext.WAIT, PAUSE, f"desired size is {observation.group.desired}, it was {record.desired}"
        )
    written(
        with_warning(record, f"the desired size is {observation.group.desired}, it was {record.desired}"),
        ports.upgrades,
    )
    return replace(run, next=UpgradeNext.RESTORE, why="others offset what is left")


def _not_offset(run: UpgradeRun, record: UpgradeRecord, observation: Observation, ports: Ports) -> UpgradeRun:
    """Wait for launches that no node has offset yet: instances that the raised desired size has not brought, or members
    that others terminate, so that none is left to offset them.
    """
    objects = [*record.ahead, *([f"{record.raised} of the raised desired size"] if record.raised else [])]
    limit = longest_wait(observation.policy.drain)
    wait = UpgradeWait(what="launches are not offset", objects=objects, limit=limit)
    record, stalled = track_wait(record, wait, ports.clock, ports.upgrades)
    if not stalled:
        return again(run, UpgradeNext.WAIT, PAUSE, "launches are not offset yet")
    waits = f"{format_duration(limit)}: {', '.join(objects[:MOST_NAMED])}"
    if record.raised:
        why = f"the group has not launched for {waits}: look at the scaling activities of {record.group}"
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=why)
    others = describe_blocked(
        (one.instance.id for one in observation.preflight.members), record, observation, ports.claims
    )
    return replace(run, next=UpgradeNext.EVICTION_FAILURE, why=f"no node has offset a launch in {waits}: {others}")


def restore(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Resume AZRebalance, restore the maximum size, remove Leeward's cordons and close the record. No later step looks
    for cordons, so the nodes are read here: a list that is seconds old might lack one that a step has just set.
    """
    record = read(run, ports.upgrades)
    observation = observe(record, ports)
    members = {one.id for one in observation.group.instances}  # also those that were put into Standby since
    nodes = ports.clusters.kubernetes(record.cluster).nodes()
    uncordon((node for node in nodes if node.instance_id in members), record, ports.clusters)
    record = restore_group(record, ports)
    how = (
        UpgradeNext.ABORTED
        if record.control is ControlRequest.ABORT
        else UpgradeNext.ROLLED_BACK
        if record.rolling_back
        else UpgradeNext.UPGRADED
    )
    target = f", {record.target.template.label}" if record.target.template else ""
    why = (
        f"{count_of(record.finished, 'node')} replaced, "
        f"{count_of(len(observation.preflight.members), 'member')}{target}"
    )
    then = begin_next(record, ports.upgrade_executions) if how is UpgradeNext.UPGRADED else ""
    out = "" if how is UpgradeNext.ABORTED else _left_out(observation)
    summary = "; ".join(part for part in (why, out, then, *record.warnings) if part)
    left = () if how is not UpgradeNext.UPGRADED else record.then
    ended = replace(record, ended=ports.clock.now(), error="", why=summary[:500], then=left, hold=None)
    written(ended, ports.upgrades)
    return replace(run, next=how, why=summary)


def _left_out(observation: Observation) -> str:
    """Name the old instances that stay: one may have been put into Standby or protected after pre-flight."""
    out = observation.preflight.left_out
    names = ", ".join(f"{one.instance.id} {one.absence.value}" for one in out[:MOST_NAMED])
    more = f" and {len(out) - MOST_NAMED} more" if len(out) > MOST_NAMED else ""
    return f"not upgraded: {names}{more}" if out else ""


def note_failure(run: UpgradeRun, call: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Record the failure and keep the record for the next start: new nodes serve, the group
    launches the new version. The old nodes return to service, and the failure says what is left.
    """
    record = restore_group(read(run, ports.upgrades), ports)
    error = ERRORS.get(run.next) or str(call.get("error") or "UpgradeFailure")
    why = run.why if run.next in ERRORS else str(call.get("cause") or "")
    if left := end_failed(record, ports):
        why = f"{why[: LONGEST_WHY - len(left) - 2]}; {left}"
    onward = run.next if run.next in ERRORS else UpgradeNext.FAILED
    failed = replace(record, ended=ports.clock.now(), error=f"{error}: {why}"[:1000], why=why[:500], hold=None)
    announce_failure(written(failed, ports.upgrades), failed.error, ports)
    return replace(run, next=onward, why=why)


def continue_in_new_execution(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Start the next execution, which takes over the lease: the history of this one is nearly full, or the group is one
    of the other state machine. Its name follows from the record, so a repeat starts one.
    """
    record = read(run, ports.upgrades)
    document = {"v": 1, "group": record.group, "attempt": record.attempt + 1, "after": run.execution}
    document |= {"cluster": record.cluster} if ports.places else {}
    name = start_next(
        record.group,
        record.target.nodegroup,
        record.attempt,
        document,
        ports.upgrade_executions,
        ports.managed_upgrade_executions,
    )
    return replace(run, next=UpgradeNext.CONTINUED, why=f"execution {name} continues")


def restore_group(record: UpgradeRecord, ports: Ports) -> UpgradeRecord:
    """Remove scale-down protection, put MaxSize back, resume AZRebalance. The calls come first: what is recorded as
    Leeward's is undone again by the next execution, or at the latest by the minute reconciler. While a zonal shift is
    in effect AZRebalance stays suspended: balancing would launch into its zone. A deleted group has nothing to restore;
    the next group of its name is not restored in its place.
    """
    release_all(record.group, record.cluster, ports.clusters)
    maximum_size.release([record.group], maximum_size.UPGRADE, record.cluster, ports)
    if not record.suspended or ports.catalog.zonal_shifts(record.cluster).shifts:
        return record
    with suppress(ObjectGoneError):
        ports.group_changes.resume(record.group, AZ_REBALANCE)
    return replace(record, suspended=False)


def give_back(record: UpgradeRecord, nodes: Iterable[Node], clusters: Clusters) -> list[str]:
    """Remove Leeward's cordons and exclusions for this group and return the names of the nodes. A node whose
    termination is requested keeps them until that ends. Idempotent.
    """
    marks = (well_known.CORDONED_FOR, well_known.EXCLUDED_FOR)
    mine = [node for node in nodes if record.group in {node.annotations.get(mark) for mark in marks}]
    uncordon(mine, record, clusters)
    return [node.name for node in mine]


def left_behind(record: UpgradeRecord, instances: Instances, catalog: Catalog, maxima: Maxima) -> str:
    """Return what the upgrade leaves and what it costs, in a sentence; empty for nothing."""
    known = instances.describe(record.ahead) if record.ahead else {}
    new = [instance for instance in known.values() if not instance.ended]
    maximum = maximum_size.left_above(record.group, maxima)
    if not new:
        return maximum
    prices = ClusterFacts.from_sheets(catalog.read(record.cluster)).prices
    costs = [price_of(one.type, one.zone, one.capacity_type, prices) for one in new]
    cost = "" if None in costs else f", some ${sum(filter(None, costs)):.2f} an hour"
    more = f" and {len(new) - MOST_NAMED} more" if len(new) > MOST_NAMED else ""
    names = ", ".join(sorted(one.id for one in new)[:MOST_NAMED]) + more
    stay = f"new nodes beyond the group's size: {len(new)} ({names}{cost}): start continues with them, abort ends them"
    return "; ".join(filter(None, (stay, maximum)))[:LONGEST_LEFT]


def end_failed(record: UpgradeRecord, ports: Ports) -> str:
    """Give the old nodes back and return what is left. An API that does not answer keeps no failure from being
    recorded: the minute reconciler gives the nodes back then.
    """
    left = ""
    with suppress(LeewardError):
        left = left_behind(record, ports.instances, ports.catalog, ports.maxima)
    with suppress(LeewardError):
        give_back(record, ports.clusters.kubernetes(record.cluster).nodes(), ports.clusters)
    return left


def announce_failure(record: UpgradeRecord, why: str, ports: Ports) -> None:
    """Write the Event of a node of the group. It is written after the record, which it repeats."""
    with suppress(LeewardError):
        kubernetes = ports.clusters.kubernetes(record.cluster)
        group = ports.groups.describe([record.group]).get(record.group)
        members = {member.id for member in group.instances} if group is not None else set()
        node = next((node for node in kubernetes.nodes() if node.instance_id in members), None)
        if node is not None:
            message = f"upgrade of {record.group}: {why}"[:1000]
            kubernetes.event(node, reason=EVENT, message=message, warning=True, now=ports.clock.now())


def remind(record: UpgradeRecord, ports: Ports) -> None:
    """Write the Event once a day while new nodes of a failed upgrade stay that no old node has left for."""
    now = ports.clock.now()
    if record.ended is None or not record.error or not record.ahead:
        return
    since = now - record.ended
    if since < REMINDED or since % REMINDED >= LOOK:
        return
    key = f"upgrade-left#{record.group}#{record.stamp}#{since // REMINDED}"
    if ports.claims.once(key, REMINDED, now) and (
        left := left_behind(record, ports.instances, ports.catalog, ports.maxima)
    ):
        announce_failure(record, f"failed {since.days} d ago: {left}", ports)


STEPS: Mapping[str, Step[UpgradeRun]] = {
    "restore": restore,
    "note-failure": note_failure,
    "continue": continue_in_new_execution,
}
"""Steps of both state machines of upgrades."""
