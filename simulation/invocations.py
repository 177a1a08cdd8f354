"""Function invocations as greenlets: one that sleeps yields to the timeline and resumes when its time has come."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from simulation.faults import Killed
from simulation.timeline import Entry, Timeline


class TimedOut(Killed):
    """Time-out of the function; Lambda calls that Sandbox.Timedout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """End of an invocation: with a result, with the class name of an error, or killed."""

    result: Any = None
    error: str = ""
    cause: str = ""
    killed: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class _Invocation:
    """One running function. `waiting` is its resumption, `deadline` its end, `environment` the sandbox that
    it runs in.
    """

    environment: str = ""
    thread: Any = None
    waiting: Entry | None = None
    deadline: Entry | None = None


class Invocations:
    """Running functions, each in an execution environment: an idle one of its kind (the first word of its name), else a
    new one. A killed function takes its environment along.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._idle: dict[str, list[str]] = {}
        self._environments: Counter[str] = Counter()
        self._timeline = timeline
        self._running: dict[Any, _Invocation] = {}
        self.started = 0

    def start(self, function: Callable[[], Any], done: Callable[[Ended], None], *, name: str, timeout: float) -> None:
        """Run the function now; `done` is called when it has ended. After `timeout` seconds its process is killed."""
        one = _Invocation(environment=self._environment(name.partition(" ")[0]))

        def body() -> None:
            ended = _run(function)
            del self._running[one.thread]
            if not ended.killed:
                self._idle[name.partition(" ")[0]].append(one.environment)
            if one.deadline:
                one.deadline.cancel()
            self._timeline.after(0, lambda: done(ended), f"{name} ended")

        self.started += 1
        one.thread = greenlet(body)
        self._running[one.thread] = one
        one.deadline = self._timeline.after(timeout, lambda: self._time_out(one, name), f"{name} time-out")
        one.thread.switch()

    def sleep(self, seconds: float) -> None:
        """Suspend the invocation while others run. Outside of one, as in a test, nothing waits."""
        one = self._running.get(getcurrent())
        if one is not None:
            one.waiting = self._timeline.after(seconds, one.thread.switch, "an invocation goes on")
            one.thread.parent.switch()

    def environment(self) -> str:
        """Return the environment of the calling invocation, empty outside of one."""
        one = self._running.get(getcurrent())
        return "" if one is None else one.environment

    def _environment(self, kind: str) -> str:
        idle = self._idle.setdefault(kind, [])
        if idle:
            return idle.pop()
        self._environments[kind] += 1
        return f"{kind}-{self._environments[kind]}"

    def _time_out(self, one: _Invocation, name: str) -> None:
        if one.waiting:
            one.waiting.cancel()
        one.thread.throw(TimedOut(f"{name} timed out"))


def _run(function: Callable[[], Any]) -> Ended:
    try:
        return Ended(result=function())
    except TimedOut as late:
        return Ended(error="Sandbox.Timedout", cause=str(late), killed=True)
    except Killed as killed:
        return Ended(error="Lambda.Unknown", cause=str(killed), killed=True)
    except Exception as error:  # noqa: BLE001  (Lambda answers with whatever the function raised)
        return Ended(error=type(error).__name__, cause=str(error))


class SimClock:
    """`ports.clock.Clock`. `skew` returns how far the clock of an environment is off, in seconds."""

    def __init__(
        self, timeline: Timeline, invocations: Invocations, skew: Callable[[str], float] = lambda _: 0.0
    ) -> None:
        self._timeline, self._invocations, self._skew = timeline, invocations, skew

    def now(self) -> datetime:
        """Return the present in UTC, as the environment of the calling invocation has it."""
        return self._timeline.instant() + timedelta(seconds=self._skew(self._invocations.environment()))

    def sleep(self, seconds: float) -> None:
        """Sleep while other invocations run."""
        self._invocations.sleep(seconds)
