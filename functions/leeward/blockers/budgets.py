"""Fixes for a PodDisruptionBudget that forbids an eviction and so holds up the node."""

from typing import assert_never

from leeward.blockers import commands
from leeward.blockers.blocker import Kind, resource_of
from leeward.model.pod import Pod
from leeward.termination.budgets import Forbids, Refusal, bound

KINDS = {
    Forbids.NONE_NOW: Kind.PDB_NONE_NOW,
    Forbids.NEVER: Kind.PDB_NEVER,
    Forbids.SEVERAL: Kind.PDB_SEVERAL,
    Forbids.FAILING_POD: Kind.PDB_FAILING_POD,
}


def fix_for(pod: Pod, refusal: Refusal) -> str:
    """Return the fix: one sentence with its command."""
    budget = refusal.budgets[0]
    healthy = f"{budget.current_healthy} of the {budget.desired_healthy} pods that it wants healthy are so"
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
        case Forbids.FAILING_POD:
            return (
                f"the pod is not ready and pdb {budget.key} lets failing pods go only while the others suffice "
                f"({healthy}): fix it ({commands.describe(pod)}) or {commands.let_failing_go(budget)}"
            )
        case Forbids.NONE_NOW:
            return (
                f"pdb {budget.key} allows no disruption now ({healthy}): it passes when more of its pods are ready "
                f"(kubectl get pods -n {budget.namespace} shows which are not); else add a replica to "
                f"{resource_of(pod)} or {commands.loosen(budget)}"
            )
        case never:
            assert_never(never)


def _expected(refusal: Refusal) -> str:
    expected = refusal.budgets[0].expected_pods
    return f" with {expected} {'pod' if expected == 1 else 'pods'}" if expected else ""
