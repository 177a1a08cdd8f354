"""New nodes that did not come in time: each with its cause and the fix.

Decides the NodeCreationFailure. Sources: EKS, "Managed node update behavior" (known reasons), and the error codes of
EC2 and Auto Scaling."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from leeward.model.counts import count_of
from leeward.model.instance import ALIVE
from leeward.policy.durations import format_duration
from leeward.upgrade.gate import JOINS_WITHIN, Gate, Lack
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Observation
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.record import EndedLaunch, UpgradeRecord
from leeward.upgrade.surge.ended_launches import ended_in, is_worn_out

SEARCH = timedelta(minutes=15)  # for capacity in a zone that has lacked it
NO_CAPACITY = "InsufficientInstanceCapacity"


class CreationCause(StrEnum):
    """Cause of a NodeCreationFailure."""

    NO_CAPACITY = "NoCapacity"
    INSTANCE_QUOTA = "InstanceQuota"
    NO_ADDRESSES = "NoAddresses"
    LAUNCH_REFUSED = "LaunchRefused"
    NOT_REQUESTED = "NotRequested"
    INSTANCE_ENDED = "InstanceEnded"
    NOT_JOINED = "NotJoined"
    LABELS_MISSING = "LabelsMissing"
    NOT_READY = "NotReady"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCreationFailure:
    """A new node that did not come. `object`: a zone, an instance or a node."""

    cause: CreationCause
    object: str
    message: str
    fix: str


_LAUNCH_CODES = {
    "InsufficientInstanceCapacity": CreationCause.NO_CAPACITY,
    "InsufficientHostCapacity": CreationCause.NO_CAPACITY,
    "InsufficientReservedInstanceCapacity": CreationCause.NO_CAPACITY,
    "InsufficientCapacity": CreationCause.NO_CAPACITY,
    "UnfulfillableCapacity": CreationCause.NO_CAPACITY,
    "Unsupported": CreationCause.NO_CAPACITY,
    "SpotMaxPriceTooLow": CreationCause.NO_CAPACITY,
    "VcpuLimitExceeded": CreationCause.INSTANCE_QUOTA,
    "InstanceLimitExceeded": CreationCause.INSTANCE_QUOTA,
    "MaxSpotInstanceCountExceeded": CreationCause.INSTANCE_QUOTA,
    "InsufficientFreeAddressesInSubnet": CreationCause.NO_ADDRESSES,
}
_LAUNCH_FIXES = {
    CreationCause.NO_CAPACITY: "give the group more instance types, or update.strategy MINIMAL where none can be had",
    CreationCause.INSTANCE_QUOTA: "ask Service Quotas for more vCPUs of this family, or lower update.maxUnavailable",
    CreationCause.NO_ADDRESSES: "free addresses in the zone's subnets or add a subnet there (leeward inspect zones)",
    CreationCause.LAUNCH_REFUSED: "fix what the message names, then start the upgrade again",
}


def code_in(text: str) -> str:
    """Return the code of EC2 or Auto Scaling that a refusal begins with or quotes, empty where it has no known one."""
    return next((code for code in _LAUNCH_CODES if code in text), "")


def launch_failure(zone: str, code: str, reason: str) -> NodeCreationFailure:
    """Return the failure of a launch that EC2 or Auto Scaling refused; `code` is theirs, an unknown code is reported
    unchanged.
    """
    cause = _LAUNCH_CODES.get(code, CreationCause.LAUNCH_REFUSED)
    message = f"{zone}: no new node could be launched: {code}: {reason}"
    return NodeCreationFailure(cause=cause, object=zone, message=message, fix=_LAUNCH_FIXES[cause])


def not_requested(record: UpgradeRecord, zone: str) -> NodeCreationFailure:
    """Return the failure of a zone for which no launch was requested, so that nothing has refused it."""
    why = f"{record.launched} were launched, {len(record.ahead)} of them wait for an old node to leave"
    if (record.others_scaled or record.others_seen) is not None:
        why = "others have changed the size of the group, which ends launches ahead"
    message = f"{zone}: no new node was requested: {why}"
    fix = "start the upgrade again: it takes the size that the group has then"
    return NodeCreationFailure(cause=CreationCause.NOT_REQUESTED, object=zone, message=message, fix=fix)


def never_joined(instance: str, zone: str, waited: timedelta, state: str) -> NodeCreationFailure:
    """Return the failure of an instance without a Node. `state` is EC2's term; `waited` since its launch."""
    if state not in ALIVE:
        message = f"{instance} in {zone}: launched and now {state}"
        fix = "look at the group's scaling activities and the instance's state reason"
        return NodeCreationFailure(cause=CreationCause.INSTANCE_ENDED, object=instance, message=message, fix=fix)
    message = f"{instance} in {zone}: {state} for {format_duration(waited)} and no node has joined the cluster"
    fix = (
        "read the instance's console output: user data (bootstrap, nodeadm) may fail, the node role may lack an access "
        "entry, or the API server cannot be reached from the subnet"
    )
    return NodeCreationFailure(cause=CreationCause.NOT_JOINED, object=instance, message=message, fix=fix)


def launches_ended(zone: str, ended: Mapping[str, EndedLaunch]) -> NodeCreationFailure:
    """Return the failure of a zone whose new instances ended before an old node left: each with Auto Scaling's reason,
    the latest first.
    """
    causes = [f"{instance}: {launch.cause.strip()}" for instance, launch in reversed([*ended.items()])]
    message = (
        f"{zone}: {count_of(len(ended), 'new instance')} ended early and no new node is Ready: {'; '.join(causes)}"
    )
    fix = (
        "find out who ended them (scaling activities, StateReason, CloudTrail): a health check, a launch hook, Cluster "
        "Autoscaler, or Spot; then start the upgrade again"
    )
    return NodeCreationFailure(cause=CreationCause.INSTANCE_ENDED, object=zone, message=message, fix=fix)


def labels_missing(node: str, wrong: Sequence[str]) -> NodeCreationFailure:
    """Return the failure of a node that joined without the labels that its group puts on nodes."""
    message = f"{node}: joined without the labels {', '.join(wrong)}"
    fix = "custom user data overwrites --node-labels: pass on what EKS or the template sets"
    return NodeCreationFailure(cause=CreationCause.LABELS_MISSING, object=node, message=message, fix=fix)


def not_ready(node: str, conditions: Sequence[Mapping[str, Any]], waited: timedelta) -> NodeCreationFailure:
    """Return the failure of a node that is not Ready. `conditions`: raw, of the Node's status; the bad ones are named
    with their reason.
    """
    bad = [
        _condition(one)
        for one in conditions
        if one.get("status") != ("True" if one.get("type") == "Ready" else "False")
    ]
    message = f"{node}: not Ready for {format_duration(waited)}: {'; '.join(bad) or 'it reports no condition'}"
    pressure = [one["type"] for one in conditions if one.get("status") == "True" and one.get("type") != "Ready"]
    fix = f"the new template makes {pressure[0]}: compare disk and memory" if pressure else "look at the kubelet's log"
    return NodeCreationFailure(cause=CreationCause.NOT_READY, object=node, message=message, fix=fix)


def _condition(condition: Mapping[str, Any]) -> str:
    details = ": ".join(text for text in (condition.get("reason"), condition.get("message")) if text)
    return f"{condition.get('type')}={condition.get('status')}{f' ({details})' if details else ''}"


def creation_failures(
    record: UpgradeRecord, observation: Observation, gate: Gate, now: datetime, *, exhausted: bool
) -> tuple[NodeCreationFailure, ...]:
    """Return the failures, empty while there is still time, which begins once pre-flight waits for nothing.
    `exhausted`: INCREMENTAL has launched as many as it may.
    """
    members = {one.name: one for one in observation.preflight.members}
    since = max((moment for moment in (record.phase_since, record.measured) if moment), default=now)
    failures: list[NodeCreationFailure] = []
    ready = {one.instance.zone for one in members.values() if one.age is Age.NEW and one.node and one.node.ready}
    for missing in gate.missing:
        member = members.get(missing.object)
        zone = member.instance.zone if member is not None else missing.object
        if zone not in ready and is_worn_out(record, zone):
            failures.append(launches_ended(zone, ended_in(record, zone)))
            continue
        if missing.lack is Lack.NO_NEW_NODE or member is None:
            if now - since >= SEARCH or exhausted:
                failures.append(_nothing_launched(record, missing.object, ready))
            continue
        instance = observation.instances.get(member.instance.id)
        waited = now - (instance.launched if instance is not None else since)
        if waited < JOINS_WITHIN:
            continue
        if missing.lack is Lack.NOT_JOINED:
            state = instance.state if instance is not None else "terminated"
            failures.append(never_joined(member.instance.id, member.instance.zone, waited, state))
        elif missing.lack is Lack.LABELS:
            failure = labels_missing(member.name, missing.labels)
            failures.append(
                replace(failure, fix=f"{failure.fix}, or start again with --override {Code.LABELS_MISSING}")
            )
        else:
            failures.append(not_ready(member.name, member.node.conditions if member.node else (), waited))
    return tuple(dict.fromkeys(failures))


def _nothing_launched(record: UpgradeRecord, zone: str, ready: Collection[str] = ()) -> NodeCreationFailure:
    if ended := ended_in(record, zone):
        return launches_ended(zone, ended)
    short = "; ".join(why for why in record.short.values() if why.startswith(zone))
    reason = short or record.refusal
    if not reason:
        return not_requested(record, zone)
    if record.wanted and record.refusal and ready:
        reason = f"{reason}; its desired size was raised, and the group launched in {', '.join(sorted(ready))}"
    code = code_in(reason) or (NO_CAPACITY if short else "LaunchRefused")
    return launch_failure(zone, code, reason)
