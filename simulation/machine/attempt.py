"""One try of a task: it ends once, by its answer, by a time-out or with its execution; a later answer is late."""

from collections.abc import Callable
from typing import Any

from simulation.machine.execution import HEARTBEAT, RUNTIME, TIMEOUT, StatesError
from simulation.timeline import Entry, Timeline

Finished = Callable[[Any, StatesError | None], None]


def _nothing() -> None:
    pass


class Attempt:
    """One attempt of a task. `on_cancel` ends what the task has begun, as far as Step Functions does that."""

    def __init__(self, timeline: Timeline, state: str, token: str, finished: Finished) -> None:
        self._timeline, self._finished = timeline, finished
        self.state, self.token = state, token
        self.over = False
        self.on_cancel: Callable[[], object] = _nothing
        self._answered = False
        self._patience: float | None = None
        self._limit: Entry | None = None
        self._heart: Entry | None = None

    def limit(self, seconds: float | None, heartbeat: float | None) -> None:
        """Set TimeoutSeconds and HeartbeatSeconds, both counted from now. Raises StatesError for one below 1."""
        if any(limit is not None and limit < 1 for limit in (seconds, heartbeat)):
            raise StatesError(RUNTIME, f"{self.state}: TimeoutSeconds {seconds}, HeartbeatSeconds {heartbeat}")
        if seconds is not None:
            self._limit = self._timeline.after(seconds, lambda: self._time_out(TIMEOUT), "task time-out")
        self._patience = heartbeat
        self.beat()

    def beat(self) -> bool:
        """Run SendTaskHeartbeat: the heartbeat time-out begins again. False when the attempt has ended or has its
        answer.
        """
        if self.over or self._answered:
            return False
        if self._heart is not None:
            self._heart.cancel()
        if self._patience is not None:
            self._heart = self._timeline.after(self._patience, lambda: self._time_out(HEARTBEAT), "missed heartbeat")
        return True

    def succeed(self, result: Any) -> None:
        """Finish with the task's result; without effect when the attempt is over."""
        self._finish(result, None)

    def fail(self, error: StatesError) -> None:
        """Finish with the task's error; without effect when the attempt is over."""
        self._finish(None, error)

    def answer(self, result: Any, error: StatesError | None) -> bool:
        """Accept SendTaskSuccess or SendTaskFailure: an accepted answer counts, even against a time-out of the same
        moment.

        False when the attempt has ended or has its answer. The walk continues outside of the sender's call.
        """
        if self.over or self._answered:
            return False
        self._answered = True
        self._stop_timers()
        self._timeline.after(0, lambda: self._finish(result, error), "task answered")
        return True

    def cancel(self) -> None:
        """End the attempt: its caller waits no more."""
        if not self.over:
            self._close()
            self.on_cancel()

    def _time_out(self, error: str) -> None:
        if not self.over:
            self.on_cancel()
            self._finish(None, StatesError(error))

    def _finish(self, result: Any, error: StatesError | None) -> None:
        if not self.over:
            self._close()
            self._finished(result, error)

    def _close(self) -> None:
        self.over = True
        self._stop_timers()

    def _stop_timers(self) -> None:
        for timer in (self._limit, self._heart):
            if timer is not None:
                timer.cancel()
