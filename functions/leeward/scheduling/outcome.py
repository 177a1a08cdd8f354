"""Result of a try: placements of the pods, the new nodes that they need, and why the other pods have no place."""

from collections.abc import Mapping
from dataclasses import dataclass

NO_TIME = "there was no time left to evaluate it"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """Node that does not exist yet. `pods`: `namespace/name` of those placed on it, without its daemon pods."""

    name: str
    template: str
    zone: str
    price: float  # dollars an hour
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Pod without a place, and the reason in kube-scheduler's words."""

    pod: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Placements (pod `namespace/name` to node), the new nodes, and the pods without a place. `timed_out`: the world's
    time ended it, so the pods that were not tried are among those without a place.
    """

    placements: Mapping[str, str]
    new_nodes: tuple[NewNode, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    timed_out: bool = False

    @property
    def complete(self) -> bool:
        """True if every pod has a place."""
        return not self.unplaced

    @property
    def price(self) -> float:
        """Price of the new nodes, in dollars an hour."""
        return sum(node.price for node in self.new_nodes)


def unavailable(refusals: Mapping[str, int], nodes: int) -> str:
    """Return a FailedScheduling Event's sentence: `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.`"""
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = ", ".join(sorted(f"{count} {why}" for why, count in refusals.items()))
    return f"0/{nodes} nodes are available: {reasons}."


def no_new_node(template: str, zone: str, refusals: Mapping[str, int]) -> str:
    """Return why not even a new node is possible."""
    return f"A new node of {template} in {zone}: {', '.join(sorted(refusals))}."
