"""Nodes that did not come, and pods and nodes that did not leave, in time: each with its cause and the fix.

Decides NodeCreationFailures, and PodEvictionFailures from the cluster's state when the upgrade ends, with the objects
that block a node that this upgrade, another controller or a person terminates (docs/features.md, U14). Sources: EKS,
"Managed node update behavior" (known reasons), and the error codes of EC2 and Auto Scaling."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from leeward.blockers.blocker import Blocker, BlockerKind
from leeward.blockers.find import blockers
from leeward.blockers.inputs import NodeInputs
from leeward.model.counts import count_of
from leeward.model.instance import ALIVE
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.durations import format_duration
from leeward.ports.records import Claims
from leeward.termination.capacity_ledger import waits_for_turn
from leeward.termination.requests import read_apart
from leeward.upgrade.gate import JOINS_WITHIN, Gate, Lack
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Observation
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.record import EndedLaunch, UpgradeRecord
from leeward.upgrade.surge.launches import ended_in, is_worn_out
from leeward.upgrade.waits import MOST_NAMED
from leeward.upgrade.waves.model import tolerates_drain_taints

SEARCH = timedelta(minutes=15)  # for capacity in a zone that has lacked it
NO_CAPACITY = "InsufficientInstanceCapacity"
_HOLDS_DRAINS = frozenset(
    {
        BlockerKind.PDB_NONE_NOW,
        BlockerKind.PDB_NEVER,
        BlockerKind.PDB_SYNC_FAILED,
        BlockerKind.PDB_SEVERAL,
        BlockerKind.PDB_FAILING_POD,
        BlockerKind.UNMANAGED_POD,
        BlockerKind.LOCAL_DATA,
        BlockerKind.STUCK_POD,
        BlockerKind.POD_FINALIZER,
        BlockerKind.VOLUME_ATTACHED,
        BlockerKind.LIFECYCLE_HOOK,
    }
)
MAX_FAILURES = 5  # reported; the others usually have the same cause


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


class EvictionCause(StrEnum):
    """Cause of a PodEvictionFailure."""

    BUDGET_ALLOWS_NONE = "BudgetAllowsNone"
    SEVERAL_BUDGETS = "SeveralBudgets"
    TOLERATES_EVERYTHING = "ToleratesEverything"
    POLICY_REFUSES = "PolicyRefuses"
    STILL_STOPPING = "StillStopping"
    WEBHOOK_REFUSES = "WebhookRefuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvictionFailure:
    """Pod that did not leave."""

    cause: EvictionCause
    node: str
    pod: str  # `namespace/name`
    objects: tuple[str, ...]  # PodDisruptionBudgets that select it, `namespace/name`
    message: str
    fix: str


_EVICTION_FIXES = {
    EvictionCause.BUDGET_ALLOWS_NONE: "give the workload one replica more, let the budget allow one, or use --force",
    EvictionCause.SEVERAL_BUDGETS: "leave the pod to one budget: the Eviction API serves no pod that several select",
    EvictionCause.TOLERATES_EVERYTHING: "narrow the workload's toleration (operator Exists without a key)",
    EvictionCause.POLICY_REFUSES: "let the policy evict it (drain.unmanagedPods, drain.localData), or move it manually",
    EvictionCause.STILL_STOPPING: "look at the pod's finalizers and its kubelet, or run it with --force",
    EvictionCause.WEBHOOK_REFUSES: "ask the owner of the admission webhook or policy",
}


def eviction_failure(
    cause: EvictionCause, *, node: str, pod: str, waited: timedelta, objects: Sequence[str] = (), details: str = ""
) -> PodEvictionFailure:
    """Return the failure of a pod that did not leave in time.

    `waited`: how long the drain waited for the pod. `details`: message of the API server or the policy.
    """
    names = ", ".join(objects)
    reason = {
        EvictionCause.BUDGET_ALLOWS_NONE: f"PodDisruptionBudget {names} allows no disruption",
        EvictionCause.SEVERAL_BUDGETS: f"several PodDisruptionBudgets select it: {names}",
        EvictionCause.TOLERATES_EVERYTHING: "its workload tolerates every taint and comes back to the node",
        EvictionCause.POLICY_REFUSES: "the policy refuses to evict it",
        EvictionCause.STILL_STOPPING: "it has been asked to stop and has not",
        EvictionCause.WEBHOOK_REFUSES: "the API server refuses its eviction",
    }[cause]
    message = f"{node}: {pod} has not left in {format_duration(waited)}: {reason}{f': {details}' if details else ''}"
    return PodEvictionFailure(
        cause=cause, node=node, pod=pod, objects=tuple(objects), message=message, fix=_EVICTION_FIXES[cause]
    )


def eviction_failures(preflight: Preflight, failed: Collection[str]) -> tuple[PodEvictionFailure, ...]:
    """Return at most `MAX_FAILURES` failures of old nodes; empty if every pod can leave by now.

    `failed`: ids of old instances whose pods did not leave.
    """
    nodes = [node for node in preflight.snapshot.nodes if node.instance_id in failed]
    failures = [
        eviction_failure(
            cause,
            node=node.name,
            pod=pod.key,
            waited=preflight.policy.drain.timeout,
            objects=[f"{budget.namespace}/{budget.name}" for budget in preflight.budgets_of(pod)],
        )
        for node in sorted(nodes, key=lambda node: node.name)
        for pod, cause in _causes(preflight, node.name)
    ]
    return tuple(failures[:MAX_FAILURES])


def _causes(preflight: Preflight, node: str) -> Iterator[tuple[Pod, EvictionCause]]:
    for pod in preflight.snapshot.pods_on(node):
        cause = _cause(preflight, pod)
        if cause is not None and not (pod.mirror or pod.of_daemon_set or pod.finished):
            yield pod, cause


def _cause(preflight: Preflight, pod: Pod) -> EvictionCause | None:
    """Return the cause; None: the pod can leave now."""
    budgets = preflight.budgets_of(pod)
    if pod.deletion is not None:
        return EvictionCause.STILL_STOPPING
    if len(budgets) > 1:
        return EvictionCause.SEVERAL_BUDGETS
    if any(budget.disruptions_allowed <= 0 for budget in budgets):
        return EvictionCause.BUDGET_ALLOWS_NONE
    if pod.owner is not None and tolerates_drain_taints(pod):
        return EvictionCause.TOLERATES_EVERYTHING
    drain = preflight.policy.drain
    refused = (pod.owner is None and not drain.evict_unmanaged) or (pod.empty_dir and not drain.delete_local_data)
    return EvictionCause.POLICY_REFUSES if refused else None


def describe_blocked(instances: Iterable[str], record: UpgradeRecord, observation: Observation, claims: Claims) -> str:
    """Return one sentence per node that does not leave: its termination, the objects that block it, and the fix.

    `instances`: ids of the nodes' instances; at most `MOST_NAMED` are described, the others are counted.
    """
    named = sorted(instances)
    terminations = read_apart(named[:MOST_NAMED], claims)
    nodes = {node.instance_id: node for node in observation.preflight.snapshot.nodes if node.instance_id in named}
    blocked = [
        f"{instance} does not leave: its record cannot be read: {terminations.unreadable[instance]}"
        if instance in terminations.unreadable
        else _blocked(instance, nodes.get(instance), terminations.read.get(instance), record, observation)
        for instance in named[:MOST_NAMED]
    ]
    more = len(named) - len(blocked)
    return "; ".join([*blocked, *([f"and {count_of(more, 'more node')}"] if more else [])])


def _blocked(
    instance: str,
    node: Node | None,
    termination: TerminationRecord | None,
    record: UpgradeRecord,
    observation: Observation,
) -> str:
    name = node.name if node is not None else instance
    causes = [*_objects(node, observation), *(termination.blocked_by if termination is not None else ())]
    if instance in record.under_way and termination is None and observation.preflight.snapshot.terminating:
        others = ", ".join(sorted(observation.preflight.snapshot.terminating)[:MOST_NAMED])
        causes.append(f"maxUnavailable or the budgets for Upgrade are used by {others}: wait for these or raise them")
    if termination is not None and waits_for_turn(termination):
        causes.append("it drains within maxUnavailable and the budgets for Upgrade, after other nodes of the policy")
    blocked_by = "; ".join(dict.fromkeys(causes)) or _unknown_cause(name, termination)
    return f"{name} does not leave ({_terminated_by(instance, termination, record)}): {blocked_by}"


def _terminated_by(instance: str, termination: TerminationRecord | None, record: UpgradeRecord) -> str:
    """Return a phrase that says for what the instance is terminated."""
    if instance in record.under_way:
        return "terminated by this upgrade"
    if termination is None or (termination.status is Status.CLOSED and not termination.failure):
        return "tainted by another controller or a person"
    return f"terminated for {', '.join(dict.fromkeys(cause.kind.value for cause in termination.causes))}"


def _objects(node: Node | None, observation: Observation) -> list[str]:
    """Return the objects in the cluster that block the node, each with its fix."""
    if node is None:
        return []
    objects = [
        f"{blocker.pod or 'the node'}: {blocker.object}: {blocker.fix}"
        for blocker in blocking_drains(observation.preflight)
        if blocker.node == node.name
    ]
    if node.deleting and node.finalizers:
        fix = f"let its controller release it: kubectl get node {node.name} -o jsonpath='{{.metadata.finalizers}}'"
        objects.append(f"the Node is being deleted and has the finalizers {', '.join(node.finalizers)}: {fix}")
    return objects


def _unknown_cause(name: str, termination: TerminationRecord | None) -> str:
    if termination is not None and termination.failure:
        return f"{termination.failure}: leeward blockers {name}"
    return f"nothing in the cluster is known to block it: leeward blockers {name}, kubectl describe node {name}"


def sentences(failures: Iterable[NodeCreationFailure | PodEvictionFailure]) -> str:
    """Return the failures with their fixes, in one text."""
    return "; ".join(f"{failure.message}: {failure.fix}" for failure in failures)


def blocking_drains(preflight: Preflight) -> tuple[Blocker, ...]:
    """Return what holds the old nodes that are draining now."""
    return tuple(one for member in leaving(preflight) for one in _blocking(preflight, member))


def leaving(preflight: Preflight) -> tuple[Member, ...]:
    """Return old nodes whose termination is requested. Of a managed node group all that EKS has cordoned: it does not
    report which of them it drains now.
    """
    eks = preflight.group.nodegroup is not None
    nodes = ((one, one.node) for one in preflight.old if one.node is not None)
    return tuple(one for one, node in nodes if node.tainted or (eks and node.unschedulable))


def _blocking(preflight: Preflight, member: Member) -> list[Blocker]:
    """Return what holds the drain of one node; opt-outs of voluntary disruption hold no upgrade."""
    snapshot, node = preflight.snapshot, member.node
    if node is None:
        return []
    node_inputs = NodeInputs(
        node=node,
        pods=tuple(snapshot.pods_on(node.name)),
        budgets=snapshot.budgets,
        daemon_sets=snapshot.daemon_sets,
        group=preflight.group.name,
        policy=preflight.policy,
    )
    return [one for one in blockers(node_inputs, snapshot.now) if one.kind in _HOLDS_DRAINS]
