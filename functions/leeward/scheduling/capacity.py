"""How much of one resource each node has left, arranged so that "who has at least that much" is one look-up."""

from bisect import bisect_left, bisect_right

MOST_MARKS = (
    64  # amounts that have a mask of their own; a fleet with more distinct requests checks the rest node by node
)
UNLIMITED = 1 << 60


class Capacity:
    """One resource. `free` by node (negative where too much was promised); `masks[i]`: nodes with `marks[i]` or more.

    The marks are the amounts that pods ask for, so a mask is exact for them. A change moves a node over the marks
    between its old and its new amount only.
    """

    __slots__ = ("_rank", "free", "marks", "masks")

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.masks: list[int] = []
        self.free: list[int] = []
        self._rank: list[int] = []  # by node: how many marks it reaches

    def add(self, amount: int, bit: int) -> None:
        """The next node."""
        rank = bisect_right(self.marks, amount)
        for at in range(rank):
            self.masks[at] |= bit
        self.free.append(amount)
        self._rank.append(rank)

    def change(self, number: int, bit: int, by: int) -> None:
        """Give back (`by` > 0) or take."""
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
        """Give an amount a mask of its own while there is room; whether it has one."""
        at = bisect_left(self.marks, amount)
        if at < len(self.marks) and self.marks[at] == amount:
            return True
        if len(self.marks) >= MOST_MARKS:
            return False
        self.marks.insert(at, amount)
        self.masks.insert(at, sum(1 << number for number, free in enumerate(self.free) if free >= amount))
        self._rank = [rank + (free >= amount) for rank, free in zip(self._rank, self.free, strict=True)]
        return True

    def at_least(self, amount: int) -> int:
        """Nodes with at least that much; where the amount has no mask, those of the next smaller mark."""
        at = bisect_right(self.marks, amount) - 1
        return self.masks[at] if at >= 0 else (1 << len(self.free)) - 1
