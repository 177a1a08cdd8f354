"""Eviction subresource, which decides whether disruption budgets allow the deletion of a pod.

Rules and messages: `pkg/registry/core/pod/storage/eviction.go`. It decides on one eviction at a time; `budgets`
computes the budgets' numbers.
"""

from __future__ import annotations

from local.cluster.validating.attributes import Operation

from .budgets import Budgets
from .deletion import DeleteOptions, check_preconditions
from .errors import ApiError
from .history import Cause, FactKind
from .objects import Obj, copied, is_deleting, is_ready, name_of, node_of, path_name, phase_of, set_condition
from .world import World

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
# evictions of these pods disrupt no workload, so no budget is checked
_FREE_PHASES = frozenset({"Succeeded", "Failed", "Pending"})


def admit_eviction(world: World, name: str, namespace: str, *, dry_run: bool) -> None:
    """Admit the Eviction as a new object, before the pod is looked up; the resulting deletion is not admitted
    separately. Raises the ApiError of a refusal.
    """
    metadata = {"name": name, "namespace": namespace}
    obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    world.admit(Operation.CREATE, "pods", obj=obj, subresource="eviction", dry_run=dry_run)


def evict(world: World, budgets: Budgets, pod: Obj, options: DeleteOptions, *, dry_run: bool = False) -> None:
    """Delete the pod gracefully if its budget allows it. Idempotent: a pod that is already deleting is accepted again.

    Raises ApiError 429 (cause `DisruptionBudget`) when the budget allows no disruption, 500 when several budgets
    select the pod, 409 when a UID or resourceVersion precondition does not hold.
    """
    budgets.run()
    guard = None if _needs_no_budget(pod) else _guard(world, budgets, pod)
    check_preconditions("pods", pod, options)
    if dry_run:
        return
    with world.because(Cause.EVICTION):
        _delete(world, pod, options)
    if not is_deleting(pod):
        name = name_of(guard) if guard else None
        world.history.add(FactKind.EVICTION_ACCEPTED, path_name(pod), node=node_of(pod), pdb=name)
    budgets.run()


def _needs_no_budget(pod: Obj) -> bool:
    return phase_of(pod) in _FREE_PHASES or is_deleting(pod)


def _guard(world: World, budgets: Budgets, pod: Obj) -> Obj | None:
    matching = budgets.matching(pod)
    if len(matching) > 1:
        names = ", ".join(name_of(budget) for budget in matching)
        world.history.add(FactKind.EVICTION_REFUSED, path_name(pod), node=node_of(pod), pdb=names, code=500)
        raise ApiError(500, "", _SEVERAL)  # the real server sends this Status without a reason
    if not matching:
        return None
    budget = matching[0]
    if not _allows(budget, pod):
        world.history.add(FactKind.EVICTION_REFUSED, path_name(pod), node=node_of(pod), pdb=name_of(budget), code=429)
        raise _too_many(budget)
    return budget


def _allows(budget: Obj, pod: Obj) -> bool:
    status = budget["status"]
    if not is_ready(pod):
        if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return True
        if status["currentHealthy"] >= status["desiredHealthy"] > 0:
            return True
    return bool(status["disruptionsAllowed"] > 0)


def _too_many(budget: Obj) -> ApiError:
    status, name = budget["status"], name_of(budget)
    denied = f"The disruption budget {name} does not allow evicting pods currently"
    condition: Obj = next(iter(status.get("conditions") or []), {})
    if condition.get("reason") == "SyncFailed":
        message = f"{denied} because it failed sync: {condition.get('message', '')}"
    elif status["currentHealthy"] <= status["desiredHealthy"]:
        healthy = f"{status['desiredHealthy']} healthy pods and has {status['currentHealthy']} currently"
        message = f"The disruption budget {name} needs {healthy}"
    else:  # pods without a controller, which maxUnavailable does not count
        message = denied
    causes = [{"reason": "DisruptionBudget", "message": message}]
    return ApiError(429, "TooManyRequests", _VIOLATES, details={"causes": causes})


def _delete(world: World, pod: Obj, options: DeleteOptions) -> None:
    """Write the condition, then delete, so that a watcher of the pod sees the reason first."""
    if not is_deleting(pod):
        marked = _marked(world, pod)
        pod = world.replace("pods", pod, marked)
    world.delete("pods", pod, DeleteOptions(grace=options.grace, propagation=options.propagation))


def _marked(world: World, pod: Obj) -> Obj:
    status: Obj = copied(pod.get("status") or {})
    set_condition(
        status,
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": world.timestamp(),
        },
    )
    return {**pod, "status": status}
