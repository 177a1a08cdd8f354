"""Steps of disruption. Each reads the record, does one idempotent thing, and returns the run document; every
effect is recorded before it is carried out.

The end of a run, successful or given up, is in `completion.py`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from leeward.budgets.healthy_pods import HealthSample, samples_of
from leeward.disruption import completion
from leeward.disruption.completion import roll_back
from leeward.disruption.controller import claim_disruption
from leeward.disruption.observation import observe
from leeward.disruption.plan import revalidated
from leeward.disruption.record import DisruptionRecord, command_of
from leeward.disruption.replacements import (
    JOINS_WITHIN,
    LAUNCHES_WITHIN,
    adopt,
    announce,
    launch_all,
    protect_launched,
    readiness,
)
from leeward.disruption.run import DisruptionNext, DisruptionRun, is_leased, read, written
from leeward.disruption.terminations import (
    is_requested,
    request_terminations,
    taint_nodes,
    with_results,
    without_unreadable,
)
from leeward.errors import InvalidInputError
from leeward.model.counts import count_of
from leeward.model.group import AZ_REBALANCE
from leeward.model.visible import quoted
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Catalog
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.termination.maximum_size import allow
from leeward.termination.requests import read_apart
from leeward.workflow.lease import guarded
from leeward.workflow.steps import Step

FIRST_LOOK, BOOT_PAUSE = 30, 15  # seconds until the first check for a new node, and between two checks at first
LONGEST_PAUSE = 60  # between two checks: the longer it has taken, the longer
DRAIN_PAUSE = 30  # seconds between two checks of terminations
FRESH = timedelta(minutes=1)  # validity of a validation: budgets, pods and nodes change in minutes
FRESH_IN_SHIFT = timedelta(seconds=10)  # the same while a zonal shift is in effect, which may just have begun
STABILIZATION = 15  # seconds between the decision and the first action (Karpenter, validation of a command)
LONGEST_WHY = 500
BINDINGS_SETTLE = 5  # seconds after the taint: pods that the scheduler was binding are there (Cluster Autoscaler)


def take_disruption(run: DisruptionRun, call: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Take the run, or report which execution has it. Without a number: plan and claim a run now."""
    name = str(call.get("execution") or "")
    run = replace(run, execution=name)
    if run.cluster not in ports.clusters.names():
        known = ", ".join(ports.clusters.names())
        raise InvalidInputError(f"cluster: found {quoted(run.cluster)}, expected one of {known}")
    record = ports.disruptions.read(run.cluster)
    if run.number == 0 and (record is None or not record.open):
        record = claim_disruption(run.cluster, ports, f"execution {name}")
    if record is None or not record.open or run.number not in {0, record.number}:
        return replace(run, next=DisruptionNext.NOTHING, why="nothing is to be done, or the run has ended")
    run = replace(run, number=record.number).naming(record.nodes, record.groups)
    if record.execution != name:
        if record.execution and is_leased(record, ports.disruption_executions):
            return replace(run, next=DisruptionNext.HAND_OVER, why=f"execution {record.execution} has the run")
        record = written(replace(record, execution=name, attempt=record.attempt + 1, retry=None), ports.disruptions)
    if record.requested:
        return replace(run, next=DisruptionNext.FOLLOW, why="terminations requested: following them")
    if record.attempt > 1:
        return replace(
            run, next=DisruptionNext.GIVE_UP, why=record.why or "its execution ended before it requested a termination"
        )
    return replace(run, next=DisruptionNext.VALIDATE, pause=STABILIZATION, why=record.summary)


def validate(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Validate the commands seconds after they were planned. Nothing has been touched yet."""
    record = read(run, ports.disruptions)
    snapshot = observe(run.cluster, ports, record)
    record = written(revalidated(record, snapshot, ports.deployment, ports.budget), ports.disruptions)
    run = replace(run, validated=ports.clock.now(), healthy=_healthy(record, snapshot))
    return _next(run, record, DisruptionNext.TAINT)


def taint(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Taint and cordon the nodes; where nodes are launched, suspend AZRebalance and raise MaxSize for them. Every
    command is validated again afterwards: a pod may have been bound between the last validation and the taint.
    """
    record = read(run, ports.disruptions)
    launching = record.to_launch()
    if launching:
        record = _prepare_groups(record, launching, ports)
    count = taint_nodes(record, ports.clusters, ports.deployment)
    run = replace(run, why=f"tainted {count_of(count, 'node')}; {record.summary}")
    return (
        replace(run, next=DisruptionNext.LAUNCH)
        if launching
        else replace(run, next=DisruptionNext.READY, pause=BINDINGS_SETTLE)
    )


def launch(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Launch the replacements first. A command whose replacement has no place is dropped, the others continue."""
    before = read(run, ports.disruptions)
    record = roll_back(launch_all(before, ports), ports)
    after = replace(_next(run, record, DisruptionNext.BOOT), pause=FIRST_LOOK)
    refused = announce(record, before, ports.clock, ports.clusters)
    return replace(after, why=f"{after.why}; {refused}") if refused else after


def ready(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Check whether the replacements have joined and match the plan. A replacement that does not match causes its
    command to be dropped. Until the run ends they are protected from Cluster Autoscaler.
    """
    before = read(run, ports.disruptions)
    record = adopt(before, ports)
    launched = (new for number in record.active_commands for new in record.new_of(number))
    wanted = {new: record.planned(record.launched[new].key) for new in launched}
    nodes = ports.clusters.kubernetes(run.cluster).nodes()
    instances, now = ports.instances.describe(wanted), ports.clock.now()
    state = readiness(wanted, instances, nodes, since=record.began, now=now)
    dropped = {record.launched[new].command: why for new, why in state.wrong.items()}
    unfit = {record.launched[new].command: why for new, why in state.unfit(wanted, instances).items()}
    missing = [*state.missing.values(), *_grows(record, dropped, ports.clock)]
    if dropped:
        record = written(record.remember_failed(unfit, now).drop(dropped), ports.disruptions)
    if record.dropped != before.dropped:
        record = roll_back(record, ports)
    protect_launched(record, nodes, ports.clusters)
    if missing and record.active_commands:
        pause = _pause(record, BOOT_PAUSE, ports.clock)
        return replace(run, next=DisruptionNext.BOOT, pause=pause, why="; ".join(missing))
    return _next(run, record, DisruptionNext.READY)


def validate_again(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Validate again once the nodes are tainted and the new nodes Ready: the pods fit on them and on free capacity, the
    method's reason still holds, and budgets still allow it. From here on nothing is undone.
    """
    record = read(run, ports.disruptions)
    snapshot = observe(run.cluster, ports, record)
    record = written(revalidated(record, snapshot, ports.deployment, ports.budget), ports.disruptions)
    run = replace(run, validated=ports.clock.now(), healthy=_healthy(record, snapshot))
    return _next(run, roll_back(record, ports), DisruptionNext.TERMINATE)


def terminate(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Request the termination of each node, which drains it and removes it from its group with decrement. Where an
    earlier step was retried, the last validation may be minutes old: no termination is requested on it.
    """
    record = read(run, ports.disruptions)
    age = ports.clock.now() - run.validated if run.validated else None
    if not record.requested and (age is None or age > _fresh(record, ports.catalog)):
        seconds = f"{age.total_seconds():.0f} s old" if age is not None else "missing"
        return replace(
            run, next=DisruptionNext.READY, pause=1, why=f"the last validation is {seconds}: validating again"
        )
    if not record.requested:
        record = written(replace(record, requested=True), ports.disruptions)
    request_terminations(record, ports)
    return replace(
        run,
        next=DisruptionNext.FOLLOW,
        pause=DRAIN_PAUSE,
        why=f"terminations requested: {', '.join(record.to_terminate)}",
    )


def _fresh(record: DisruptionRecord, catalog: Catalog) -> timedelta:
    return FRESH_IN_SHIFT if catalog.zonal_shifts(record.cluster).shifts else FRESH


def follow(run: DisruptionRun, _: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Follow every termination to its end. One that was never claimed, because the step that requests it died, is
    claimed now. One whose record cannot be read is neither claimed nor concluded, and is named.
    """
    record = read(run, ports.disruptions)
    records = read_apart(record.to_terminate.values(), ports.claims)
    known = [one for one in record.under_way if one not in records.unreadable]
    unclaimed = [one for one in known if not is_requested(record, one, records.read.get(one))]
    if unclaimed:
        record = _without_vanished(record, unclaimed, ports)
        request_terminations(record, ports, only=[one for one in known if one not in record.ends])
    after = without_unreadable(with_results(record, records.read), records.unreadable, ports.instances)
    if after != record:
        record = written(after, ports.disruptions)
    left = record.under_way
    record = adopt(record, ports) if not left else record
    if not left and record.outstanding() and ports.clock.now() - record.began < LAUNCHES_WITHIN:
        return replace(
            run,
            next=DisruptionNext.FOLLOW,
            pause=DRAIN_PAUSE,
            why="waiting for the instances that the raised desired size brings",
        )
    if not left:
        return replace(
            run,
            next=DisruptionNext.END,
            why=f"{count_of(len(record.ends), 'termination has', 'terminations have')} ended",
        )
    pause = _pause(record, DRAIN_PAUSE, ports.clock)
    why = f"{len(left)} of {count_of(len(record.to_terminate), 'termination is', 'terminations are')} under way"
    unread = [f"the record of {one} cannot be read: {records.unreadable[one]}" for one in left if one not in known]
    return replace(run, next=DisruptionNext.FOLLOW, pause=pause, why="; ".join((why, *unread))[:LONGEST_WHY])


def _healthy(record: DisruptionRecord, snapshot: ClusterSnapshot) -> tuple[HealthSample, ...]:
    pods = [pod for name in record.nodes for pod in snapshot.pods_on(name)]
    return samples_of(snapshot.budgets, pods, snapshot.now)


def _pause(record: DisruptionRecord, least: int, clock: Clock) -> int:
    """Return a pause that grows with the run's age: terminations that take hours need no check every few seconds."""
    waited = (clock.now() - record.began).total_seconds()
    return int(min(max(waited / 6, least), LONGEST_PAUSE))


def _next(run: DisruptionRun, record: DisruptionRecord, step: DisruptionNext) -> DisruptionRun:
    """Continue with the active commands; without any the run is given up."""
    dropped = "; ".join(f"command {number} dropped: {why}" for number, why in record.dropped.items())
    if record.active_commands:
        return replace(run, next=step, why=f"{record.summary}; {dropped}" if dropped else record.summary)
    return replace(run, next=DisruptionNext.GIVE_UP, why=dropped)


def _prepare_groups(record: DisruptionRecord, launching: tuple[str, ...], ports: Ports) -> DisruptionRecord:
    """Suspend AZRebalance, which is recorded first, and raise MaxSize. Groups whose owners have suspended balancing
    already are left unchanged, and so is the MaxSize of a managed node group, which belongs to EKS.
    """
    wanted = [record.planned(key).group for key in launching]
    numbers = {command_of(key) for key in launching}
    groups = ports.groups.describe(record.groups)
    own = {record.members[name] for number in numbers for name in record.commands[number].nodes}
    touched = sorted({*wanted, *own} & groups.keys())
    suspended = [name for name in touched if AZ_REBALANCE not in groups[name].suspended]
    most = {n: groups[n].desired + wanted.count(n) for n in touched if groups[n].nodegroup is None}
    after = replace(record, suspended=tuple(sorted({*record.suspended, *suspended})))
    if after != record:
        record = written(after, ports.disruptions)
    for name in record.suspended:
        ports.group_changes.suspend(name, AZ_REBALANCE)
    for name, size in most.items():
        if size > groups[name].maximum:
            allow(name, ports, size=size)
    return record


def _grows(record: DisruptionRecord, dropped: dict[int, str], clock: Clock) -> list[str]:
    """Return the launches that desired sizes have still to bring for active commands. Adds to `dropped` the commands
    whose launch is too late.
    """
    late = clock.now() - record.began > JOINS_WITHIN
    waiting = {key: group for key, group in record.outstanding().items() if command_of(key) in record.active_commands}
    if late:
        late_for = {command_of(key): group for key, group in waiting.items()}
        dropped.update(
            {number: f"the raised desired size of {group} has brought no node" for number, group in late_for.items()}
        )
        return []
    return [f"{group} launches by its desired size {record.sizes[group]}" for group in dict.fromkeys(waiting.values())]


def _without_vanished(record: DisruptionRecord, unclaimed: Iterable[str], ports: Ports) -> DisruptionRecord:
    """Record instances as stayed that EC2 no longer knows, because their group has replaced them, and those in a zone
    that has been shifted since: nothing is removed there.
    """
    known, shifts = ports.instances.describe(unclaimed), ports.catalog.zonal_shifts(record.cluster)
    gone = {
        name: completion.STAYED
        for name in unclaimed
        if name not in known or known[name].ended or shifts.reason(known[name].zone)
    }
    return written(replace(record, ends={**record.ends, **gone}), ports.disruptions) if gone else record


STEPS: Mapping[str, Step[DisruptionRun]] = {
    "take": take_disruption,
    **guarded(
        {
            "validate": validate,
            "taint": taint,
            "launch": launch,
            "ready": ready,
            "validate-again": validate_again,
            "terminate": terminate,
            "follow": follow,
            **completion.STEPS,
        }
    ),
}
"""Steps of disruption by the name in its definition."""
