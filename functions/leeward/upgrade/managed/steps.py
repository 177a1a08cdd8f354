"""The steps of managed-node-group-upgrade: EKS rolls the group; Leeward decides when that may start, starts the
update, watches it and reports what blocks it.

Nothing here writes the group through Auto Scaling, nor the node group's configuration. EKS can neither pause nor
cancel the update of a node group: control requests take effect before it starts and when it has ended. An update
that fails because of pods is started again only with a changed decision: by force, where the policy says so.

The message of a failed update has EKS' own words and what the cluster shows beside them. Sources: EKS, "Managed node
update behavior" (known reasons), the EKS API's ErrorDetail codes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from leeward.errors import TerminalError
from leeward.model.counts import count_of
from leeward.policy.document import Canary, UpdatePolicy
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.eks import ManagedState, ManagedUpdate
from leeward.ports.records import Upgrades
from leeward.upgrade.capacity_ledger import LONGEST_REASON, MOST_REASONS, with_warning
from leeward.upgrade.completion import STEPS as END_STEPS
from leeward.upgrade.control import Hold, Move, Permission, limits, permission
from leeward.upgrade.failures import blocking_drains, labels_missing, launch_failure, never_joined, not_ready
from leeward.upgrade.gate import Lack, gate_of
from leeward.upgrade.observation import Observation, described, observe
from leeward.upgrade.preflight.gather import run_preflight
from leeward.upgrade.record import ControlRequest, UpgradeRecord, UpgradeRequest, update_token
from leeward.upgrade.run import UpgradeNext, UpgradeRun, read, wait_for_disruption, written
from leeward.upgrade.start import take_lease
from leeward.upgrade.targets import managed_target_before, observed_managed_target, prepared_managed_target
from leeward.upgrade.waits import (
    HELD,
    UpgradeWait,
    hold_of,
    noted_hold,
    seconds_until,
    track_wait,
    watch_of,
    with_alarms,
)
from leeward.workflow.lease import guarded
from leeward.workflow.steps import Step

EVICTION = "PodEvictionFailure"
CREATION = frozenset(
    {
        "NodeCreationFailure",
        "AsgInstanceLaunchFailures",
        "InstanceLimitExceeded",
        "InsufficientFreeAddresses",
        "Ec2LaunchTemplateInvalidConfiguration",
    }
)
LAUNCH_CODES = {
    "InstanceLimitExceeded": "InstanceLimitExceeded",
    "InsufficientFreeAddresses": "InsufficientFreeAddressesInSubnet",
}  # EKS' code -> EC2's
PAUSE = 30  # seconds
MOST_EVENTS = 20  # of one observation
_OTHER_GROUP = "make another node group of version {0}, release {1}, and move the pods there"
STALLED = timedelta(hours=3)  # EKS ends an update by itself where a pod or a new node holds one node for 15 minutes
_WAY_OUT = (
    "EKS cannot cancel it: free what holds the nodes, then start the upgrade again, which watches the same update"
)


def start(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Run pre-flight, then check windows, freeze and pause, then call UpdateNodegroupVersion. A run that was held
    repeats pre-flight before it starts: the cluster's state has changed.
    """
    record = read(run, ports.upgrades)
    if record.update:
        return replace(run, next=UpgradeNext.WAIT, why=f"update {record.update} continues")
    wait_for_disruption(record, ports.disruptions)
    if record.control is ControlRequest.ABORT:
        return replace(run, next=UpgradeNext.RESTORE, why="aborted before the next update of EKS was started")
    if record.control is ControlRequest.ROLLBACK:
        record = written(_rollback_record(record), ports.upgrades)
    if record.prepared:
        nodegroup = ports.managed_updates.nodegroup(record.cluster, record.target.nodegroup or "")
        if nodegroup.status == "UPDATING":  # it was started, and the response was lost
            return _begin(run, record, ports)
    record, hold = _hold(record, ports)
    if not record.checked or (hold is None and run.next in HELD.values() and not record.rolling_back):
        result = run_preflight(record, ports)
        if result.blocked:
            return replace(run, next=UpgradeNext.BLOCKED, why=result.blocked)
        record = written(replace(record, checked=True), ports.upgrades)
    if hold is not None and hold.hold is not None:
        pause = max(seconds_until(hold.until, ports.clock.now()), 1)
        again = replace(run, next=HELD[hold.hold], pause=pause, pauses=run.pauses + 1, why=hold.why)
        return noted_hold(replace(again, hold=hold_of(hold, ports.clock.now())), record, ports.upgrades)
    return _begin(run, record, ports)


def watch(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Read the state of the update, and report which pods and budgets hold the nodes that drain."""
    record = read(run, ports.upgrades)
    if not record.update:
        return replace(run, next=UpgradeNext.MANAGED, why="the next update is to be started")
    update = ports.managed_updates.look(record.cluster, record.target.nodegroup or "", record.update)
    observation = observe(record, ports)
    target = observed_managed_target(
        record.target, observation.group, ports.launches, ports.templates, ended=update.state is ManagedState.SUCCESSFUL
    )
    if target != record.target:
        record = written(replace(record, target=target), ports.upgrades)
        observation = observe(record, ports)
    match update.state:
        case ManagedState.IN_PROGRESS:
            return _in_progress(run, record, observation, ports)
        case ManagedState.SUCCESSFUL:
            return _succeeded(run, record, ports.upgrades)
        case ManagedState.FAILED | ManagedState.CANCELLED:
            return _failed(run, record, update, observation, ports.upgrades, ports.clock)
        case _:
            assert_never(update.state)


STEPS: Mapping[str, Step[UpgradeRun]] = {
    "take-lease": take_lease,
    **guarded({"start-managed": start, "watch-managed": watch, **END_STEPS}),
}
"""Steps of managed-node-group-upgrade by the name in its definition."""


def _hold(record: UpgradeRecord, ports: Ports) -> tuple[UpgradeRecord, Permission | None]:
    """Return the record with what its alarms say, and the hold, None without one. Only the start of an update can be
    held. EKS keeps no canary, which pre-flight has reported; a rollback waits for no window and no alarm.
    """
    if record.rolling_back:
        return record, None
    group = described(record.group, ports.groups)
    policy = ports.clusters.policies(record.cluster).policy_of(group)
    policies = ports.clusters.policies(record.cluster)
    shifts = ports.catalog.zonal_shifts(record.cluster)
    shifted = next((reason for zone in group.zones if (reason := shifts.reason(zone))), "")
    if shifted:
        why = f"{shifted}: EKS would replace nodes in that zone"
        return record, Permission(move=Move.HOLD, hold=Hold.WINDOW, why=why)
    paused = policies.pauses.voluntary(record.group)
    update = replace(policy.update if policy is not None else UpdatePolicy(), canary=Canary())
    now = ports.clock.now()
    guarded_record = with_alarms(record, watch_of(record, update, ports.alarms, ports.clock).reading(), now)
    if guarded_record != record:
        record = written(guarded_record, ports.upgrades)
    decision = permission(record, update, policies.settings, now, finished=0, paused=paused)
    return record, decision if decision.move is Move.HOLD else None


def _begin(run: UpgradeRun, record: UpgradeRecord, ports: Ports) -> UpgradeRun:
    """Start the update. The target is recorded first. The token follows from the record: the next execution finds an
    update whose response was lost.
    """
    request, name = record.request, record.target.nodegroup or ""
    nodegroup = ports.managed_updates.nodegroup(record.cluster, name)
    target = prepared_managed_target(record, nodegroup, ports)
    if not record.prepared:
        previous = record.previous or managed_target_before(nodegroup, target, ports.templates)
        record = replace(record, target=target, previous=previous, prepared=True)
        old = observe(record, ports).preflight.old
        record = written(replace(record, zones=Counter(one.instance.zone for one in old)), ports.upgrades)
    try:
        update = ports.managed_updates.start(
            record.cluster,
            name,
            token=update_token(record),
            version=target.release[0] if target.release is not None else request.kubernetes or None,
            release=target.release[1] if target.release is not None else None,
            template_version=target.source[1] if target.source is not None else None,
            force=request.force,
        )
    except TerminalError as refused:
        why = f"EKS refuses the update of {name}: {refused}"
        if record.rolling_back and target.release is not None:
            why += f": {_OTHER_GROUP.format(*target.release)}"
        return replace(run, next=UpgradeNext.UPDATE_FAILURE, why=why)
    written(replace(record, update=update, hold=None), ports.upgrades)
    return replace(
        run, next=UpgradeNext.WAIT, why=f"EKS update {update} of {name}{' by force' if request.force else ''}"
    )


def _in_progress(run: UpgradeRun, record: UpgradeRecord, observation: Observation, ports: Ports) -> UpgradeRun:
    """Report counts, what holds the drains, and what a control request has to wait for; fail once nothing has moved for
    hours.

    An Event names what was so at the previous observation too: a budget that is at its limit for a moment is not
    reported. EKS cordons all old nodes and does not report which of them it drains: the Event says what it would meet.
    """
    held = blocking_drains(observation.preflight)
    kept = frozenset(list(dict.fromkeys(one.node for one in held))[:MOST_REASONS])
    by_node = {
        one.node: f"{one.pod or one.node}: {one.object}: {one.fix}" for one in reversed(held) if one.node in kept
    }
    reasons = {node: why[:LONGEST_REASON] for node, why in by_node.items()}
    for node in [name for name in reasons if name in record.reasons][:MOST_EVENTS]:
        about = observation.preflight.snapshot.node(node)
        if about is not None:
            ports.clusters.kubernetes(record.cluster).event(
                about,
                reason="DrainBlocked",
                message=f"EKS could not drain it now: {reasons[node]}",
                warning=True,
                now=ports.clock.now(),
            )
    old, new = len(observation.preflight.old), len(observation.preflight.members) - len(observation.preflight.old)
    report = [f"EKS update {record.update}: {count_of(new, 'new node')}, {old} old"]
    report += (
        [f"held by {'; '.join(f'{one.pod or one.node}: {one.object}' for one in held[:MOST_EVENTS])}"] if held else []
    )
    report += [limits(record)] if limits(record) else []
    if reasons != record.reasons:
        record = written(replace(record, reasons=reasons), ports.upgrades)
    objects = [f"{count_of(new, 'new node')}", f"{old} old"]
    wait = UpgradeWait(what=f"EKS update {record.update}", objects=objects, limit=STALLED)
    _, stalled = track_wait(record, wait, ports.clock, ports.upgrades)
    if stalled:
        report.append(f"nothing has moved for {format_duration(STALLED)}, {_WAY_OUT}")
        return replace(run, next=UpgradeNext.UPDATE_FAILURE, why="; ".join(report))
    return replace(run, next=UpgradeNext.WAIT, pause=PAUSE, pauses=run.pauses + 1, why="; ".join(report))


def _succeeded(run: UpgradeRun, record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRun:
    if record.control is ControlRequest.ROLLBACK or not record.prepared:
        return _start_next(run, record, f"update {record.update} has ended", upgrades)
    if record.control is not ControlRequest.RUN:
        late = f"{record.control.value} came too late: EKS had finished update {record.update}"
        record = with_warning(replace(record, control=ControlRequest.RUN), late)
    written(replace(record, reasons={}, finished=sum(record.zones.values())), upgrades)
    return replace(run, next=UpgradeNext.RESTORE, why=f"update {record.update} succeeded")


def _failed(
    run: UpgradeRun,
    record: UpgradeRecord,
    update: ManagedUpdate,
    observation: Observation,
    upgrades: Upgrades,
    clock: Clock,
) -> UpgradeRun:
    """Handle a failed update: the operator's control request comes first, then force where the policy says so, else the
    failure by its name.
    """
    reason = "; ".join(update.errors) or f"update {update.id} is {update.state.value}"
    if record.control is ControlRequest.ABORT:
        warning = (
            f"EKS' update {update.id} failed: {reason}: new nodes stay, old ones that are left stay as EKS left them"
        )
        written(with_warning(replace(record, reasons={}), warning), upgrades)
        return replace(run, next=UpgradeNext.RESTORE, why=reason)
    if record.control is ControlRequest.ROLLBACK or not record.prepared:
        return _start_next(run, record, reason, upgrades)
    if is_eviction(update):
        why = why_pods_stay(update, observation)
        if observation.policy.drain.force and not record.request.force:
            forced = replace(_without_update(record), request=replace(record.request, force=True))
            written(with_warning(forced, f"by force since {update.id} failed: {why}"), upgrades)
            return replace(run, next=UpgradeNext.MANAGED, why=f"{why}; the policy sets drain.force")
        return replace(run, next=UpgradeNext.EVICTION_FAILURE, why=why)
    if is_creation(update):
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=why_no_nodes(update, observation, clock.now()))
    return replace(run, next=UpgradeNext.UPDATE_FAILURE, why=reason)


def _start_next(run: UpgradeRun, record: UpgradeRecord, reason: str, upgrades: Upgrades) -> UpgradeRun:
    """Return to the version before, or go on to another target that a later start has asked for."""
    written(_without_update(record), upgrades)
    return replace(
        run,
        next=UpgradeNext.MANAGED,
        why=f"{reason}: {'roll back' if record.control is ControlRequest.ROLLBACK else 'continue'} from here",
    )


def _without_update(record: UpgradeRecord) -> UpgradeRecord:
    """Return the record ready for another update, under a token that was not used before."""
    return replace(record, update="", tries=record.tries + 1, reasons={}, prepared=False)


def _rollback_record(record: UpgradeRecord) -> UpgradeRecord:
    """Return the record of a rollback: an update to the version of the group's own launch template that it had before,
    else to the Kubernetes version and release.
    """
    back = record.previous
    assert back is not None  # without one the control request is refused
    version = back.source[1] if back.source is not None else ""
    return replace(
        record,
        target=back,
        previous=replace(record.target, template=None),
        control=ControlRequest.RUN,
        rolling_back=not record.rolling_back,
        request=UpgradeRequest(template_version=version, force=record.request.force),
        checked=True,
        prepared=False,
        hold=None,
    )


def is_eviction(update: ManagedUpdate) -> bool:
    """Return whether the update failed because pods did not leave."""
    return EVICTION in _codes(update)


def is_creation(update: ManagedUpdate) -> bool:
    """Return whether the update failed because new nodes did not come."""
    return bool(CREATION & _codes(update))


def why_pods_stay(update: ManagedUpdate, observation: Observation) -> str:
    """Return EKS' errors, which name the nodes, and the pods there with what holds them."""
    held = blocking_drains(observation.preflight)
    named = [one for one in held if any(one.node in error for error in update.errors)] or held
    causes = [f"{one.node}: {one.pod or 'the node'}: {one.object}: {one.fix}" for one in named]
    if not causes:
        causes = ["nothing holds the pods now: start it again"]
    return "; ".join((*update.errors, *causes))


def why_no_nodes(update: ManagedUpdate, observation: Observation, now: datetime) -> str:
    """Return EKS' errors, and each new instance that is not as it should be, or each zone without one."""
    preflight = observation.preflight
    members = {one.name: one for one in preflight.members}
    causes: list[str] = []
    for missing in gate_of(preflight).missing:
        member = members.get(missing.object)
        if member is None:
            code = next((LAUNCH_CODES[one] for one in sorted(_codes(update)) if one in LAUNCH_CODES), "LaunchRefused")
            failure = launch_failure(missing.object, code, "no new node came up there")
        else:
            instance = observation.instances.get(member.instance.id)
            waited = now - (instance.launched if instance is not None else now)
            if missing.lack is Lack.NOT_JOINED:
                state = instance.state if instance is not None else "terminated"
                failure = never_joined(member.instance.id, member.instance.zone, waited, state)
            elif missing.lack is Lack.LABELS:
                failure = labels_missing(member.name, missing.labels)
            else:
                failure = not_ready(member.name, member.node.conditions if member.node else (), waited)
        causes.append(f"{failure.message}: {failure.fix}")
    return "; ".join((*update.errors, *causes))


def _codes(update: ManagedUpdate) -> set[str]:
    return {error.partition(":")[0] for error in update.errors}
