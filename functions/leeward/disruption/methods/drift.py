"""Drift: nodes that differ from the nodes that their group would launch now, where a new node would match.

A group whose new nodes would drift as well is never rolled: the fix is an upgrade to what the policy asks, or another
policy (docs/features.md, K15). Source: Karpenter v0.30, pkg/controllers/deprovisioning/drift.go; the oldest drift
first, as in current Karpenter."""

from leeward.disruption.candidates import Candidate
from leeward.disruption.command import MethodName, MethodOutcome
from leeward.disruption.methods.method import no_section, replace_in_turn
from leeward.disruption.planning_state import PlanningState
from leeward.drift.detect import Drifted, Remedy
from leeward.policy.document import DisruptionReason


class Drift:
    """Method that deletes nodes whose pods fit elsewhere, and replaces the others one by one."""

    name = MethodName.DRIFT
    reason = DisruptionReason.DRIFTED

    def reason_to_keep(self, state: PlanningState, candidate: Candidate) -> str:
        """Return why not: switched off, not known, not drifted, only an upgrade can fix it, or launches are seen not
        to.
        """
        if not state.snapshot.policies.settings.drift:
            return "drift is switched off for the cluster"
        if not candidate.policy.disruption.present:
            return no_section(candidate.policy)
        if not candidate.policy.disruption.drift:
            return f"policy {candidate.policy.name} says drift: false"
        return _why_no_replacement(state.drift[candidate.name])

    def decide(self, state: PlanningState) -> MethodOutcome:
        """Return as many commands as budgets allow."""
        return replace_in_turn(
            self,
            state,
            rank=lambda candidate: state.drift[candidate.name].since or state.snapshot.now,
            said=lambda candidate: state.drift[candidate.name].summary,
        )


def _why_no_replacement(drifted: Drifted) -> str:
    if drifted.unread:
        return f"{f'{drifted.summary}; ' if drifted.drifted else ''}not judged: {drifted.unread}"
    if not drifted.drifted:
        return "it is what its group would launch now"
    if drifted.remedy is Remedy.NONE:
        return f"{drifted.summary}, and is not replaced for it: {drifted.not_fixed}"
    if drifted.remedy is Remedy.UPGRADE:
        return f"{drifted.summary}; {drifted.upgrade}"
    return ""
