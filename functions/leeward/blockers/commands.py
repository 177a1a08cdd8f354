"""Commands with which people remove a blocker, as they are typed."""

from leeward.model.pod import Pod, PodDisruptionBudget


def describe(pod: Pod) -> str:
    """Return the command that shows the pod and its Events."""
    return f"kubectl describe pod -n {pod.namespace} {pod.name}"


def delete(pod: Pod) -> str:
    """Return the command that deletes one pod, whatever its budgets say."""
    return f"kubectl delete pod -n {pod.namespace} {pod.name}"


def loosen(budget: PodDisruptionBudget) -> str:
    """Return the command that lets one pod of the budget be evicted at a time."""
    bound = '{"spec":{"maxUnavailable":1}}'
    if budget.max_unavailable is None:
        bound = '{"spec":{"minAvailable":null,"maxUnavailable":1}}'
    return _patch(budget, bound)


def let_failing_go(budget: PodDisruptionBudget) -> str:
    """Return the command that lets unready pods be evicted in any case (policy/v1, Kubernetes 1.27 and later)."""
    return _patch(budget, '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}')


def unannotate(what: str, key: str, namespace: str = "") -> str:
    """Return the command that removes an annotation; `what` as kubectl takes it: `pod web-1`, `node node-a`."""
    kind, _, name = what.partition(" ")
    return f"kubectl annotate {kind}{f' -n {namespace}' if namespace else ''} {name} {key}-"


def _patch(budget: PodDisruptionBudget, patch: str) -> str:
    return f"kubectl patch pdb -n {budget.namespace} {budget.name} --type merge -p '{patch}'"
