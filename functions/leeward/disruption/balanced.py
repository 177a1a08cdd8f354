"""Score of a consolidation under `consolidationPolicy: Balanced`: its share of the savings against its share of the
disruption.

Source: Karpenter 1.14, designs/balanced-consolidation.md and pkg/controllers/disruption/balanced.go. With the totals of
a NodePool, here of the nodes that one policy selects:

    score = (savings / price of all nodes) / (disruption cost of the command / disruption cost of all nodes)

A command is taken where the score is at least 1/k; k is 2 and fixed, as in Karpenter. The disruption cost of a node is
1 and the eviction costs of its pods, negative ones counted as 0. The remaining lifetime does not change it: it decides
which node is tried first, and not whether a command is worth it. Of several policies each scores its own nodes with its
part of the savings, and the lowest score counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

BALANCED = "Balanced"
LEAST_SCORE = 0.5  # 1/k
PER_NODE = 1.0  # disruption cost of a node without pods
_NOISE = 1e-9  # of binary fractions: a score of exactly one half is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Totals over the nodes of one policy whose price is known. `price`: dollars an hour."""

    policy: str
    price: float
    disruption: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedShare:
    """Node of a command under Balanced. `price` None: unknown."""

    price: float | None
    disruption: float
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score of a command. `savings` and `disruption`: its shares of the totals of `policy`, from 0 to 1."""

    policy: str
    value: float
    savings: float
    disruption: float

    @property
    def enough(self) -> bool:
        """True if the command is worth its disruption."""
        return self.value >= LEAST_SCORE - _NOISE

    @property
    def sentence(self) -> str:
        """Describe the score: `score 1.67: 8.3% of the cost of policy web for 5.0% of its disruption`."""
        shares = f"{self.savings:.1%} of the cost of policy {self.policy} for {self.disruption:.1%} of its disruption"
        return f"score {self.value:.2f}: {shares}"


def disruption_cost(evictions: Iterable[float]) -> float:
    """Return the disruption cost of a node, from the eviction costs of its pods."""
    return PER_NODE + sum(max(cost, 0.0) for cost in evictions)


def score(shares: Iterable[BalancedShare], price: float | None, savings: float | None) -> Score | None:
    """Return the lowest score of the policies whose nodes a command removes.

    `shares`: its nodes under Balanced; `price`: of all its nodes, `savings`: what it saves, both in dollars an hour.
    None where no node is under Balanced, or a price is not known.
    """
    by_policy: dict[Totals, list[BalancedShare]] = {}
    for share in shares:
        by_policy.setdefault(share.totals, []).append(share)
    if not by_policy or not price or savings is None:
        return None
    parts = (_of_policy(totals, own, savings / price) for totals, own in by_policy.items())
    return min(parts, key=lambda part: (part.value, part.policy))


def _of_policy(totals: Totals, nodes: Iterable[BalancedShare], saved: float) -> Score:
    """Return the score of one policy's nodes. `saved`: dollars saved for each dollar of price."""
    nodes = list(nodes)
    own = sum(node.price or 0.0 for node in nodes) * saved
    savings = own / totals.price if totals.price else 0.0
    disruption = sum(node.disruption for node in nodes) / totals.disruption
    return Score(policy=totals.policy, value=savings / disruption, savings=savings, disruption=disruption)


def totals_of(prices: Mapping[str, float | None], disruption: Mapping[str, float], policy: str) -> Totals:
    """Return the totals over a policy's nodes, by name. Karpenter leaves out nodes without a known price, so that the
    two totals are those of the same nodes.
    """
    known = [name for name, price in prices.items() if price]
    return Totals(
        policy=policy,
        price=sum(prices[name] or 0.0 for name in known),
        disruption=sum(disruption[name] for name in known),
    )
