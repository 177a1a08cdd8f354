"""Source of faults: `Injector` draws them by the rates of `fault_rates.Faults` and counts what it did."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from leeward.errors import AccessDeniedError, AwsUnavailableError, ClusterUnreachableError, ThrottledError
from leeward.model.times import format_instant, parse_instant
from simulation.aws.rate_limits import RateLimits
from simulation.fault_rates import Faults
from simulation.timeline import Streams, Timeline

HANGS = 3600.0  # seconds: longer than any function may run


NEVER = float("inf")
WRITES = frozenset(
    {"taint", "untaint", "cordon", "uncordon", "strip", "add_finalizer", "remove_finalizer", "label", "annotate"}
    | {"evict", "delete_pod", "delete_node", "event", "scale"}
)
OF_TABLE = frozenset({"claims", "catalog", "upgrades", "disruptions", "pauses", "maxima"})  # ports to the table


class Killed(BaseException):
    """Kill of the function's process. Not an Exception: product code cannot catch it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Period in which others fill a zone's subnet: `since` and `until` in seconds since 1970, `left` addresses in
    between.
    """

    since: float
    until: float
    left: int


class Injector:
    """Source of faults for models and ports. `sleep` lets other invocations run; `active` False ends all faults."""

    def __init__(
        self,
        faults: Faults,
        streams: Streams,
        timeline: Timeline,
        sleep: Callable[[float], None],
        said: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.faults = faults
        self.faultless = faults == Faults.none()  # asked after every event
        self.only_kubernetes_fails = faults.of_kubernetes() == faults
        self.active = True
        self.limits: RateLimits | None = None
        self.give_way: Callable[[], None] = lambda: None  # to the other threads of an invocation, at a port call
        self.caller: Callable[[], str] = lambda: ""  # execution environment of the function that calls
        self.called: set[tuple[str, str, str]] = set()  # (function, port, method)
        self.counts: Counter[str] = Counter()
        self.calls = 0
        self.api_down_until = 0.0
        self.api_hangs_until = 0.0
        self.api_slow_until = 0.0
        self.api_failed_at = 0.0  # by a fault of one call
        self.table_away_until = self.queue_away_until = self.concurrency_away_until = 0.0
        self.lists_work = False  # while the others hang: etcd is in trouble, the watch cache is not
        self.refused: dict[str, float] = {}  # workload whose evictions a webhook fails -> until when
        self.zones_down: dict[str, float] = {}
        self.crowded: dict[str, Crowd] = {}  # by zone
        self.short: dict[str, float] = {}  # zone -> when a launch there last failed for want of capacity or addresses
        self._skews: dict[str, float] = {}
        self._streams, self._timeline, self._sleep, self._said = streams, timeline, sleep, said

    def happens(self, name: str, rate: float, stream: str = "faults") -> bool:
        """Return whether a fault of this kind happens now; it is counted when it does. Each kind has a random stream of
        its own, so that leaving one kind out moves no other.
        """
        if not self.active or rate <= 0 or self._streams.stream(f"{stream}/{name}").random() >= rate:
            return False
        self.count(name)
        return True

    def count(self, name: str) -> None:
        """Count one more fault of a kind."""
        self.counts[name] += 1

    def random(self, stream: str) -> Random:
        """Return the random stream for the details of a fault."""
        return self._streams.stream(f"faults/{stream}")

    def before_call(self, port: str, method: str) -> int:
        """Pass the gate in front of every port call; returns the call's number. Raises Killed, ThrottledError."""
        self.give_way()
        self.calls += 1
        self.called.add((self.caller().rpartition("-")[0], port, method))
        number, faults = self.calls, self.faults
        if self.happens("call hangs", faults.call_hangs, "calls"):
            self._said(f"{port}.{method} never answers")
            self._sleep(HANGS)
        if self.happens("slow call", self.faults.slow_call, "calls"):
            self._sleep(self.random("slow").uniform(0.01, 2.0))
        if self._kill_here(number, after=False) or self.happens("killed before a call", faults.kill_before, "calls"):
            self._said(f"killed before {port}.{method}")
            raise Killed(f"before {port}.{method}")
        if port != "kubernetes" and self.happens("AWS throttled", self.faults.throttle_aws, "calls"):
            raise ThrottledError(f"{port}.{method}: rate exceeded")
        if port in OF_TABLE and self.table_is_away():
            raise ThrottledError(f"{port}.{method}: the table refuses every request")
        return number

    def after_call(self, port: str, method: str, number: int) -> None:
        """Pass the gate behind every port call. Raises Killed, AwsUnavailableError."""
        faults = self.faults
        if self._kill_here(number, after=True) or self.happens("killed after a call", faults.kill_after_call, "calls"):
            self._said(f"killed after {port}.{method}")
            raise Killed(f"after {port}.{method}")
        if port != "kubernetes" and self.happens("answer lost", self.faults.lose_answer, "calls"):
            raise AwsUnavailableError(f"{port}.{method}: connection reset, its effect may have come about")

    def answers_after(self, method: str) -> float:
        """Return the seconds that the Kubernetes API takes for one call of this port method."""
        now = self._timeline.now()
        if now < self.api_hangs_until and (method in WRITES or not self.lists_work):
            self.count("Kubernetes never answers")
            return NEVER
        if now < self.api_slow_until:
            self.count("Kubernetes slow")
            return self.random("slow servers").uniform(0.5, 9.5)
        return 0.0

    def late_write(self, method: str) -> bool:
        """Return whether a call that its caller gives up still has its effect."""
        return method in WRITES and self.random("late writes").random() < 0.3

    def table_is_away(self) -> bool:
        """Return whether the table refuses a call."""
        return self._is_away("table away", self.table_away_until)

    def queue_is_away(self) -> bool:
        """Return whether the queue delivers no message."""
        return self._is_away("queue away", self.queue_away_until)

    def lacks_concurrency(self) -> bool:
        """Return whether Lambda refuses a call."""
        return self._is_away("no concurrency", self.concurrency_away_until)

    def now(self) -> float:
        """Return the time of the world, in seconds."""
        return self._timeline.now()

    def pass_time(self, seconds: float) -> None:
        """Let time pass while other invocations run."""
        if seconds > 0:
            self._sleep(seconds)

    def disturb(self, verb: str) -> None:
        """Raise an error where Kubernetes has trouble: AccessDeniedError, ThrottledError, ClusterUnreachableError."""
        now = self._timeline.now()
        if now < self.api_down_until:
            raise ClusterUnreachableError(f"{verb}: connection refused")
        if self.forbids():
            self.count("Kubernetes 403")
            raise AccessDeniedError(f"{verb}: forbidden, the API server has just started")
        if self.happens("Kubernetes 429", self.faults.kubernetes_throttled, "kubernetes"):
            self.api_failed_at = now
            raise ThrottledError(f"{verb}: too many requests", retry_after=1)
        if self.happens("Kubernetes 500", self.faults.kubernetes_failed, "kubernetes"):
            self.api_failed_at = now
            raise ClusterUnreachableError(f"{verb}: 500")
        self._reset(verb, "before")

    def lose_answer(self, verb: str) -> None:
        """Break the connection after a request that writes had its effect. Raises ClusterUnreachableError."""
        self._reset(verb, "after")

    def forbids(self) -> bool:
        """Return whether the API server has just started, and knows no roles yet."""
        forbidden = self.faults.forbidden_seconds
        return self.active and 0 <= self._timeline.now() - self.api_down_until < forbidden and self.api_down_until > 0

    def webhook_fails(self, workload: str) -> bool:
        """Return whether an admission webhook fails requests about the workload's pods."""
        fails = self.active and self._timeline.now() < self.refused.get(workload, 0)
        if fails:
            self.count("webhook failed")
        return fails

    def clock_skew(self, environment: str) -> float:
        """Return the seconds by which the clock of an execution environment is off, the same for as long as
        it lives.
        """
        most = self.faults.clock_skew_seconds if self.active else 0
        if not most or not environment:
            return 0.0
        if environment not in self._skews:
            self.count("clock skewed")
            self._skews[environment] = self.random("clocks").uniform(-most, most)
        return self._skews[environment]

    def skewed(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event with the time of a service whose clock is off; it has whole seconds."""
        most = self.faults.event_skew_seconds if self.active else 0
        if not most:
            return dict(event)
        self.count("event time skewed")
        off = timedelta(seconds=round(self.random("event times").uniform(-most, most)))
        return {**event, "time": format_instant(parse_instant(event["time"]) + off)}

    def index_lag(self) -> float:
        """Return the seconds by which the table's index is behind."""
        most = self.faults.index_lag_seconds if self.active else 0
        return self.random("index").uniform(0, most) if most else 0.0

    def expiry_lag(self) -> timedelta:
        """Return how late the table deletes one item."""
        most = self.faults.expiry_lag_hours if self.active else 0
        if not most:
            return timedelta(0)
        self.count("expired late")
        return timedelta(hours=self.random("expiry").uniform(0, most))

    def no_capacity(self, zone: str) -> bool:
        """Return whether a launch in the zone fails."""
        fails = self.lacks(zone)
        if fails:
            self.short[zone] = self._timeline.now()
        return fails

    def lacks(self, zone: str) -> bool:
        """Return whether the zone lacks capacity or addresses for one launch."""
        if self.active and self._timeline.now() < self.zones_down.get(zone, 0):
            self.count("no capacity")
            return True
        if self.addresses_left(zone) == 0:
            self.count("no addresses")
            return True
        return self.happens("no capacity", self.faults.capacity_error, "capacity")

    def addresses_left(self, zone: str) -> int | None:
        """Return how many addresses others leave of the zone's subnet; None while they leave plenty."""
        crowd = self.crowded.get(zone)
        return crowd.left if self.active and crowd is not None and self._timeline.now() < crowd.until else None

    def troubled(self, within: float) -> bool:
        """Return whether the Kubernetes API has been away, hung or slow in the last `within` seconds."""
        ended = max(self.api_down_until, self.api_hangs_until, self.api_slow_until)
        return ended > 0 and self._timeline.now() < ended + within

    def stop(self) -> None:
        """End all faults: later events have to converge. Rules still know that trouble has lasted until now."""
        self.active, now = False, self._timeline.now()
        self.api_down_until = min(self.api_down_until, now)
        self.api_hangs_until = min(self.api_hangs_until, now)
        self.api_slow_until = min(self.api_slow_until, now)
        self.refused.clear()
        self.zones_down.clear()
        self.crowded.clear()

    def _is_away(self, fault: str, until: float) -> bool:
        away = self.active and self._timeline.now() < until
        if away:
            self.count(fault)
        return away

    def _reset(self, verb: str, when: str) -> None:
        if self.happens("Kubernetes reset", self.faults.kubernetes_reset / 2, f"kubernetes {when}"):
            self.api_failed_at = self._timeline.now()
            raise ClusterUnreachableError(f"{verb}: connection reset {when} its effect")

    def _kill_here(self, number: int, *, after: bool) -> bool:
        if not self.active or number != self.faults.kill_call or self.faults.kill_after is not after:
            return False
        self.count("killed after a call" if after else "killed before a call")
        return True


class FaultyPort:
    """Port with a gate before and behind each of its methods; `local` ones are no calls at all."""

    def __init__(self, port: Any, name: str, gate: Injector, local: Mapping[str, Any] | None = None) -> None:
        self._port, self._name, self._gate = port, name, gate
        vars(self).update(local or {})

    def __getattr__(self, method: str) -> Any:
        call, gate, name = getattr(self._port, method), self._gate, self._name

        def gated(*args: Any, **kwargs: Any) -> Any:
            number = gate.before_call(name, method)
            if gate.limits is not None and gate.active:
                args = tuple(list(one) if isinstance(one, Iterator) else one for one in args)  # it is counted first
                gate.limits.admit(name, method, args)
            try:
                answer = call(*args, **kwargs)
            finally:
                gate.after_call(name, method, number)
            return answer

        vars(self)[method] = gated  # found there from now on
        return gated
