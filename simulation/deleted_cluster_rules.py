"""Rule for a cluster that EKS has deleted while its groups stay: nothing is terminated for it, nothing is repeated.

Reads what Auto Scaling was asked for, what others have asked for, and the executions. The rules that read nodes and
pods judge such a cluster no longer: nothing reaches them."""

from collections.abc import Iterator

from simulation.asked import AskedOf
from simulation.facts import News, is_ahead
from simulation.rule import Rule
from simulation.view import WorldView

UNDER_WAY = 120.0  # seconds: a node that was drained before is terminated
ENDS_WITHIN = 2 * 3600.0  # seconds from the deletion: by then whatever ran has ended, and nothing is tried again
JUDGED = frozenset(
    {Rule.FOREIGN_HOOK, Rule.DECREMENT, Rule.LAUNCH, Rule.EXECUTION, Rule.HEARTBEAT, Rule.LAUNCH_HOOK, Rule.MALFORMED}
    | {Rule.REST, Rule.GONE, Rule.HOOK, Rule.MESSAGE, Rule.DISRUPTION, Rule.UPGRADE, Rule.LEAK, Rule.CLUSTER_GONE}
)


class DeletedClusters:
    """Terminations and executions of a cluster since its deletion. `asked`: what others have asked for."""

    def __init__(self, asked: AskedOf) -> None:
        self._asked, self._new = asked, News().of

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield instances that we terminate although only we have asked for it."""
        for instance in self._new("terminations of a deleted cluster", view.terminations):
            gone = view.cluster_deleted
            if gone is not None and view.now - gone > UNDER_WAY and not any(self._asked.of(instance)):
                yield f"{instance} is terminated {view.now - gone:.0f} s after EKS has deleted its cluster"

    def at_the_end(self, view: WorldView) -> Iterator[str]:
        """Yield executions that run, and terminations that are tried again and again, but for a surplus (its launch has
        to be settled, and it waits ever longer), and for maintenance that is far ahead.
        """
        gone = view.cluster_deleted
        if gone is None or view.now - gone < ENDS_WITHIN:
            return
        yield from (f"execution {name} is open" for name in sorted(view.open_executions) if _runs(name, view))
        for instance in sorted(view.open_since):
            ahead = is_ahead(self._asked.taken_at(instance, view.now), view)
            if not ahead and not any(cause.startswith("surplus") for cause in view.known_causes(instance)):
                yield f"the termination of {instance} is open"


def _runs(execution: str, view: WorldView) -> bool:
    return view.now - view.started(execution) > UNDER_WAY
