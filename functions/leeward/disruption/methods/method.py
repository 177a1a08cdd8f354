"""Interface of a disruption method."""

from collections.abc import Mapping
from typing import Protocol

from leeward.disruption.candidates import Candidate
from leeward.disruption.command import MethodName, Outcome, Verdict
from leeward.disruption.planning_state import PlanningState
from leeward.policy.document import NodePolicy, Reason
from leeward.scheduling import outcome

NO_TIME = outcome.NO_TIME


class Method(Protocol):
    """One disruption method. It leaves the run's world and budgets unchanged."""

    @property
    def name(self) -> MethodName:
        """Name of the method as in `leeward plan --method`."""
        ...

    @property
    def reason(self) -> Reason:
        """Reason whose budgets the method spends."""
        ...

    def reason_to_keep(self, state: PlanningState, candidate: Candidate) -> str:
        """Return why the method skips the candidate, empty when it considers it."""
        ...

    def decide(self, state: PlanningState) -> Outcome:
        """Return the commands of this run, and a verdict on every node."""
        ...


def considered(method: Method, state: PlanningState) -> tuple[list[Candidate], dict[str, Verdict]]:
    """Return the considered candidates, the cheapest to disrupt first, and the verdicts on all other nodes."""
    verdicts = {node: Verdict(candidate=False, reason=why) for node, why in state.reasons_to_keep.items()}
    taken: list[Candidate] = []
    for candidate in state.candidates.values():
        why = method.reason_to_keep(state, candidate)
        if why:
            verdicts[candidate.name] = Verdict(candidate=False, reason=why)
        else:
            taken.append(candidate)
    return sorted(taken, key=lambda candidate: candidate.rank), verdicts


def in_order(state: PlanningState, verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Return the verdicts sorted by the names of all nodes."""
    return {name: verdicts[name] for name in sorted(node.name for node in state.snapshot.nodes)}


def no_section(policy: NodePolicy) -> str:
    """Return why no node of the policy is disrupted: it has no section that switches voluntary disruption on."""
    return f"policy {policy.name} has no disruption section"
