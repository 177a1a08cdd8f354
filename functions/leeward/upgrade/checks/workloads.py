"""Workloads that do not leave a node, or lose every replica at once."""

from collections.abc import Iterator

from leeward.model import well_known
from leeward.model.pod import Pod
from leeward.upgrade.preflight.findings import Code, Finding, Severity, blocker, warning
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.waves.model import workload_of

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_MARKS = (UNSCHEDULABLE, well_known.DISRUPTED_TAINT)


def check(preflight: Preflight) -> Iterator[Finding]:
    """Yield one finding for each workload."""
    pods = [pod for node in sorted(preflight.pods) for pod in preflight.pods[node]]
    yield from _comes_back(preflight, pods)
    yield from _refused(preflight, pods)
    yield from _on_one_node(preflight)


def tolerates_every_mark(pod: Pod) -> bool:
    """Return whether kube-scheduler would put the pod back on a cordoned node with Leeward's taint (NodeUnschedulable,
    TaintToleration).
    """
    return all(pod.tolerates(key, "", "NoSchedule") for key in _MARKS)


def _comes_back(preflight: Preflight, pods: list[Pod]) -> Iterator[Finding]:
    """Report workloads that tolerate every taint, EKS' known reason of PodEvictionFailure. Where Leeward drains, such
    pods stay and end with the node (`leeward.termination.drain_plan`), without a check of any budget: a blocker too. A
    pod without a controller does not come back, pods of DaemonSets are left where they are.
    """
    managed = preflight.group.nodegroup is not None
    ends = "EKS' drain never finds the node empty" if managed else "it is left there and ends with the node, unevicted"
    severity = Severity.WARNING if preflight.forced else Severity.BLOCKER
    found = {workload_of(pod): pod for pod in pods if pod.owner is not None and tolerates_every_mark(pod)}
    for workload, pod in sorted((name, pod) for name, pod in found.items() if name is not None):
        yield Finding(
            code=Code.TOLERATES_EVERYTHING,
            severity=severity,
            object=f"workload {workload}",
            message=f"{pod.key} tolerates every taint: evicted, it would come back to the same node; {ends}",
            fix="name the taints that it has to tolerate instead of operator Exists without a key",
        )


def _refused(preflight: Preflight, pods: list[Pod]) -> Iterator[Finding]:
    """Report kubectl drain's own refusals, where the policy adopts them."""
    drain = preflight.policy.drain
    for pod in pods:
        if not drain.evict_unmanaged and pod.owner is None:
            why, key = "no controller would start it again", "drain.unmanagedPods"
        elif not drain.delete_local_data and pod.empty_dir:
            why, key = "it keeps data in an emptyDir", "drain.localData"
        else:
            continue
        said = f"{why}, and the policy {preflight.policy.name} refuses to evict it"
        yield blocker(Code.POLICY_REFUSES_PODS, f"pod {pod.key}", said, f"move it manually, or change {key}")


def _on_one_node(preflight: Preflight) -> Iterator[Finding]:
    """Report workloads of which no choice of waves can keep a replica serving."""
    for node in preflight.wave_nodes:
        for workload, load in sorted(node.workloads.items()):
            if 1 < preflight.rivalry.replicas.get(workload, 0) <= load:
                yield warning(
                    Code.REPLICAS_ON_ONE_NODE,
                    f"workload {workload}",
                    f"all {load} replicas are on {node.name}: nothing but a PodDisruptionBudget keeps one serving",
                    "spread it over nodes (topologySpreadConstraints), or give it a PodDisruptionBudget",
                )
