"""Calls to a simulated API server that take time, and end when the real client gives up or the budget is spent."""

from collections.abc import Callable
from typing import Any

from leeward.adapters.kubernetes.api import EVENT_SECONDS, EVICTION_SECONDS
from leeward.adapters.kubernetes.client import LIST_SECONDS
from leeward.errors import ClusterUnreachableError, LeewardError
from leeward.ports.kubernetes import EvictionRefusedError, Kubernetes
from leeward.time_budget import TimeBudget
from simulation.faults import Injector

LONGEST_CALL = LIST_SECONDS  # one try of a list, or the two tries of ten seconds that any other request gets
ASKED_ONCE = {"event": EVENT_SECONDS, "evict": EVICTION_SECONDS, "delete_pod": EVICTION_SECONDS}


class TimedKubernetes:
    """`ports.kubernetes.Kubernetes` whose answers come after `Injector.answers_after`; a time-out is an unreachable
    cluster, an Event is lost.

    A write that is given up may have had its effect or not: `Injector.late_write` says which.
    """

    def __init__(self, api: Kubernetes, gate: Injector, budget: TimeBudget | None) -> None:
        self._api, self._gate, self._budget = api, gate, budget
        self._passes: Callable[[float], object] = gate.pass_time  # or notes it, for work beside other calls

    def beside(self, work: Callable[[], None]) -> Callable[[float], bool]:
        """Do the work at once; its answer comes after the time that its calls take."""
        began, taken, failures = self._gate.now(), [0.0], list[Exception]()
        passes, self._passes = self._passes, taken.append
        try:
            work()
        except (LeewardError, EvictionRefusedError) as error:
            failures.append(error)
        finally:
            self._passes = passes

        def ended(seconds: float) -> bool:
            left = max(began + sum(taken) - self._gate.now(), 0.0)
            self._passes(min(left, seconds))
            if failures and left <= seconds:
                raise failures[0]
            return left <= seconds

        return ended

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._api, method)

        def timed(*args: Any, **named: Any) -> Any:
            longest = ASKED_ONCE.get(method, LONGEST_CALL)
            left = longest if self._budget is None else min(longest, self._budget.left)
            if left <= 0:
                return _given_up(method, "no time is left for it")
            needed = self._gate.answers_after(method)
            if needed <= left:
                self._passes(needed)
                return call(*args, **named)
            self._passes(left)
            if self._gate.late_write(method):
                call(*args, **named)
            return _given_up(method, f"no answer within {left:.1f} s")

        return timed


def _given_up(method: str, why: str) -> None:
    if method != "event":
        raise ClusterUnreachableError(f"{method}: {why}")
