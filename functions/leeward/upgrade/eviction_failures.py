"""Pods and nodes that did not leave in time, each with its cause and the fix (docs/features.md, U14).

Decides the PodEvictionFailures from the cluster's state when the upgrade ends, and which objects block a node that this
upgrade, another controller or a person terminates. Source: EKS, "Managed node update behavior" (known reasons)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from leeward.model.counts import count_of
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.durations import format_duration
from leeward.ports.records import Claims
from leeward.termination.capacity_ledger import waits_for_turn
from leeward.termination.requests import read_apart
from leeward.upgrade.observation import Observation
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.pod_checks import tolerates_drain_taints
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.status import blocking_drains
from leeward.upgrade.waits import MOST_NAMED

MAX_FAILURES = 5  # reported; the others usually have the same cause


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
    """Pod that did not leave. `objects`: PodDisruptionBudgets that select it, `namespace/name`. `pod`:
    `namespace/name`.
    """

    cause: EvictionCause
    node: str
    pod: str
    objects: tuple[str, ...]
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
