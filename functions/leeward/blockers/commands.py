"""Commands with which people remove a blocker, as they are typed."""

from leeward.model.pod import Pod, PodDisruptionBudget


def describe(pod: Pod) -> str:
    """Return the command that shows the pod and its Events."""
    return f"kubectl describe pod -n {pod.namespace} {pod.name}"


def delete(pod: Pod) -> str:
    """Return the command that deletes one pod, whatever its budgets say."""
    return f"kubectl delete pod -n {pod.namespace} {pod.name}"


def loosen(budget: PodDisruptionBudget) -> str:
    """Return the command after which the disruption controller allows one eviction, with the pods that are healthy
    now: policy/v1 allows as many as are healthy beyond what the budget wants healthy.
    """
    if budget.min_available is not None and not budget.never_allows and budget.current_healthy > 0:
        return _patch(budget, f'{{"spec":{{"minAvailable":{budget.current_healthy - 1}}}}}')
    unavailable = max(budget.expected_pods - budget.current_healthy, 0) + 1
    if isinstance(budget.max_unavailable, int):  # the same, also where the status lacks the number of expected pods
        unavailable = budget.max_unavailable + max(budget.desired_healthy - budget.current_healthy, 0) + 1
    others = '"minAvailable":null,' if budget.max_unavailable is None else ""
    return _patch(budget, f'{{"spec":{{{others}"maxUnavailable":{unavailable}}}}}')


def count_pods(budget: PodDisruptionBudget) -> str:
    """Return the command that gives the budget a bound which needs no scale of the pods' owner (policy/v1)."""
    return _patch(budget, '{"spec":{"maxUnavailable":null,"minAvailable":1}}')


def let_failing_go(budget: PodDisruptionBudget) -> str:
    """Return the command that lets unready pods be evicted in any case (policy/v1, Kubernetes 1.27 and later)."""
    return _patch(budget, '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}')


def unannotate(what: str, key: str, namespace: str = "") -> str:
    """Return the command that removes an annotation; `what` as kubectl takes it: `pod web-1`, `node node-a`."""
    kind, _, name = what.partition(" ")
    return f"kubectl annotate {kind}{f' -n {namespace}' if namespace else ''} {name} {key}-"


def untaint(node: str, key: str) -> str:
    """Return the command that removes every taint of the key from a node."""
    return f"kubectl taint node {node} {key}-"


def _patch(budget: PodDisruptionBudget, patch: str) -> str:
    return f"kubectl patch pdb -n {budget.namespace} {budget.name} --type merge -p '{patch}'"
