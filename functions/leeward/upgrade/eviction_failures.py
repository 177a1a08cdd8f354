"""Pods that did not leave old nodes in time: each with its cause and the fix (docs/features.md, U14).

Decides which cause it is, from the cluster's state when the upgrade ends; the messages are in `failures.py`."""

from collections.abc import Collection, Iterator

from leeward.model.pod import Pod
from leeward.upgrade.checks.workloads import tolerates_every_mark
from leeward.upgrade.creation_failures import EvictionCause, PodEvictionFailure, eviction_failure
from leeward.upgrade.preflight.model import Preflight

MOST = 5  # reported; the rest is of the same kind, most often


def eviction_failures(preflight: Preflight, failed: Collection[str]) -> tuple[PodEvictionFailure, ...]:
    """Return the failures of old nodes. `failed`: ids of old instances whose pods did not leave. Empty where every pod
    could leave by now.
    """
    nodes = [node for node in preflight.world.nodes if node.instance_id in failed]
    found = [
        eviction_failure(
            cause,
            node=node.name,
            pod=pod.key,
            waited=preflight.policy.drain.timeout,
            objects=[f"{one.namespace}/{one.name}" for one in preflight.budgets_of(pod)],
        )
        for node in sorted(nodes, key=lambda one: one.name)
        for pod, cause in _causes(preflight, node.name)
    ]
    return tuple(found[:MOST])


def _causes(preflight: Preflight, node: str) -> Iterator[tuple[Pod, EvictionCause]]:
    for pod in preflight.world.pods_on(node):
        cause = _cause(preflight, pod)
        if cause is not None and not (pod.mirror or pod.of_daemon_set or pod.finished):
            yield pod, cause


def _cause(preflight: Preflight, pod: Pod) -> EvictionCause | None:
    """Return the cause, None for a pod that could leave now."""
    budgets = preflight.budgets_of(pod)
    if pod.deletion is not None:
        return EvictionCause.STILL_STOPPING
    if len(budgets) > 1:
        return EvictionCause.SEVERAL_BUDGETS
    if any(one.disruptions_allowed <= 0 for one in budgets):
        return EvictionCause.BUDGET_ALLOWS_NONE
    if pod.owner is not None and tolerates_every_mark(pod):
        return EvictionCause.TOLERATES_EVERYTHING
    drain = preflight.policy.drain
    refused = (pod.owner is None and not drain.evict_unmanaged) or (pod.empty_dir and not drain.delete_local_data)
    return EvictionCause.POLICY_REFUSES if refused else None
