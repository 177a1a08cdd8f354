"""One run of a target over a range of numbers: each number makes an input, each input is read and timed."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

from fuzz.target import Disagreement, Target
from fuzz.watchdog import TooSlow, Watchdog

MOST_OF_A_KIND = 3  # failures that are kept of one kind
MOST_REDUCTIONS = 2000
REDUCING_SECONDS = 20.0
_ROOT = Path(__file__).resolve().parents[1]
_PRODUCT, _TARGETS = _ROOT / "functions", _ROOT / "fuzz" / "targets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Input that failed. `kind`: where and how, the same for inputs that fail alike; `smallest`: it, made smaller."""

    number: int
    kind: str
    trace: str
    value: Any
    smallest: Any


@dataclass(slots=True, kw_only=True)
class Figures:
    """Number of inputs that were read, and how long that took. Times are seconds of CPU."""

    inputs: int = 0
    cpu: float = 0.0
    slowest: float = 0.0
    slowest_number: int = 0


@dataclass(slots=True, kw_only=True)
class Result(Figures):
    """Result of a run. `failed` counts all failures, `failures` holds a few of each kind."""

    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Inputs in a second of CPU."""
        return self.inputs / self.cpu if self.cpu else 0.0


def chance_of(target: str, seed: int, number: int) -> Random:
    """Return the chance of one input: it follows from these three alone, whatever was run before."""
    return Random(f"{target}:{seed}:{number}")


class Runner:
    """Run of one target. `each_second` is called about once a second with what there is so far, `on_failure` with each
    failure that is kept.
    """

    def __init__(
        self,
        target: Target[Any],
        seed: int,
        watchdog: Watchdog | None = None,
        each_second: Callable[[Result], object] | None = None,
        on_failure: Callable[[Failure], object] | None = None,
    ) -> None:
        self._target, self._seed = target, seed
        self._watchdog = watchdog or Watchdog()
        self._each_second, self._on_failure = each_second or _nothing, on_failure or _nothing

    def run(self, first: int, count: int, seconds: float | None = None) -> Result:
        """Read the inputs first, first + 1, … until `count` are read or `seconds` of wall time are over."""
        result = Result()
        began, cpu, reported = time.monotonic(), time.process_time(), time.monotonic()
        with self._watchdog.on_guard():
            for number in range(first, first + count):
                self._one(number, result)
                result.inputs += 1
                if number % 16 == 0 and (now := time.monotonic()) - reported >= 1:
                    reported, result.cpu = now, time.process_time() - cpu
                    self._each_second(result)
                    if seconds is not None and now - began >= seconds:
                        break
        result.cpu = time.process_time() - cpu
        self._each_second(result)
        return result

    def value_of(self, number: int) -> Any:
        """Return the input of this number."""
        return self._target.generate(chance_of(self._target.name, self._seed, number))

    def failure_of(self, value: Any) -> tuple[str, str, float]:
        """Read one input. Return the kind of its failure, empty if there is none, its traceback, and its CPU time."""
        kind = trace = ""
        self._watchdog.begin()
        try:
            self._target.check(value)
        except KeyboardInterrupt:
            raise
        except TooSlow as error:
            kind, trace = f"TooSlow at {_place(error.__traceback__)}", traceback.format_exc()
        except Disagreement as error:
            kind, trace = f"Disagreement: {str(error).split(':')[0][:60]}", traceback.format_exc()
        except BaseException as error:  # noqa: BLE001  (what a reader raises and does not document is a finding)
            kind, trace = f"{type(error).__name__} at {_place(error.__traceback__)}", traceback.format_exc()
        taken = self._watchdog.end()
        if not kind and taken > self._watchdog.limit:
            kind = trace = f"TooSlow: {taken:.1f} s"
        return kind, trace, taken

    def _one(self, number: int, result: Result) -> None:
        value = self.value_of(number)
        kind, trace, taken = self.failure_of(value)
        if taken > result.slowest:
            result.slowest, result.slowest_number = taken, number
        if not kind:
            return
        result.failed += 1
        result.kinds[kind] = result.kinds.get(kind, 0) + 1
        if result.kinds[kind] <= MOST_OF_A_KIND:
            smallest = self._reduced(value, kind) if result.kinds[kind] == 1 else value
            failure = Failure(number=number, kind=kind, trace=trace, value=value, smallest=smallest)
            result.failures.append(failure)
            self._on_failure(failure)

    def _reduced(self, value: Any, kind: str) -> Any:
        """Return a smaller input that fails alike, as far as that is found soon. A slow input stays as it is."""
        if kind.startswith("TooSlow"):
            return value
        until, tries = time.monotonic() + REDUCING_SECONDS, MOST_REDUCTIONS
        again = True
        while again:
            again = False
            for candidate in self._target.smaller(value):
                tries -= 1
                if tries < 0 or time.monotonic() > until:
                    return value
                if self.failure_of(candidate)[0] == kind:
                    value, again = candidate, True
                    break
        return value


def _nothing(_: object) -> None:
    """Do nothing: the caller does not watch."""


def _place(trace: TracebackType | None) -> str:
    """Return the innermost line of the product, or else of the target, that the traceback names."""
    place = "?"
    for frame in traceback.extract_tb(trace):
        path = Path(frame.filename)
        if path.is_relative_to(_PRODUCT) or (place == "?" and path.is_relative_to(_TARGETS)):
            place = f"{path.parent.name}/{path.name}:{frame.lineno}"
    return place
