"""Free amount of one resource on each node, arranged so that "which nodes have at least that much" is one lookup."""

from bisect import bisect_left, bisect_right

EXACT_MARKS = 64  # amounts with a mask of their own; further ones share that of an amount up to a 32nd smaller
UNLIMITED = 1 << 60


class Capacity:
    """One resource. `free` by node (negative where too much was promised); `masks[i]`: nodes with `marks[i]` or more.

    The marks are the amounts that pods request, so a mask is exact for them. A change moves a node over the marks
    between its old and its new amount only.
    """

    __slots__ = ("_rank", "free", "marks", "masks")

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.masks: list[int] = []
        self.free: list[int] = []
        self._rank: list[int] = []  # by node: how many marks it reaches

    def add(self, amount: int, bit: int) -> None:
        """Add the next node."""
        rank = bisect_right(self.marks, amount)
        for at in range(rank):
            self.masks[at] |= bit
        self.free.append(amount)
        self._rank.append(rank)

    def change(self, number: int, bit: int, by: int) -> None:
        """Return an amount to a node (`by` > 0) or take it."""
        free = self.free[number] = self.free[number] + by
        rank, marks = self._rank[number], self.marks
        if by < 0:
            while rank and marks[rank - 1] > free:
                rank -= 1
                self.masks[rank] ^= bit
        else:
            while rank < len(marks) and marks[rank] <= free:
                self.masks[rank] ^= bit
                rank += 1
        self._rank[number] = rank

    def mark(self, amount: int) -> bool:
        """Ensure that an amount has a mask; return whether that is its own or the one of a slightly smaller amount."""
        rounded = amount if len(self.marks) < EXACT_MARKS else _rounded(amount)
        if amount in self.marks or rounded in self.marks:
            return amount in self.marks
        at = bisect_left(self.marks, rounded)
        self.marks.insert(at, rounded)
        self.masks.insert(at, sum(1 << number for number, free in enumerate(self.free) if free >= rounded))
        self._rank = [rank + (free >= rounded) for rank, free in zip(self._rank, self.free, strict=True)]
        return rounded == amount

    def at_least(self, amount: int) -> int:
        """Return the nodes with at least that much; where the amount has no mask of its own, with slightly less."""
        at = bisect_right(self.marks, amount) - 1
        return self.masks[at] if at >= 0 else (1 << len(self.free)) - 1


def _rounded(amount: int) -> int:
    """Run down to six binary digits: 32 steps from one power of two to the next."""
    shift = max(amount.bit_length() - 6, 0)
    return amount >> shift << shift
