"""Expiration: nodes older than their policy's `expireAfter`, the longest expired first.

Source: Karpenter v0.30, pkg/controllers/deprovisioning/expiration.go. Unlike current Karpenter it is graceful:
replacements come first, budgets and opt-outs hold (docs/features.md, K1, K7)."""

from datetime import UTC, datetime, timedelta

from leeward.disruption.candidates import Candidate, expires, lifetime
from leeward.disruption.command import MethodName, MethodOutcome
from leeward.disruption.methods.method import no_section, replace_in_turn
from leeward.disruption.planning_state import PlanningState
from leeward.model.node import Node
from leeward.policy.document import DisruptionReason, NodePolicy
from leeward.policy.durations import format_duration, format_spread
from leeward.snapshot.cluster import ClusterSnapshot

_UNKNOWN = datetime.min.replace(tzinfo=UTC)


class Expiration:
    """Method that deletes nodes whose pods fit elsewhere, and replaces the others one by one."""

    name = MethodName.EXPIRATION
    reason = DisruptionReason.EXPIRED

    def reason_to_keep(self, state: PlanningState, candidate: Candidate) -> str:
        """Return why not: switched off, or not old enough."""
        forever = why_kept_forever(state.snapshot, candidate.node, candidate.policy)
        left = timedelta() if forever else _expires(candidate) - state.snapshot.now
        return forever or (f"it expires in {_rounded(left)}{_spread(candidate)}" if left > timedelta() else "")

    def decide(self, state: PlanningState) -> MethodOutcome:
        """Return as many commands as budgets allow."""
        return replace_in_turn(
            self,
            state,
            rank=_expires,
            said=lambda candidate: f"it expired {_rounded(state.snapshot.now - _expires(candidate))} ago",
        )


def why_kept_forever(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> str:
    """Return why the node never expires, empty when it does."""
    if not snapshot.policies.settings.expiration:
        return "expiration is switched off for the cluster"
    if not policy.disruption.present:
        return no_section(policy)
    if policy.disruption.expire_after is None:
        return f"nodes of policy {policy.name} do not expire (expireAfter Never)"
    return "it is unknown when the node was created" if node.created == _UNKNOWN else ""


def _expires(candidate: Candidate) -> datetime:
    return expires(candidate.node, candidate.policy.disruption) or datetime.max.replace(tzinfo=UTC)


def _spread(candidate: Candidate) -> str:
    """Return which age the spread of its policy gives the node, empty without one."""
    rules = candidate.policy.disruption
    after = lifetime(candidate.node, rules)
    if after is None or rules.expire_after is None or not rules.expire_jitter:
        return ""
    spread = format_spread(rules.expire_after, rules.expire_jitter)
    return f", {_rounded(after)} old: its share of expireAfter {spread}"


def _rounded(span: timedelta) -> str:
    """Format a duration rounded down to the second."""
    return format_duration(timedelta(seconds=int(span.total_seconds())))
