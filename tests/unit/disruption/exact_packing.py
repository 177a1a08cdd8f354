"""The cheapest nodes that hold some pods, found exactly and slowly: what consolidation is measured against.

The model: each group launches nodes of one size at one price, as many as are wanted but never fewer than its MinSize.
A pod asks for cpu, memory and one of `pods`, and may go anywhere. The answer is the smallest price of any multiset of
nodes on which all pods find room together; which nodes run now does not matter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, combinations_with_replacement
from math import inf

CENT = 1e-9  # dollars, by which sums of prices may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One group. `room`: what a node holds, in the order of the pods' amounts."""

    room: tuple[int, ...]
    price: float
    minimum: int = 0


def cheapest(pods: Sequence[tuple[int, ...]], offers: Sequence[Offer]) -> float:
    """Dollars an hour; infinite where a pod fits on no node.

    Depth first over nodes: the next node always holds one of the largest pods that are left, together with as many
    others as have room (more never hurts). What is known of the pods that are left is kept; what their sum alone must
    cost ends a branch.
    """
    shapes = sorted(set(pods), reverse=True)
    counts = tuple(pods.count(shape) for shape in shapes)
    unit = [min(one.price / one.room[at] for one in offers) for at in range(len(shapes[0]))] if shapes else []

    def bound(left: tuple[int, ...]) -> float:
        """As if nodes could be bought by the part."""
        asked = [sum(n * shape[at] for n, shape in zip(left, shapes, strict=True)) for at in range(len(unit))]
        return max((amount * price for amount, price in zip(asked, unit, strict=True)), default=0.0)

    @cache
    def cost(left: tuple[int, ...], free: tuple[int, ...]) -> float:
        """`free`: nodes of each group that are paid for because of its MinSize."""
        first = next((at for at, n in enumerate(left) if n), None)
        if first is None:
            return 0.0
        best = inf
        for at, offer in enumerate(offers):
            price = 0.0 if free[at] else offer.price
            rest = (*free[:at], free[at] - 1, *free[at + 1 :]) if free[at] else free
            for taken in fillings(left, shapes, offer.room, first):
                after = tuple(n - m for n, m in zip(left, taken, strict=True))
                if any(rest) or price + bound(after) < best:
                    best = min(best, price + cost(after, rest))
        return best

    paid = sum(one.minimum * one.price for one in offers)
    return paid + cost(counts, tuple(one.minimum for one in offers))


def cheapest_allowed(
    pods: Sequence[tuple[int, ...]], offers: Sequence[Offer], present: Sequence[float], *, one_by_one: bool = False
) -> float:
    """The cheapest that commands with at most one cheaper replacement can come to, from nodes of these prices.

    However many commands there were, each node at the end stands for nodes of its own from the beginning: for itself,
    or for some that cost more together. `one_by_one`: no command removes more than one node, so that it stands for
    itself or for one that costs more. Whether pods can be moved that way is not asked: nothing less can be reached.
    """
    together = 1 if one_by_one else len(present)
    found = []
    for count in range(len(present) + 1):
        for chosen in combinations_with_replacement(offers, count):
            if all(chosen.count(one) >= one.minimum for one in offers):
                found.append((sum(one.price for one in chosen), chosen))
    for price, chosen in sorted(found, key=lambda one: one[0]):
        left = tuple(sorted(one.price for one in chosen))
        if _stand_for(tuple(sorted(present)), left, together) and _all_fit(pods, chosen):
            return price
    return inf


@cache
def _stand_for(present: tuple[float, ...], left: tuple[float, ...], together: int) -> bool:
    """Whether each price of `left` can have prices of `present` to itself: one that is the same, or at most `together`
    that are more in all.
    """
    if not left:
        return True
    *others, most_expensive = left
    for count in range(1, min(together, len(present)) + 1):
        for taken in set(combinations(present, count)):
            if taken == (most_expensive,) or sum(taken) > most_expensive + CENT:
                rest = list(present)
                for price in taken:
                    rest.remove(price)
                if _stand_for(tuple(rest), tuple(others), together):
                    return True
    return False


def _all_fit(pods: Sequence[tuple[int, ...]], nodes: Sequence[Offer]) -> bool:
    """Whether these nodes, and no more, hold them."""
    bought = [Offer(room=one.room, price=1.0, minimum=nodes.count(one)) for one in dict.fromkeys(nodes)]
    return cheapest(pods, bought) <= len(nodes) + CENT if bought else not pods


def fillings(
    left: tuple[int, ...], shapes: Sequence[tuple[int, ...]], room: tuple[int, ...], first: int
) -> Iterator[tuple[int, ...]]:
    """Every way to fill one node with at least one pod of the shape `first`, to which no further pod can be added."""

    def fill(at: int, taken: tuple[int, ...], rest: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if at == len(shapes):
            more = (n > m and _fits(shape, rest) for n, m, shape in zip(left, taken, shapes, strict=True))
            if not any(more):
                yield taken
            return
        least = 1 if at == first else 0
        for count in range(left[at] + 1):
            after = tuple(has - count * wants for has, wants in zip(rest, shapes[at], strict=True))
            if min(after) < 0:
                break
            if count >= least:
                yield from fill(at + 1, (*taken, count), after)

    yield from fill(0, (), room)


def _fits(shape: tuple[int, ...], rest: tuple[int, ...]) -> bool:
    return all(wants <= has for wants, has in zip(shape, rest, strict=True))
