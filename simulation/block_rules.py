"""Rule that the instances of a Capacity Block are drained before EC2 ends them, also if the warning is lost."""

from collections.abc import Iterator

from simulation.asked import Asked, Kind
from simulation.drained import untouched
from simulation.facts import News, group_of, policy_of
from simulation.view import WorldView

TIME = 300.0  # seconds before EC2 ends the instance: nodes that are younger may not have been known to fn sync


class CapacityBlocks:
    """Blocks that were announced, each judged when EC2 begins to end its instances."""

    def __init__(self) -> None:
        self._new = News().of
        self._open: list[Asked] = []

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield instances with pods whose eviction has not begun, although no budget forbids it."""
        if not view.faultless:
            return
        self._open += [one for one in self._new("asked", view.asked) if one.kind is Kind.BLOCK]
        for asked in [one for one in self._open if one.takes is not None and view.now >= one.takes]:
            self._open.remove(asked)
            policy = policy_of(view, group_of(view, asked.instance))
            if policy is None or asked.takes is None:
                continue
            if pods := untouched(asked.instance, asked.takes - TIME, policy.drain, view):
                yield f"{asked.instance} ends with its Capacity Block before eviction of {', '.join(pods)}"
