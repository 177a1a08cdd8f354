"""What goes wrong and how often. `Faults` says the rates, `Injector` throws the dice and counts what it did."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from leeward.errors import AwsUnavailableError, ClusterUnreachableError, ThrottledError
from simulation.timeline import Streams, Timeline


class Killed(BaseException):
    """The function's process was killed. Not an Exception: product code cannot catch it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates are chances of one event, one call or one instance; `per_hour` ones are what they say.

    `kill_call` kills at the n-th port call of the whole run (from 1), once; `kill_after` after its effect.
    """

    duplicate_event: float = 0
    delay_event: float = 0  # by up to three minutes
    reorder_event: float = 0  # by up to five seconds
    lose_lifecycle_event: float = 0
    kill_before: float = 0
    kill_after_call: float = 0
    slow_call: float = 0  # other invocations get their turn in between
    throttle_aws: float = 0
    lose_answer: float = 0  # the call has its effect, its answer is lost
    kubernetes_throttled: float = 0
    kubernetes_failed: float = 0
    stale_seconds: float = 0  # how old a list of nodes may be
    capacity_error: float = 0  # of one launch
    zone_outages_per_hour: float = 0  # a zone without capacity for some minutes
    never_joins: float = 0
    api_outages_per_hour: float = 0  # the Kubernetes API does not answer for up to five minutes
    stops_per_hour: float = 0  # an operator stops an execution
    kill_call: int | None = None
    kill_after: bool = False

    @classmethod
    def none(cls) -> "Faults":
        """Everything works."""
        return cls()

    @classmethod
    def all(cls) -> "Faults":
        """Every kind, often enough that some hours see each."""
        return cls(
            duplicate_event=0.08,
            delay_event=0.04,
            reorder_event=0.2,
            lose_lifecycle_event=0.05,
            kill_before=0.003,
            kill_after_call=0.003,
            slow_call=0.05,
            throttle_aws=0.01,
            lose_answer=0.005,
            kubernetes_throttled=0.01,
            kubernetes_failed=0.01,
            stale_seconds=5,
            capacity_error=0.05,
            zone_outages_per_hour=0.3,
            never_joins=0.03,
            api_outages_per_hour=0.3,
            stops_per_hour=1,
        )

    def without(self, name: str) -> "Faults":
        """The same without one kind: for making a failing story shorter."""
        nothing: dict[str, Any] = {name: getattr(Faults(), name)}
        return replace(self, **nothing)


class Injector:
    """Throws the dice for models and ports. `sleep` lets other invocations run; `active` False ends all faults."""

    def __init__(
        self,
        faults: Faults,
        streams: Streams,
        timeline: Timeline,
        sleep: Callable[[float], None],
        said: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.faults = faults
        self.active = True
        self.counts: Counter[str] = Counter()
        self.calls = 0
        self.api_down_until = 0.0
        self.zones_down: dict[str, float] = {}
        self._streams, self._timeline, self._sleep, self._said = streams, timeline, sleep, said

    def happens(self, name: str, rate: float, stream: str = "faults") -> bool:
        """Whether a fault of this kind happens now; it is counted when it does."""
        if not self.active or rate <= 0 or self._streams.stream(stream).random() >= rate:
            return False
        self.count(name)
        return True

    def count(self, name: str) -> None:
        """One more of a kind."""
        self.counts[name] += 1

    def random(self, stream: str) -> Random:
        """For what a fault looks like."""
        return self._streams.stream(f"faults/{stream}")

    def before_call(self, port: str, method: str) -> int:
        """The gate in front of every port call; answers the call's number. Raises Killed, ThrottledError."""
        self.calls += 1
        number, faults = self.calls, self.faults
        if self.happens("slow call", self.faults.slow_call, "calls"):
            self._sleep(self.random("slow").uniform(0.01, 2.0))
        if self._kill_here(number, after=False) or self.happens("killed before a call", faults.kill_before, "calls"):
            self._said(f"killed before {port}.{method}")
            raise Killed(f"before {port}.{method}")
        if port != "kubernetes" and self.happens("AWS throttled", self.faults.throttle_aws, "calls"):
            raise ThrottledError(f"{port}.{method}: rate exceeded")
        return number

    def after_call(self, port: str, method: str, number: int) -> None:
        """The gate behind it. Raises Killed, AwsUnavailableError."""
        faults = self.faults
        if self._kill_here(number, after=True) or self.happens("killed after a call", faults.kill_after_call, "calls"):
            self._said(f"killed after {port}.{method}")
            raise Killed(f"after {port}.{method}")
        if port != "kubernetes" and self.happens("answer lost", self.faults.lose_answer, "calls"):
            raise AwsUnavailableError(f"{port}.{method}: connection reset, its effect may have come about")

    def disturb(self, verb: str) -> None:
        """Kubernetes' own trouble. Raises ThrottledError, ClusterUnreachableError."""
        if self._timeline.now() < self.api_down_until:
            raise ClusterUnreachableError(f"{verb}: connection refused")
        if self.happens("Kubernetes 429", self.faults.kubernetes_throttled, "kubernetes"):
            raise ThrottledError(f"{verb}: too many requests", retry_after=1)
        if self.happens("Kubernetes 500 or reset", self.faults.kubernetes_failed, "kubernetes"):
            raise ClusterUnreachableError(f"{verb}: 500 or connection reset")

    def no_capacity(self, zone: str) -> bool:
        """Whether a launch in the zone fails."""
        if self.active and self._timeline.now() < self.zones_down.get(zone, 0):
            self.count("no capacity")
            return True
        return self.happens("no capacity", self.faults.capacity_error, "capacity")

    def stop(self) -> None:
        """Faults are over: what comes now has to converge."""
        self.active = False
        self.api_down_until = 0.0
        self.zones_down.clear()

    def _kill_here(self, number: int, *, after: bool) -> bool:
        if not self.active or number != self.faults.kill_call or self.faults.kill_after is not after:
            return False
        self.count("killed after a call" if after else "killed before a call")
        return True


class FaultyPort:
    """Any port with a gate before and behind each of its methods; `local` ones are no calls at all."""

    def __init__(self, port: Any, name: str, gate: Injector, local: Mapping[str, Any] | None = None) -> None:
        self._port, self._name, self._gate = port, name, gate
        self._local = dict(local or {})

    def __getattr__(self, method: str) -> Any:
        if method in self._local:
            return self._local[method]
        call, gate, name = getattr(self._port, method), self._gate, self._name

        def gated(*args: Any, **kwargs: Any) -> Any:
            number = gate.before_call(name, method)
            try:
                answer = call(*args, **kwargs)
            finally:
                gate.after_call(name, method, number)
            return answer

        self._local[method] = gated
        return gated
