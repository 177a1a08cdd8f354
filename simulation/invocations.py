"""Function invocations as greenlets: one that sleeps yields to the timeline and resumes when its time has come.

An invocation may have threads, as with a pool of workers: greenlets of the same process, which dies as a whole."""

import json
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from simulation.faults import Killed
from simulation.timeline import Entry, Timeline

STARTS_WITHIN = 0.01  # seconds from the call of the pool to the first line of a thread
GIVES_WAY, TURN = 0.3, 0.02  # chance that other threads come first at a port call, and seconds that they get
T = TypeVar("T")
R = TypeVar("R")


class TimedOut(Killed):
    """Time-out of the function; Lambda calls that Sandbox.Timedout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """End of an invocation: with a result, with the class name of an error, or killed."""

    result: Any = None
    error: str = ""
    cause: str = ""
    killed: bool = False

    def reported(self) -> "Ended":
        """Return the end as Lambda reports it to Step Functions: the cause of an error is JSON with a traceback, unless
        Lambda refused or lost the call.
        """
        if not self.error or self.error.startswith("Lambda."):
            return self
        trace = ["Traceback (most recent call last):"]
        body = {"errorMessage": self.cause, "errorType": self.error, "stackTrace": trace}
        return replace(self, cause=json.dumps(body))


@dataclass(slots=True, kw_only=True, eq=False)
class _Invocation:
    """One running function. `threads`: its own greenlet, then those of its workers, each with its resumption;
    `deadline` is its end, `environment` the sandbox that it runs in. `dies`: nothing resumes any more.
    """

    environment: str = ""
    threads: dict[Any, Entry | None] = field(default_factory=dict)
    deadline: Entry | None = None
    dies: bool = False


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
            del self._running[thread]
            if not ended.killed:
                self._idle[name.partition(" ")[0]].append(one.environment)
            if one.deadline:
                one.deadline.cancel()
            self._timeline.after(0, lambda: done(ended), f"{name} ended")

        self.started += 1
        thread = greenlet(body)
        one.threads[thread] = None
        self._running[thread] = one
        late = TimedOut(f"{name} timed out")
        one.deadline = self._timeline.after(timeout, lambda: self._kill(one, late), f"{name} time-out")
        thread.switch()

    def sleep(self, seconds: float) -> None:
        """Suspend the invocation while others run. Outside of one, as in a test, nothing waits."""
        thread = getcurrent()
        one = self._running.get(thread)
        if one is not None:
            one.threads[thread] = self._timeline.after(seconds, thread.switch, "an invocation goes on")
            thread.parent.switch()

    def environment(self) -> str:
        """Return the environment of the calling invocation, empty outside of one."""
        one = self._running.get(getcurrent())
        return "" if one is None else one.environment

    def side_by_side(self, do: Callable[[T], R], items: Sequence[T], workers: int, /, *, random: Random) -> Sequence[R]:
        """Call `do` for every item in threads of the calling invocation, at most `workers` at a time, as
        `leeward.isolation.in_threads` does. Outside of an invocation they are called in turn.
        """
        caller = getcurrent()
        one = self._running.get(caller)
        if one is None or len(items) <= 1:
            return [do(item) for item in items]
        pool = _Pool(do=do, todo=deque(enumerate(items)))
        for _ in range(max(1, min(workers, len(items)))):
            self._begin_thread(one, caller, pool, random)
        one.threads[caller] = None  # the last thread resumes it
        caller.parent.switch()
        return pool.answers(len(items))

    def give_way(self, random: Random) -> None:
        """Let the other threads of the invocation go on first, now and then."""
        one = self._running.get(getcurrent())
        if one is not None and len(one.threads) > 1 and random.random() < GIVES_WAY:
            self.sleep(random.uniform(0, TURN))

    def _begin_thread(self, one: _Invocation, caller: Any, pool: "_Pool", random: Random) -> None:
        def body() -> None:
            try:
                pool.work()
            except Killed as killed:
                self._die(one, thread, killed)
                return
            del self._running[thread], one.threads[thread]
            pool.threads.remove(thread)
            if not pool.threads:
                one.threads[caller] = self._timeline.after(0, caller.switch, "a pool has ended")

        thread = greenlet(body, parent=caller.parent)
        pool.threads.add(thread)
        self._running[thread] = one
        begins = random.uniform(0, STARTS_WITHIN)
        one.threads[thread] = self._timeline.after(begins, thread.switch, "a thread begins")

    def _die(self, one: _Invocation, thread: Any, killed: Killed) -> None:
        """End a thread with its process: no other thread of it goes on."""
        del self._running[thread], one.threads[thread]
        if one.dies:
            return
        one.dies = True
        for waiting in filter(None, one.threads.values()):
            waiting.cancel()
        self._timeline.after(0, lambda: self._throw(one, killed), "a process dies")

    def _environment(self, kind: str) -> str:
        idle = self._idle.setdefault(kind, [])
        if idle:
            return idle.pop()
        self._environments[kind] += 1
        return f"{kind}-{self._environments[kind]}"

    def _kill(self, one: _Invocation, killed: Killed) -> None:
        if one.dies:
            return
        one.dies = True
        for waiting in filter(None, one.threads.values()):
            waiting.cancel()
        self._throw(one, killed)

    def _throw(self, one: _Invocation, killed: Killed) -> None:
        own, *workers = one.threads
        for thread in (*workers, own):
            if thread:
                thread.throw(killed)
            else:  # it has not begun
                del self._running[thread], one.threads[thread]


@dataclass(slots=True, kw_only=True)
class _Pool:
    """Calls of one pool: `todo` are left, each with its place."""

    do: Callable[[Any], Any]
    todo: deque[tuple[int, Any]]
    done: dict[int, Any] = field(default_factory=dict)
    failed: dict[int, Exception] = field(default_factory=dict)
    threads: set[Any] = field(default_factory=set)

    def work(self) -> None:
        """Take one item after the other; an error is kept for the caller."""
        while self.todo:
            place, item = self.todo.popleft()
            try:
                self.done[place] = self.do(item)
            except Exception as error:  # noqa: BLE001  (the pool raises it in the caller)
                self.failed[place] = error

    def answers(self, number: int) -> list[Any]:
        """Return the results in the items' order. Raises the first error."""
        if self.failed:
            raise self.failed[min(self.failed)]
        return [self.done[place] for place in range(number)]


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
        skew = self._skew(self._invocations.environment())
        return self._timeline.instant() + timedelta(seconds=skew) if skew else self._timeline.instant()

    def sleep(self, seconds: float) -> None:
        """Sleep while other invocations run."""
        self._invocations.sleep(seconds)
