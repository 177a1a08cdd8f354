"""Fleets of 40 to 90 pods for new nodes of one type, and the fewest nodes that hold them, with a proof.

A proof is a weight for each shape of pod such that no node can hold pods of more than weight 1: the fleet needs as many
nodes as its pods weigh. The shares of cpu or memory often do. For twelve shapes better weights are searched over all
full nodes (multiplicative weights: Plotkin, Shmoys and Tardos); for three every way is tried. So no solver is a
dependency: OR-tools and what it needs are 240 MB."""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from leeward.scheduling.packing import Amounts, fewer_nodes

NODE: Amounts = (3_920, 14_500, 58)  # thousandths of a core, MiB, pods: an m5.xlarge
FEW_SHAPES, MOST_SHAPES, MOST_FULL = 3, 12, 20_000  # of a fleet whose full nodes are listed
ROUNDS, STEP = 4_000, 0.1  # of the search for weights
SHUFFLES = 400  # of the search for a packing
SURE = 1e-6  # for sums of floating point numbers
THREE = ((1_200, 1_000), (200, 5_000), (700, 2_600))

# fewest nodes of the first 40 seeds with a proof (37 has none); `PROVE=1 python -m bench packing` proves them again
_SEEDS = (*range(37), 38, 39, 40)
_FEWEST = (
    11,
    12,
    10,
    17,
    8,
    17,
    20,
    19,
    9,
    16,
    18,
    21,
    12,
    13,
    11,
    17,
    10,
    16,
    12,
    26,
    13,
    12,
    11,
    29,
    14,
    15,
    19,
    25,
    8,
    17,
    17,
    13,
    7,
    19,
    17,
    22,
    9,
    19,
    17,
    11,
)
OPTIMA = dict(zip(_SEEDS, _FEWEST, strict=True))


def fleet(seed: int) -> list[Amounts]:
    """Return what each pod asks for: round numbers, any numbers, three shapes, or much more cpu than memory."""
    chance = random.Random(seed)
    pods: list[tuple[int, int]] = []
    for _ in range(chance.randint(40, 90)):
        match seed % 4:
            case 0:
                pod = chance.choice((250, 500, 1_000)), chance.choice((512, 1_024, 2_048, 4_096))
            case 1:
                pod = chance.randint(100, 1_500), chance.randint(200, 6_000)
            case 2:
                pod = chance.choice(THREE)
            case _:
                pod = chance.choice((650, 980, 1_310, 1_960)), chance.choice((500, 1_000))
        pods.append(pod)
    return [(*pod, 1) for pod in pods]


def optimum(pods: Sequence[Amounts], node: Amounts = NODE) -> int | None:
    """Return the fewest nodes; None where there is no proof."""
    most = packed(pods, node)
    least = max(-(-sum(pod[at] for pod in pods) // node[at]) for at in range(len(node)))
    shapes = len(set(pods))
    if least < most and shapes <= FEW_SHAPES:
        return _by_trial(Counter(pods), node)
    if least < most and shapes <= MOST_SHAPES:
        least = max(least, _by_weights(Counter(pods), node, most))
    return most if least == most else None


def packed(pods: Sequence[Amounts], node: Amounts) -> int:
    """Return the nodes of the best packing that a long search finds: the product's own, from many orders at first."""
    chance, order, best = random.Random(0), list(pods), len(pods)
    for _ in range(SHUFFLES):
        shares = tuple(chance.random() for _ in node)
        order.sort(key=lambda pod: -max(s * a / n for s, a, n in zip(shares, pod, node, strict=True)))
        best = min(best, len(_first_fit(order, node)))
    while (better := fewer_nodes(order, node, best)) is not None:
        best = len(_first_fit([order[at] for at in better], node))
    return best


def _first_fit(order: Sequence[Amounts], node: Amounts) -> list[list[int]]:
    nodes: list[list[int]] = []
    for pod in order:
        for free in nodes:
            if all(asked <= left for asked, left in zip(pod, free, strict=True)):
                break
        else:
            free = list(node)
            nodes.append(free)
        free[:] = [left - asked for left, asked in zip(free, pod, strict=True)]
    return nodes


def _by_trial(counts: Counter[Amounts], node: Amounts) -> int:
    """Return the fewest nodes by trying every full node first, with what is left of the pods remembered."""
    shapes = sorted(counts, reverse=True)

    @cache
    def fewest(left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        ways = _full(shapes, Counter(dict(zip(shapes, left, strict=True))), node)
        rests = {tuple(had - way[shape] for had, shape in zip(left, shapes, strict=True)) for way in ways}
        return 1 + min(fewest(rest) for rest in rests if rest != left)

    return fewest(tuple(counts[shape] for shape in shapes))


def _by_weights(counts: Counter[Amounts], node: Amounts, most: int) -> int:
    """Return the best lower bound that weights of the shapes prove, at most `most`; 0 for too many full nodes."""
    shapes = sorted(counts, reverse=True)  # the smallest last: a full node has no room for it
    full = [one for one, _ in zip(_full(shapes, counts, node), range(MOST_FULL + 1), strict=False)]
    if len(full) > MOST_FULL:
        return 0
    weights, best = dict.fromkeys(shapes, 1.0), 0
    for _ in range(ROUNDS):
        heaviest = max(full, key=lambda one: sum(weights[shape] * times for shape, times in one.items()))
        limit = sum(weights[shape] * times for shape, times in heaviest.items())
        best = max(best, math.ceil(sum(weights[shape] * counts[shape] for shape in shapes) / limit - SURE))
        if best >= most:
            break
        for shape, times in heaviest.items():
            weights[shape] *= math.exp(-STEP * times / counts[shape])
    return best


def _full(
    shapes: Sequence[Amounts], counts: Counter[Amounts], free: Amounts, at: int = 0
) -> Iterator[Counter[Amounts]]:
    """Yield the sets of pods that fill one node: with every number of pods of the shape `at` and of those after it that
    leaves no room for a pod of the last one.
    """
    shape = shapes[at]
    most = min(counts[shape], *(left // asked for left, asked in zip(free, shape, strict=True) if asked))
    for times in range(most + 1) if at + 1 < len(shapes) else (most,):
        rest = tuple(left - times * asked for left, asked in zip(free, shape, strict=True))
        for others in _full(shapes, counts, rest, at + 1) if at + 1 < len(shapes) else (Counter[Amounts](),):
            yield Counter({shape: times}) + others
