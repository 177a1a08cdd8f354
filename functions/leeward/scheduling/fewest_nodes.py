"""Order of pods in which first fit needs few nodes, by their requests alone.

First fit by size takes some 5 % more nodes than the optimum, and a third more where pods have few shapes. Here a node
is filled with the pods that leave the least of what the others ask for most (the minimum bin slack heuristic of Gupta
and Ho, 1999). Above the lower bound, first fit is also repeated with the pods of the last node earlier ("squeaky
wheel"). kube-scheduler's filters are not asked: the order is a proposal, and the packer judges each placement by it."""

from collections import Counter
from collections.abc import Iterator, Sequence

Amounts = tuple[int, ...]  # by resource, the same ones for pods and nodes

MOST_PODS = 1_000  # beyond, first fit by size has to do
TRIES = 500  # of one more pod on a node
REPEATS, STEPS = 60, 150_000  # of first fit: how often, and pods x nodes of all repeats together
LOUDER = 1.2  # factor for the size of a pod that came to the last node


def fewer_nodes(pods: Sequence[Amounts], node: Amounts, than: int) -> list[int] | None:
    """Return the numbers of the pods in an order in which first fit takes fewer nodes `than` that many; None where no
    such order is known.
    """
    if len(pods) > MOST_PODS or than <= (least := lower_bound(pods, node)):
        return None
    best = _filled(pods, node)
    if len(best) > least:
        best = min([best, *_repeats(pods, node, least)], key=len)
    return [number for together in best for number in together] if len(best) < than else None


def lower_bound(pods: Sequence[Amounts], node: Amounts) -> int:
    """Return the number of nodes that the sum of the requests needs at least."""
    sums = map(sum, zip(*pods, strict=True))
    return max((-(-asked // has) for asked, has in zip(sums, node, strict=True) if has), default=0)


def _filled(pods: Sequence[Amounts], node: Amounts) -> list[list[int]]:
    """Return the pods of each node, filled one node after the other."""
    numbers: dict[Amounts, list[int]] = {}
    for number, pod in enumerate(pods):
        numbers.setdefault(pod, []).append(number)
    shapes = sorted(numbers, key=lambda shape: (-_size(shape, node), shape))
    left, nodes = Counter({shape: len(numbers[shape]) for shape in shapes}), list[list[int]]()
    while shapes:
        chosen = _Filling(shapes, left, node).best
        nodes.append([numbers[shape].pop() for shape in chosen])
        left.subtract(chosen)
        shapes = [shape for shape in shapes if left[shape]]
    return nodes


class _Filling:
    """Search, depth first and the largest pods first, for the pods of one node. `best`: their shapes, with a pod of the
    largest shape.
    """

    def __init__(self, shapes: Sequence[Amounts], left: Counter[Amounts], node: Amounts) -> None:
        self._shapes, self._left, self._node = shapes, left.copy(), node
        sums = [sum(left[shape] * shape[at] for shape in shapes) for at in range(len(node))]
        # a part that is left free costs what the pods ask for of it, all of them together
        self._weights = [asked / has**3 if has else 0.0 for asked, has in zip(sums, node, strict=True)]
        self._tries, self._slack, self._chosen = TRIES, float("inf"), list[Amounts]()
        self.best: list[Amounts] = [shapes[0]]
        self._take(0, node)

    def _look(self, at: int, free: Amounts) -> None:
        """Look at the pods that are chosen, then at those with one more, of the shape `at` or a smaller one."""
        slack = sum(weight * part * part for weight, part in zip(self._weights, free, strict=True))
        if slack < self._slack:
            self._slack, self.best = slack, self._chosen.copy()
        for following in range(at, len(self._shapes)):
            if self._tries <= 0:
                return
            self._take(following, free)

    def _take(self, at: int, free: Amounts) -> None:
        self._tries -= 1
        shape = self._shapes[at]
        rest = tuple(map(int.__sub__, free, shape))
        if self._left[shape] and min(rest) >= 0:
            self._left[shape] -= 1
            self._chosen.append(shape)
            self._look(at, rest)
            self._chosen.pop()
            self._left[shape] += 1


def _repeats(pods: Sequence[Amounts], node: Amounts, least: int) -> Iterator[list[list[int]]]:
    """Yield the results of first fit, each with the pods of the last node before it moved up; none after the lower
    bound is reached.
    """
    sizes, steps = [_size(pod, node) for pod in pods], STEPS
    for _ in range(REPEATS):
        order = sorted(range(len(pods)), key=lambda number: (-sizes[number], pods[number]))
        nodes = _first_fit(order, pods, node)
        yield nodes
        steps -= len(pods) * len(nodes)
        if len(nodes) <= least or steps <= 0:
            return
        for number in nodes[-1]:
            sizes[number] *= LOUDER


def _first_fit(order: Sequence[int], pods: Sequence[Amounts], node: Amounts) -> list[list[int]]:
    free: list[Amounts] = []
    nodes: list[list[int]] = []
    for number in order:
        pod = pods[number]
        for at, has in enumerate(free):
            rest = tuple(map(int.__sub__, has, pod))
            if min(rest) >= 0:
                free[at] = rest
                nodes[at].append(number)
                break
        else:
            free.append(tuple(map(int.__sub__, node, pod)))
            nodes.append([number])
    return nodes


def _size(pod: Amounts, node: Amounts) -> float:
    """Return the sum of the shares of a node."""
    return sum(asked / has for asked, has in zip(pod, node, strict=True) if has)
