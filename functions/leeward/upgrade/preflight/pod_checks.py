"""Pods of old nodes that do not leave: held by their budgets, sure to return, or refused by the policy.

PodDisruptionBudgets hold pods always, now, or because of how they are written. A pod that gets a second replica
before it leaves is checked with that replica beside it.

Sources: policy/v1 (minAvailable, maxUnavailable and unhealthyPodEvictionPolicy), the Eviction API (a pod that
several budgets select cannot be evicted), EKS' known reasons of PodEvictionFailure.

Opt-outs of voluntary disruption are asked of none: an upgrade warns before it starts. An opt-out has no owner who could
be asked during the upgrade, and a group that cannot leave an image because of one annotation stays without security
fixes. So the operator decides before the start, with the ends in view."""

from collections import Counter
from collections.abc import Iterator, Sequence

from leeward.budgets.pdb import evicts_unready, refusal_beside_second, why_never
from leeward.disruption.do_not_disrupt import DO_NOT_DISRUPT, OptOut, node_opt_outs, pod_opt_outs
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.times import format_instant
from leeward.model.visible import visible
from leeward.upgrade.preflight.findings import Code, PreflightFinding, Severity, blocker, warning
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.waves.model import tolerates_drain_taints, workload_of

MOST_NAMED = 3


def check_budgets(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield one finding for each budget, and for each set of budgets that select the same pod."""
    severity = Severity.WARNING if preflight.forced else Severity.BLOCKER
    holding, several = _by_budget(preflight)
    selected = _selected(preflight)
    for name in sorted(holding):
        budget, pods = holding[name]
        never = why_never(budget, budget.expected_pods or selected[name])
        failing = [pod for pod in pods if not pod.ready and pod.phase == "Running"]
        if budget.sync_failed:
            yield _sync_failed(budget, name, severity)
        elif never:
            yield _never(budget, name, never, severity)
        elif budget.disruptions_allowed <= 0 and failing and not evicts_unready(budget):
            yield _on_failing(budget, name, failing, severity)
        elif budget.disruptions_allowed <= 0 or not budget.processed:
            yield _none_now(budget, name, pods)
    for names, pods in sorted(several.items()):
        yield _several(names, pods, severity)


def _by_budget(
    preflight: Preflight,
) -> tuple[dict[str, tuple[PodDisruptionBudget, list[Pod]]], dict[tuple[str, ...], list[Pod]]]:
    """Return the pods of old nodes by the budget that selects them alone, and by the budgets that
    select them together.
    """
    alone: dict[str, tuple[PodDisruptionBudget, list[Pod]]] = {}
    several: dict[tuple[str, ...], list[Pod]] = {}
    for node in sorted(preflight.pods):
        for pod in preflight.pods[node]:
            budgets = preflight.budgets_of(pod)
            if pod.key in preflight.inputs.surged and refusal_beside_second(pod, budgets) is None:
                continue
            if len(budgets) > 1:
                several.setdefault(tuple(budget.key for budget in budgets), []).append(pod)
            for budget in budgets:
                alone.setdefault(budget.key, (budget, []))[1].append(pod)
    return alone, several


def _selected(preflight: Preflight) -> Counter[str]:
    """Count the pods that each budget selects, wherever they are: used where its status lacks the number."""
    return Counter(
        budget.key for pod in preflight.snapshot.pods if not pod.finished for budget in preflight.budgets_of(pod)
    )


def _never(budget: PodDisruptionBudget, name: str, why: str, severity: Severity) -> PreflightFinding:
    return PreflightFinding(
        code=Code.PDB_NEVER_ALLOWS,
        severity=severity,
        object=f"pdb {name}",
        message=f"{why}: it never allows a disruption, its pods never leave an old node",
        fix=f"kubectl -n {budget.namespace} edit pdb {budget.name}: maxUnavailable 1, or one replica more than "
        "minAvailable",
    )


def _sync_failed(budget: PodDisruptionBudget, name: str, severity: Severity) -> PreflightFinding:
    return PreflightFinding(
        code=Code.PDB_NEVER_ALLOWS,
        severity=severity,
        object=f"pdb {name}",
        message=f"the disruption controller cannot compute it ({visible(budget.sync_failed)}): it allows no disruption",
        fix=f"kubectl -n {budget.namespace} edit pdb {budget.name}: minAvailable as a number in place of its bound",
    )


def _on_failing(budget: PodDisruptionBudget, name: str, failing: list[Pod], severity: Severity) -> PreflightFinding:
    return PreflightFinding(
        code=Code.PDB_ON_FAILING_PODS,
        severity=severity,
        object=f"pdb {name}",
        message=f"{failing[0].key} is not Ready{_more(failing)}, {budget.current_healthy} of {budget.desired_healthy} "
        "that it wants are healthy: the budget (IfHealthyBudget) keeps failing pods from being evicted",
        fix=f"fix the pods, or set unhealthyPodEvictionPolicy AlwaysAllow on pdb {budget.name}",
    )


def _none_now(budget: PodDisruptionBudget, name: str, pods: list[Pod]) -> PreflightFinding:
    return PreflightFinding(
        code=Code.PDB_ALLOWS_NONE_NOW,
        severity=Severity.WARNING,
        object=f"pdb {name}",
        message=f"allows no disruption now ({budget.current_healthy} healthy, {budget.desired_healthy} wanted): "
        f"{pods[0].key}{_more(pods)} would wait",
        fix=f"wait until all its pods are healthy: kubectl -n {budget.namespace} get pdb {budget.name}",
    )


def _several(names: tuple[str, ...], pods: list[Pod], severity: Severity) -> PreflightFinding:
    return PreflightFinding(
        code=Code.SEVERAL_PDBS,
        severity=severity,
        object=f"pod {pods[0].key}",
        message=f"selected by several PodDisruptionBudgets ({', '.join(names)}){_more(pods)}: the Eviction API refuses "
        "such a pod whatever they allow",
        fix="narrow the selectors until one budget selects each pod",
    )


def _more(pods: list[Pod]) -> str:
    return f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""


def check_workloads(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield one finding for each workload."""
    pods = [pod for node in sorted(preflight.pods) for pod in preflight.pods[node]]
    yield from _returns_to_node(preflight, pods)
    yield from _refused(preflight, pods)
    yield from _on_one_node(preflight)


def _returns_to_node(preflight: Preflight, pods: list[Pod]) -> Iterator[PreflightFinding]:
    """Report workloads that tolerate every taint, EKS' known reason of PodEvictionFailure. Where Leeward drains, such
    pods stay and end with the node (`leeward.termination.drain_plan`), without a check of any budget: a blocker too. A
    pod without a controller does not come back, pods of DaemonSets are left where they are.
    """
    managed = preflight.group.nodegroup is not None
    ends = "EKS' drain never finds the node empty" if managed else "it is left there and ends with the node, unevicted"
    severity = Severity.WARNING if preflight.forced else Severity.BLOCKER
    workloads = {workload_of(pod): pod for pod in pods if pod.owner is not None and tolerates_drain_taints(pod)}
    for workload, pod in sorted((name, pod) for name, pod in workloads.items() if name is not None):
        yield PreflightFinding(
            code=Code.TOLERATES_EVERYTHING,
            severity=severity,
            object=f"workload {workload}",
            message=f"{pod.key} tolerates every taint: evicted, it would come back to the same node; {ends}",
            fix="name the taints that it has to tolerate instead of operator Exists without a key",
        )


def _refused(preflight: Preflight, pods: list[Pod]) -> Iterator[PreflightFinding]:
    """Report kubectl drain's own refusals, where the policy adopts them."""
    drain = preflight.policy.drain
    for pod in pods:
        if not drain.evict_unmanaged and pod.owner is None:
            why, key = "no controller would start it again", "drain.unmanagedPods"
        elif not drain.delete_local_data and pod.empty_dir:
            why, key = "it keeps data in an emptyDir", "drain.localData"
        else:
            continue
        message = f"{why}, and the policy {preflight.policy.name} refuses to evict it"
        yield blocker(Code.POLICY_REFUSES_PODS, f"pod {pod.key}", message, f"move it manually, or change {key}")


def _on_one_node(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Report workloads of which no choice of waves can keep a replica serving."""
    for node in preflight.wave_nodes:
        for workload, load in sorted(node.workloads.items()):
            if 1 < preflight.constraints.replicas.get(workload, 0) <= load:
                yield warning(
                    Code.REPLICAS_ON_ONE_NODE,
                    f"workload {workload}",
                    f"all {load} replicas are on {node.name}: nothing but a PodDisruptionBudget keeps one serving",
                    "spread it over nodes (topologySpreadConstraints), or give it a PodDisruptionBudget",
                )


def check_opt_outs(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield one finding for the group: who opts out, and until when at the longest."""
    opted = list(_opted_out(preflight))
    if not opted:
        return
    named = ", ".join(f"{name} ({visible(one.key)})" for name, one in opted[:MOST_NAMED])
    more = f" and {len(opted) - MOST_NAMED} more" if len(opted) > MOST_NAMED else ""
    yield warning(
        Code.OPTED_OUT,
        f"group {preflight.group.name}",
        f"{named}{more} opt out of disruption, {_longest([one for _, one in opted])}: an upgrade does not ask, it "
        "drains their nodes within the PodDisruptionBudgets",
        "start after that, or leave an instance out: aws autoscaling set-instance-protection --protected-from-scale-in",
    )


def _opted_out(preflight: Preflight) -> Iterator[tuple[str, OptOut]]:
    """Yield old nodes and their pods that opt out now, each with its first opt-out."""
    for member in preflight.old:
        node = member.node
        if node is None:
            continue
        own = next((one for one in node_opt_outs(node) if one.key in DO_NOT_DISRUPT), None)
        if own is not None:
            yield f"node {node.name}", own
        for pod in preflight.pods[node.name]:
            opt_outs = pod_opt_outs(pod, preflight.snapshot.now)
            if opt_outs:
                yield f"pod {pod.key}", opt_outs[0]


def _longest(opt_outs: Sequence[OptOut]) -> str:
    """Return the latest end in words. One without an end holds for as long as the annotation is there."""
    without = sum(one.until is None for one in opt_outs)
    ends = [one.until for one in opt_outs if one.until is not None]
    latest = f"the longest until {format_instant(max(ends))}" if ends else ""
    endless = f"{without} without an end" if without else ""
    return " and ".join(filter(None, (latest, endless)))
