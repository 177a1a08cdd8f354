"""End of a run: its nodes are gone, or it is given up and rolled back; and the reconciler of runs.

In both cases the termination of surplus replacements is requested, AZRebalance is resumed and MaxSize restored, new
nodes are no longer protected from Cluster Autoscaler, and the groups enter their cooldown.

The instance that offsets a surplus launch is chosen once and recorded before any termination is requested: a retry
after a failed step requests the same instance. A second choice would shrink the group twice for one launch
(docs/designs/capacity-ledger.md). A new node that has left with decrement has undone its launch: Cluster Autoscaler
terminates nodes in this way that do not register.

The reconciler restarts a run whose execution died, and gives groups back the settings that could not be restored at the
end of the last one. Nodes of a run carry our taint without a termination while replacements come up: they are named, so
that no other reconciler removes it."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leeward.disruption.record import GONE, STAYED, DisruptionOutcome, DisruptionRecord, command_of
from leeward.disruption.replacements import adopt, launch_all, raise_sizes, unprotect_launched
from leeward.disruption.run import DisruptionNext, DisruptionRun, Ends, read, restart, retry_at, written
from leeward.disruption.savings import CENT_PARTS
from leeward.disruption.terminations import return_to_service
from leeward.errors import ClusterGoneError, ObjectGoneError
from leeward.model.counts import count_of
from leeward.model.group import AZ_REBALANCE
from leeward.ports import Ports
from leeward.ports.records import Upgrades
from leeward.termination.ledger_settlement import Launch, offsetting, request_offset, undone
from leeward.termination.maximum_size import DISRUPTION, release
from leeward.termination.requests import read_apart

__all__ = ["STAYED", "STEPS", "end", "give_up", "note_failure", "restore_groups"]
GROWTH_PAUSE = 30  # seconds between two checks for the launches of a raised desired size


def end(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """End a run whose terminations have all ended. A command of which at least one node is gone keeps its new nodes:
    they have pods.
    """
    record = roll_back(read(run, ports.disruptions), ports)
    gone = sum(one == GONE for one in record.ends.values())
    stayed = [name for name, instance in record.to_terminate.items() if record.ends.get(instance) == STAYED]
    returned = f"; {', '.join(stayed)} stayed, their pods did not leave or others ended them" if stayed else ""
    why = f"{record.method.value}: {count_of(gone, 'node')} gone, {len(record.launched)} launched{returned}"
    if record.outstanding():
        groups = ", ".join(sorted(set(record.outstanding().values())))
        why = f"{why}; {groups} has not launched what its raised desired size asks for: look at its scaling activities"
    record = restore_groups(record, ports)
    with suppress(ClusterGoneError):
        unprotect_launched(record, ports.clusters)
    outcome = DisruptionOutcome.DONE if record.requested else DisruptionOutcome.GIVEN_UP
    written(record.closed(outcome, why, ports.clock.now()), ports.disruptions)
    return replace(run, next=DisruptionNext.DONE, why=why, ends=ends_of(record))


def ends_of(record: DisruptionRecord) -> Ends:
    """Return what the run has brought. Savings are those of its plan, by the prices of that moment; a command whose
    price is not known, or of which a node stayed, counts none.
    """
    savings: dict[str, float] = defaultdict(float)
    for command, dollars in record.saved:
        groups = {record.members.get(name, "") for name in command.nodes}
        savings[groups.pop() if len(groups) == 1 else ""] += dollars
    return Ends(
        nodes=Counter(record.members[name] for name in record.gone if name in record.members),
        savings=round(sum(savings.values()), CENT_PARTS),
        saved={group: round(dollars, CENT_PARTS) for group, dollars in savings.items() if group},
    )


def give_up(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Roll a run back before any termination was requested: return its nodes to service and terminate its launches.
    An order without a recorded answer is requested once more, so that no launch is forgotten.
    """
    record = read(run, ports.disruptions)
    if record.requested:
        return replace(run, next=DisruptionNext.FOLLOW, why="terminations requested: following them")
    record = adopt(_answered(record, ports), ports)
    record = written(
        record.drop(dict.fromkeys(record.active_commands, run.why or "the run was given up")), ports.disruptions
    )
    record = roll_back(record, ports)
    why = run.why or "given up"
    if record.outstanding():
        return replace(
            run, next=DisruptionNext.FOLLOW, pause=GROWTH_PAUSE, why=f"{why}; the raised desired size is followed"
        )
    record = restore_groups(record, ports)
    unprotect_launched(record, ports.clusters)
    written(record.closed(DisruptionOutcome.GIVEN_UP, why, ports.clock.now()), ports.disruptions)
    return replace(run, next=DisruptionNext.GIVEN_UP, why=why)


def note_failure(run: DisruptionRun, call: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Record that a step has used up its retries: the record says why and stays open, and the minute reconciler
    restarts the run. A run whose cluster EKS has deleted ends, unless it has terminations to follow: each later step
    would fail the same way.
    """
    record = read(run, ports.disruptions)
    why = str(call.get("cause") or "unknown error")[:400]
    if ClusterGoneError.__name__ in why and not record.requested:
        record = restore_groups(roll_back(record.drop(dict.fromkeys(record.active_commands, why)), ports), ports)
        written(record.closed(DisruptionOutcome.GIVEN_UP, why, ports.clock.now()), ports.disruptions)
        return replace(run, next=DisruptionNext.FAILED, why=why)
    again = retry_at(record.attempt, ports.clock.now())
    written(replace(record, retry=again, why=why), ports.disruptions)
    return replace(run, next=DisruptionNext.FAILED, why=f"{why}; started again at {again:%H:%M:%SZ}")


def restore_groups(record: DisruptionRecord, ports: Ports, upgraded: frozenset[str] = frozenset()) -> DisruptionRecord:
    """Restore the groups as soon as possible: MaxSize, and AZRebalance only while no zonal shift is in effect, because
    balancing would launch into the shifted zone. A group that stays suspended stays in the record, and the minute
    reconciler tries again. `upgraded`: groups that are left to their open upgrades.
    """
    shifted = bool(record.suspended) and bool(ports.catalog.zonal_shifts(record.cluster).shifts)
    suspended = record.suspended if shifted else tuple(name for name in record.suspended if name in upgraded)
    for name in record.suspended:
        if name not in suspended:
            with suppress(ObjectGoneError):  # its owner has deleted the group
                ports.group_changes.resume(name, AZ_REBALANCE)
    release(record.groups, DISRUPTION, record.cluster, ports)
    return replace(record, suspended=suspended)


def _answered(record: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Complete only orders that were written: a replacement that was never ordered is not launched now."""
    if not record.orders:
        return raise_sizes(record, record, ports)
    ordered = {command_of(key) for key in record.orders}
    others = {number: "given up before its launch" for number in record.active_commands if number not in ordered}
    return launch_all(record.drop(others), ports, may_grow=False)


def roll_back(record: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Return the record as written. Idempotent. The instance that offsets a launch is claimed before the other nodes
    return to service: a node of this run would otherwise take new pods and lose its taint between two steps towards
    its end.
    """
    surplus = record.surplus()
    if surplus:
        launched = dict(record.launched)
        without_offset = undone({new: launched[new].group for new in surplus}, record.began, ports)
        for new in surplus:
            taken = {*(node.offset_by for node in launched.values()), *record.to_terminate.values()}
            by = None if new in without_offset else offsetting(new, launched[new].group, taken, ports)
            launched[new] = replace(launched[new], offset_by=by, undone=by is None)
        record = written(replace(record, launched=launched), ports.disruptions)
    _request(record, ports)
    with suppress(ClusterGoneError):
        return_to_service(record, record.staying, ports)
    return record


def _request(record: DisruptionRecord, ports: Ports) -> None:
    """Request the termination of each instance that offsets a launch. Those whose record cannot be read come last,
    because their claim raises; one of them that EC2 has ended needs no claim any more.
    """
    offsets = {new: node.offset_by for new, node in record.launched.items() if node.offset_by is not None}
    known = ports.instances.describe(offsets.values()) if offsets else {}
    unreadable = read_apart(offsets.values(), ports.claims).unreadable
    for new, by in sorted(offsets.items(), key=lambda one: one[1] in unreadable):
        if by in unreadable and (by not in known or known[by].ended):
            continue
        node = record.launched[new]
        launch = Launch(group=node.group, zone=node.zone, subnet=node.subnet)
        reason = f"run {record.number} launched {new} ahead, and no old node is terminated for it"
        request_offset(new, by, launch, record.cluster, known.get(by), reason, ports)


def reconcile_disruption(cluster: str, ports: Ports) -> tuple[frozenset[str], str | None]:
    """Return (instances of the open run, the execution that was started for it): one read of the table."""
    record = ports.disruptions.read(cluster)
    if record is None:
        return frozenset(), None
    if record.open:
        return frozenset(record.nodes.values()), restart(record, ports.disruption_executions, ports.clock)
    if record.suspended:
        restored = restore_groups(record, ports, _upgraded(record, ports.upgrades))
        if restored != record:
            ports.disruptions.write(restored)
    return frozenset(), None


def _upgraded(record: DisruptionRecord, upgrades: Upgrades) -> frozenset[str]:
    """Return the groups of the record with an open upgrade, which has changed the same sizes: they are restored when it
    has ended.
    """
    latest = {name: upgrades.read(name) for name in record.suspended}
    return frozenset(name for name, upgrade in latest.items() if upgrade is not None and upgrade.ended is None)


STEPS = {"end": end, "give-up": give_up, "note-failure": note_failure}
