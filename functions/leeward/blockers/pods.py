"""Pods that hold up a node's drain, with the fix of a PodDisruptionBudget that forbids an eviction, and pods with an
opt-out from disruption."""

from collections.abc import Iterator
from datetime import datetime
from typing import assert_never

from leeward.blockers import commands
from leeward.blockers.blocker import Blocker, BlockerKind, owner_of, resource_of
from leeward.blockers.inputs import NodeInputs
from leeward.budgets.pdb import Forbids, Refusal, bound
from leeward.disruption.do_not_disrupt import WINDOW_EXPECTED, OptOut, pod_opt_outs
from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.pod import Pod
from leeward.model.pod_limits import is_list
from leeward.model.visible import visible
from leeward.termination.drain_plan import (
    STUCK_AFTER,
    DrainPlan,
    Eviction,
    Protection,
    RefusedPod,
    tolerates_disruption_taint,
)

REFUSED = {Protection.UNMANAGED: BlockerKind.UNMANAGED_POD, Protection.LOCAL_DATA: BlockerKind.LOCAL_DATA}
OPT_OUTS = {
    well_known.SAFE_TO_EVICT: BlockerKind.SAFE_TO_EVICT,
    well_known.DISRUPTION_WINDOW: BlockerKind.DISRUPTION_WINDOW,
}
KINDS = {
    Forbids.NONE_NOW: BlockerKind.PDB_NONE_NOW,
    Forbids.NEVER: BlockerKind.PDB_NEVER,
    Forbids.SYNC_FAILED: BlockerKind.PDB_SYNC_FAILED,
    Forbids.SEVERAL: BlockerKind.PDB_SEVERAL,
    Forbids.FAILING_POD: BlockerKind.PDB_FAILING_POD,
}


def of_plan(plan: DrainPlan, inputs: NodeInputs) -> Iterator[Blocker]:
    """Yield the blockers of a drain that begins now: evictions that budgets forbid, pods that the policy protects."""
    for eviction in plan.evict:
        if eviction.refusal is not None:
            yield _held(eviction, inputs)
    for refused in plan.refuse:
        if refused.protection in REFUSED:
            yield _protected(refused, inputs)


def of_pods(inputs: NodeInputs, now: datetime) -> Iterator[Blocker]:
    """Yield blockers whatever a drain does: pods that would come back or do not end, and opt-out annotations."""
    for pod in sorted(inputs.pods, key=lambda pod: pod.key):
        if pod.deletion is not None and pod.deletion < now and not pod.mirror:
            yield _stuck(pod, pod.deletion)
        elif pod.deletion is None and not pod.mirror and tolerates_disruption_taint(pod, inputs.node):
            yield _tolerant(pod, inputs)
        for opt_out in pod_opt_outs(pod, now):
            yield _opted_out(pod, opt_out)
        if pod.beyond_limit and pod.evictable:
            yield _unmovable(pod)


def _held(eviction: Eviction, inputs: NodeInputs) -> Blocker:
    pod, refusal = eviction.pod, eviction.refusal
    assert refusal is not None
    ends = (eviction.force_delete_at, inputs.drain_ends)
    return Blocker(
        node=inputs.node.name,
        pod=pod.key,
        owner=owner_of(pod),
        kind=KINDS[refusal.why],
        object=", ".join(refusal.named),
        until=min((moment for moment in ends if moment), default=None),
        fix=_fix_for(pod, refusal),
    )


def _protected(refused: RefusedPod, inputs: NodeInputs) -> Blocker:
    pod = refused.pod
    if refused.protection is Protection.UNMANAGED:
        fix = (
            f"nothing would start it again: delete it yourself ({commands.delete(pod)}), or allow it with drain."
            "unmanagedPods: evict in the policy; kubectl drain and leeward drain --dry-run take --force"
        )
    else:
        fix = (
            "its emptyDir would be lost: save what matters and delete it yourself "
            f"({commands.delete(pod)}), or allow it with drain.localData: delete in the policy; kubectl drain and "
            "leeward drain --dry-run take --delete-emptydir-data"
        )
    return Blocker(
        node=inputs.node.name,
        pod=pod.key,
        owner=owner_of(pod),
        kind=REFUSED[refused.protection],
        object=f"pod {pod.key}",
        until=inputs.drain_ends,
        fix=fix,
    )


def _tolerant(pod: Pod, inputs: NodeInputs) -> Blocker:
    """Return the blocker of a pod that tolerates the taint. Karpenter leaves it on the node; EKS and kubectl evict it
    repeatedly.
    """
    everything = any(not one.key and one.operator == "Exists" for one in pod.tolerations)
    what = "every taint" if everything else f"the taint {well_known.DISRUPTED_TAINT}"
    return Blocker(
        node=inputs.node.name,
        pod=pod.key,
        owner=owner_of(pod),
        kind=BlockerKind.TOLERATES_TAINT,
        object=f"toleration of {what}",
        until=min((moment for moment in (inputs.deadline, inputs.drain_ends) if moment), default=None),
        fix=(
            f"it tolerates {what}, so evicted it may come back to this node at once: Leeward leaves it and it ends "
            f"with the node, without its budget being asked; narrow the tolerations of {owner_of(pod)} (kubectl edit "
            f"-n {pod.namespace} {resource_of(pod)}) to have it moved in good order"
        ),
    )


def _stuck(pod: Pod, ended: datetime) -> Blocker:
    if pod.finalizers:
        kind, what = BlockerKind.POD_FINALIZER, f"finalizer {', '.join(pod.finalizers)}"
        fix = (
            f"it has ended but keeps {what}: find out why its controller does not take it off "
            f"({commands.describe(pod)}); as a last resort kubectl patch pod -n {pod.namespace} {pod.name} "
            """--type merge -p '{"metadata":{"finalizers":null}}'"""
        )
    else:
        kind, what = BlockerKind.STUCK_POD, f"pod {pod.key}"
        fix = (
            "its grace is over and the kubelet has not confirmed its end: look at the node's kubelet and container "
            f"runtime ({commands.describe(pod)}); once it surely runs no more, {commands.delete(pod)} --force "
            "--grace-period=0"
        )
    return Blocker(
        node=pod.node,
        pod=pod.key,
        owner=owner_of(pod),
        kind=kind,
        object=what,
        until=ended + STUCK_AFTER,
        since=ended,
        fix=f"{fix}; drains wait for it no longer than a minute past its grace",
    )


def _opted_out(pod: Pod, opt_out: OptOut) -> Blocker:
    ends = "it ends by itself; sooner: " if opt_out.until else "for as long as it is there: "
    if opt_out.key == well_known.DISRUPTION_WINDOW:
        ends = (
            "until its window opens; sooner: " if opt_out.until else f"at all times, as it is not {WINDOW_EXPECTED}: "
        )
    remove = commands.unannotate(f"pod {pod.name}", opt_out.key, pod.namespace)
    return Blocker(
        node=pod.node,
        pod=pod.key,
        owner=owner_of(pod),
        kind=OPT_OUTS.get(opt_out.key, BlockerKind.DO_NOT_DISRUPT),
        object=f"annotation {opt_out.key}={opt_out.value}",
        until=opt_out.until,
        since=pod.started,
        fix=(
            f"it holds up voluntary disruption, {ends}{remove} (and in the template of {owner_of(pod)}); interruptions "
            f"and leeward drain {pod.node} do not ask it"
        ),
    )


def _unmovable(pod: Pod) -> Blocker:
    edit = f"shorten it (kubectl edit -n {pod.namespace} {resource_of(pod)})"
    shorten = edit if is_list(pod.beyond_limit) else "move it yourself, or let the group keep its nodes"
    return Blocker(
        node=pod.node,
        pod=pod.key,
        owner=owner_of(pod),
        kind=BlockerKind.BEYOND_LIMITS,
        object=pod.beyond_limit,
        until=None,
        since=pod.started,
        fix=(
            f"no plan moves it, which holds up voluntary disruption: {shorten}; interruptions, upgrades "
            f"and leeward drain {pod.node} evict it like any other"
        ),
    )


def _fix_for(pod: Pod, refusal: Refusal) -> str:
    """Return the fix: one sentence with its command."""
    budget = refusal.budgets[0]
    healthy = (
        f"{budget.current_healthy} of the "
        f"{count_of(budget.desired_healthy, 'pod that it wants healthy is so', 'pods that it wants healthy are so')}"
    )
    match refusal.why:
        case Forbids.SEVERAL:
            names = ", ".join(refusal.named)
            return (
                f"the Eviction API never evicts a pod that several budgets select ({names}), whatever they allow: keep "
                f"one, such as by kubectl delete pdb -n {budget.namespace} {refusal.budgets[-1].name}"
            )
        case Forbids.NEVER:
            grow = f", or add a replica to {resource_of(pod)}" if isinstance(budget.min_available, int) else ""
            return (
                f"pdb {budget.key} says {bound(budget)}{_expected(refusal)}, so it never allows any eviction: "
                f"{commands.loosen(budget)}{grow}"
            )
        case Forbids.SYNC_FAILED:
            return (
                f"the disruption controller cannot compute pdb {budget.key} ({visible(budget.sync_failed)}), so it "
                f"allows none whatever its pods do: {commands.count_pods(budget)}, with as many pods as have to stay"
            )
        case Forbids.FAILING_POD:
            return (
                f"the pod is not ready and pdb {budget.key} lets failing pods go only while the others suffice "
                f"({healthy}): fix it ({commands.describe(pod)}) or {commands.let_failing_go(budget)}"
            )
        case Forbids.NONE_NOW:
            return (
                f"pdb {budget.key} allows no disruption now ({healthy}): it passes when more of its pods are ready "
                f"(kubectl get pods -n {budget.namespace} shows which are not); else add a replica to "
                f"{resource_of(pod)} or, as the last resort, {commands.loosen(budget)} until the pod has left "
                f"({bound(budget)} now)"
            )
        case never:
            assert_never(never)


def _expected(refusal: Refusal) -> str:
    expected = refusal.budgets[0].expected_pods
    return f" with {expected} {'pod' if expected == 1 else 'pods'}" if expected else ""
