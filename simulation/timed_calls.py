"""Calls to a simulated API server that take time, and end with the caller's budget as the real client's do."""

from typing import Any

from leeward.errors import ClusterUnreachableError
from leeward.ports import Kubernetes
from leeward.time_budget import TimeBudget
from simulation.faults import Injector

WITHOUT_BUDGET = 20.0  # seconds that the real client waits for one list (adapters/kubernetes/client.py)


class TimedKubernetes:
    """`ports.Kubernetes` whose answers come after `Injector.answers_after`; a time-out is an unreachable cluster.

    A write that is given up may have had its effect or not: `Injector.late_write` says which.
    """

    def __init__(self, api: Kubernetes, gate: Injector, budget: TimeBudget | None) -> None:
        self._api, self._gate, self._budget = api, gate, budget

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._api, method)

        def timed(*args: Any, **named: Any) -> Any:
            left = WITHOUT_BUDGET if self._budget is None else self._budget.left
            if left <= 0:
                raise ClusterUnreachableError(f"{method}: no time is left for it")
            needed = self._gate.answers_after(method)
            if needed <= left:
                self._gate.pass_time(needed)
                return call(*args, **named)
            self._gate.pass_time(left)
            if self._gate.late_write(method):
                call(*args, **named)
            raise ClusterUnreachableError(f"{method}: no answer within {left:.1f} s")

        return timed
