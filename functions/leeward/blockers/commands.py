"""The commands by which people take a blocker out of the way, as they are typed."""

from leeward.model.pod import Pod, PodDisruptionBudget


def describe(pod: Pod) -> str:
    """What the pod and its Events say."""
    return f"kubectl describe pod -n {pod.namespace} {pod.name}"


def delete(pod: Pod) -> str:
    """The end of one pod, whatever its budgets say."""
    return f"kubectl delete pod -n {pod.namespace} {pod.name}"


def loosen(budget: PodDisruptionBudget) -> str:
    """Let one pod of the budget go at a time."""
    bound = '{"spec":{"maxUnavailable":1}}'
    if budget.max_unavailable is None:
        bound = '{"spec":{"minAvailable":null,"maxUnavailable":1}}'
    return _patch(budget, bound)


def let_failing_go(budget: PodDisruptionBudget) -> str:
    """Let unready pods go whatever the budget allows (policy/v1, Kubernetes 1.27 and later)."""
    return _patch(budget, '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}')


def unannotate(what: str, key: str, namespace: str = "") -> str:
    """Take an annotation off; `what` as kubectl takes it: `pod web-1`, `node node-a`."""
    kind, _, name = what.partition(" ")
    return f"kubectl annotate {kind}{f' -n {namespace}' if namespace else ''} {name} {key}-"


def _patch(budget: PodDisruptionBudget, patch: str) -> str:
    return f"kubectl patch pdb -n {budget.namespace} {budget.name} --type merge -p '{patch}'"
