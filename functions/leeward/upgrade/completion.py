"""Ends of an upgrade: scaled down and restored, undone, turned into a rollback, or failed with a record that the
next start resumes. In every branch AZRebalance is resumed and the maximum size restored, as soon as it can be."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leeward.errors import ObjectGoneError
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Claims, Upgrades
from leeward.termination import capacity_ledger
from leeward.termination.execution import is_open
from leeward.upgrade.capacity_ledger import conclude, held_back, offset_by, parted, with_warning, without
from leeward.upgrade.lease import read, start_next, written
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Scene, look, measured
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.rollback import nodes_finish, settled
from leeward.upgrade.rollout import adopted
from leeward.upgrade.run import REFUSED_UPDATE, Next, Run
from leeward.upgrade.stalled import MOST_NAMED
from leeward.upgrade.start import begin_next
from leeward.upgrade.surge.orders import fulfil
from leeward.upgrade.templates import points_at
from leeward.upgrade.termination_requests import request_offset, tell
from leeward.upgrade.waves.model import has_to_leave
from leeward.upgrade.waves.shared_budgets import still_allowed
from leeward.workflow.scale_down_protection import release_all
from leeward.workflow.steps import Step

REBALANCE = "AZRebalance"
ERRORS = {
    Next.BLOCKED: "PreflightBlocked",
    Next.CREATION_FAILURE: "NodeCreationFailure",
    Next.EVICTION_FAILURE: "PodEvictionFailure",
    Next.CANARY_FAILURE: "CanaryFailure",
    Next.UPDATE_FAILURE: REFUSED_UPDATE,
}


def scale_down(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Terminate a surplus where one is left: a new node that no old node has offset. The termination of the
    emptiest new node is requested for it, and from then on that termination restores the size.
    """
    record = fulfil(read(run, ports.upgrades), ports)
    scene = look(record, ports)
    record = _adopted(record, scene, ports.upgrades)
    if record.others_scaled is not None and record.ahead:
        record = written(without(record, record.ahead), ports.upgrades)
    record = _pass_on(record, scene, scene.preflight.members, ports)
    return settled(run, record, scene, ports)


def undo(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Abort: return old nodes without a termination request to service, let those on their way finish, terminate as
    many new nodes as are not offset, those without pods first, and launch as before.
    """
    record = fulfil(read(run, ports.upgrades), ports)
    scene = look(record, ports)
    record = _adopted(record, scene, ports.upgrades)
    ends = ports.claims.read_all(record.under_way)
    books = conclude(record, ends)
    if books.record != record:
        record = written(books.record, ports.upgrades)
    record, untold = still_allowed(record, books.unclaimed, scene.preflight, ports)
    tell(record, untold, scene, ports)
    if record.previous is not None and not points_at(scene.group, record.previous, ports.templates):
        assert record.previous.template is not None  # what a rollback returns to has one
        ports.group_changes.point_at(scene.group, record.previous.template)
    record = _rollback_aborted(record, ports.upgrades)
    stay = [one for one in scene.preflight.old if one.instance.id not in record.under_way]
    uncordon((one.node for one in stay if one.node is not None), record, ports.clusters)
    held = held_back(record, ends, scene.policy.drain.timeout, ports.clock.now())
    if len(record.under_way) > len(held):
        return nodes_finish(run, record, held, scene, ports)
    if held:
        record = _parted(record, {old: ends[old] for old in held}, ports)
        record = with_warning(
            record, f"{', '.join(sorted(held))} end when their pods leave: their termination was requested already"
        )
    record = _pass_on(record, scene, scene.preflight.members, ports)
    return settled(run, record, scene, ports)


def _rollback_aborted(record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRecord:
    """Add a remark which version the group launches: an abort returns to the one before, for a rollback the version
    that it was to leave.
    """
    wanted, before = record.target.template, record.previous.template if record.previous is not None else None
    if not record.rolling_back or wanted is None or before is None:
        return record
    warning = (
        f"the rollback was aborted: {record.group} launches {before.told}, the version that was rolled back from; to "
        f"finish it: leeward upgrade start {record.group} --launch-template-version {wanted.version}"
    )
    found = with_warning(record, warning)
    return written(found, upgrades) if found != record else record


def start_rollback(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Begin the rollback: the same workflow with the previous version as the target. Old and new members follow from
    the target; surge nodes stay what they are. Killed after the write, the repeated step changes nothing.
    """
    record = read(run, ports.upgrades)
    if record.control is not ControlRequest.ROLLBACK or record.previous is None:
        return replace(run, next=Next.POINT, why="turned round")
    group = ports.groups.describe([record.group])[record.group]
    turned = replace(
        record,
        target=record.previous,
        previous=record.target,
        control=ControlRequest.RUN,
        rolling_back=not record.rolling_back,
        prepared=True,
        checked=True,
        cordoned=False,
        failed=(),
        reasons={},
        error="",
        proven=None,
        phase_since=None,
        why="",
    )
    if not record.in_sizes:
        turned = replace(measured(turned, group, ports), others_scaled=None, others_seen=None)
    written(turned, ports.upgrades)
    return replace(
        run, next=Next.POINT, why=f"back to {record.previous.template.told if record.previous.template else ''}"
    )


def restore(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Resume AZRebalance, restore the maximum size, remove Leeward's cordons and close the record. No later step looks
    for cordons, so the nodes are read here: a list that is seconds old might lack one that a step has just set.
    """
    record = read(run, ports.upgrades)
    scene = look(record, ports)
    members = {one.id for one in scene.group.instances}  # also those that were put into Standby since
    nodes = ports.clusters.kubernetes(record.cluster).nodes()
    uncordon((node for node in nodes if node.instance_id in members), record, ports.clusters)
    record = give_back_group(record, ports)
    how = (
        Next.ABORTED
        if record.control is ControlRequest.ABORT
        else Next.ROLLED_BACK
        if record.rolling_back
        else Next.UPGRADED
    )
    target = f", {record.target.template.told}" if record.target.template else ""
    why = f"{record.finished} nodes replaced, {len(scene.preflight.members)} members{target}"
    then = begin_next(record, ports.upgrade_executions) if how is Next.UPGRADED else ""
    out = "" if how is Next.ABORTED else _left_out(scene)
    said = "; ".join(part for part in (why, out, then, *record.warnings) if part)
    left = () if how is not Next.UPGRADED else record.then
    written(replace(record, ended=ports.clock.now(), error="", why=said[:500], then=left), ports.upgrades)
    return replace(run, next=how, why=said)


def _left_out(scene: Scene) -> str:
    """Name the old instances that stay: one may have been put into Standby or protected after pre-flight."""
    out = scene.preflight.left_out
    told = ", ".join(f"{one.instance.id} {one.absence.value}" for one in out[:MOST_NAMED])
    more = f" and {len(out) - MOST_NAMED} more" if len(out) > MOST_NAMED else ""
    return f"not upgraded: {told}{more}" if out else ""


def note_failure(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Record the failure and keep the record for the next start: new nodes serve, the group
    launches the new version.
    """
    record = give_back_group(read(run, ports.upgrades), ports)
    error = ERRORS.get(run.next) or str(call.get("error") or "UpgradeFailure")
    why = run.why if run.next in ERRORS else f"{error}: {call.get('cause') or ''}"
    onward = run.next if run.next in ERRORS else Next.FAILED
    written(replace(record, ended=ports.clock.now(), error=f"{error}: {why}"[:1000], why=why[:500]), ports.upgrades)
    return replace(run, next=onward, why=why)


def go_on(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Start the next execution, which takes over the lease: the history of this one is nearly full, or the group is one
    of the other state machine. Its name follows from the record, so a repeat starts one.
    """
    record = read(run, ports.upgrades)
    document = {"v": 1, "group": record.group, "attempt": record.attempt + 1, "after": run.execution}
    name = start_next(
        record.group,
        record.target.nodegroup,
        record.attempt,
        document,
        ports.upgrade_executions,
        ports.managed_upgrade_executions,
    )
    return replace(run, next=Next.CONTINUED, why=f"execution {name} goes on")


STEPS: Mapping[str, Step[Run]] = {"restore": restore, "note-failure": note_failure, "continue": go_on}
"""Steps of both state machines of upgrades."""


def give_back_group(record: UpgradeRecord, ports: Ports) -> UpgradeRecord:
    """Remove scale-down protection, resume AZRebalance, restore the maximum size where that can be. The calls come
    first: what is recorded as Leeward's is undone again by the next execution, or at the latest by the minute
    reconciler.
    """
    release_all(record.group, record.cluster, ports.clusters)
    if record.suspended:
        ports.group_changes.resume(record.group, REBALANCE)
    back = record.raised_maximum and (
        _others_chose_more(record, ports.groups) or ports.group_changes.put_back_maximum(record.group, record.maximum)
    )
    if not (record.suspended or back):
        return record
    raised = record.raised_maximum and not back
    return replace(record, suspended=False, raised_maximum=raised, raised_to=record.raised_to if raised else 0)


def _others_chose_more(record: UpgradeRecord, groups: Groups) -> bool:
    """Return whether another writer has set a maximum size above the one that Leeward had raised it to: that size
    stays.
    """
    group = groups.describe([record.group]).get(record.group)
    return group is not None and 0 < record.raised_to < group.maximum


def uncordon(nodes: Iterable[Node], record: UpgradeRecord, clusters: Clusters) -> None:
    """Undo Leeward's cordons, and no others."""
    kubernetes = clusters.kubernetes(record.cluster)
    for node in nodes:
        if {well_known.CORDONED_FOR, well_known.EXCLUDED_FOR} & node.annotations.keys():
            with suppress(ObjectGoneError):
                kubernetes.uncordon(node)


def _parted(record: UpgradeRecord, held: Mapping[str, TerminationRecord], ports: Ports) -> UpgradeRecord:
    """Read the group's history and settle offsets, only while a held instance is to offset a launch: no other source
    reports it before their end.
    """
    if not any(offset_by(record, old) for old in held):
        return record
    activities = ports.groups.activities(record.group, record.began - capacity_ledger.MARGIN)
    found = parted(record, held, activities, ports.clock.now())
    return written(found, ports.upgrades) if found != record else record


def _pass_on(
    record: UpgradeRecord, scene: Scene, among: list[Member] | tuple[Member, ...], ports: Ports
) -> UpgradeRecord:
    """Assign each unassigned launch to a named node: new ones and those launched ahead before others, the emptiest
    first; written to the record, then requested. Where the desired size is what it was, another writer took back what
    was launched.
    """
    if record.unassigned and scene.group.desired <= record.desired:
        what = f"{', '.join(record.unassigned)}: launched ahead, and the desired size is no larger than it was"
        record = written(with_warning(without(record, record.unassigned), what), ports.upgrades)
    taken = set(record.assigned.values())
    free = sorted(
        (one for one in among if one.instance.id not in taken and _may_go(one, record, ports.claims)),
        key=lambda one: (one.age is Age.OLD and one.instance.id not in record.ahead, _pods(scene, one), one.name),
    )
    offsets = dict(zip(record.unassigned, (one.instance.id for one in free), strict=False))
    if offsets:
        record = written(record.with_offsets(offsets), ports.upgrades)
    asked = {new: by for new, by in record.assigned.items() if by not in record.under_way}
    for new, by in asked.items():
        request_offset(record, new, by, scene, ports)
    if not asked:
        return record
    warning = f"{', '.join(sorted(asked.values()))} were asked to offset launches that no old node was left for"
    return written(with_warning(without(record, asked), warning), ports.upgrades)


def _adopted(record: UpgradeRecord, scene: Scene, upgrades: Upgrades) -> UpgradeRecord:
    """Adopt instances for which the desired size was raised; they may come after the last drain."""
    found = adopted(record, scene)
    return written(found, upgrades) if found != record else record


def _may_go(member: Member, record: UpgradeRecord, claims: Claims) -> bool:
    """Return whether the member may be terminated: an operator's scale-in protection holds; launches of the upgrade may
    be terminated. One whose termination is open already is left alone.
    """
    free = not member.instance.protected or member.instance.id in record.ahead
    return free and not is_open(member.instance.id, claims)


def _pods(scene: Scene, member: Member) -> int:
    if member.node is None:
        return 0
    return sum(has_to_leave(pod) for pod in scene.preflight.world.pods_on(member.node.name))
