"""Walks of one visit of a Map or Parallel state: how many at once, how many may fail, and their outputs."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from simulation.machine.execution import TOO_MANY_FAILED, StatesError

ABORTED, FAILED, STARTED, SUCCEEDED = "Aborted", "Failed", "Started", "Succeeded"
AT_ONCE = 40  # iterations of an inline Map, whatever its MaxConcurrency says


class Branch(Protocol):
    """Walk that can be ended."""

    def abort(self) -> None: ...


Ended = Callable[[Any, StatesError | None], None]
Begin = Callable[[int, Ended], Branch]


class FanOut:
    """Walks of one visit. `begin` starts a walk by its number; `said` receives the status of each; `finished` gets all
    outputs in order.

    A walk that failed and is tolerated has no place among the outputs. With `tolerated` None the first error is the
    error of all.
    """

    def __init__(
        self,
        count: int,
        *,
        at_once: int,
        tolerated: int | None,
        begin: Begin,
        said: Callable[[int, str], None],
        finished: Callable[[Sequence[Any], StatesError | None], None],
    ) -> None:
        self._count, self._at_once, self._tolerated = count, at_once, tolerated
        self._begin, self._said, self._finished = begin, said, finished
        self._open: dict[int, Branch] = {}
        self._outputs: dict[int, Any] = {}
        self._next = self._failed = 0

    def go_on(self) -> None:
        """Start as many as may run; call `finished` when all have ended."""
        while self._next < self._count and len(self._open) < self._at_once:
            number, self._next = self._next, self._next + 1
            self._said(number, STARTED)
            self._open[number] = self._begin(number, self._listener(number))
        if not self._open:
            self._finished([self._outputs[number] for number in sorted(self._outputs)], None)

    def abort(self) -> None:
        """End the walks that run."""
        for number, walk in list(self._open.items()):
            walk.abort()
            self._said(number, ABORTED)
        self._open.clear()

    def _listener(self, number: int) -> Ended:
        def ended(output: Any, error: StatesError | None) -> None:
            del self._open[number]
            self._said(number, FAILED if error else SUCCEEDED)
            if error is None:
                self._outputs[number] = output
            elif self._is_too_much():
                self.abort()
                self._finished((), self._verdict(error))
                return
            self.go_on()

        return ended

    def _is_too_much(self) -> bool:
        self._failed += 1
        return self._failed > (self._tolerated or 0)

    def _verdict(self, error: StatesError) -> StatesError:
        if self._tolerated is None:
            return error
        return StatesError(TOO_MANY_FAILED, f"{self._failed} of {self._count} failed, {self._tolerated} may")
