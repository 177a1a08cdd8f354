"""Trips through the product's source: the files and functions that its main stories enter, and the lines that they run.

`make measure` prints them: a change shows what it adds to read. Each trip is what the functions did in a simulated
world, or what the command line did with a written folder; every call of its kind counts, over all packages."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from bench import calls_worlds, folder, raw_cluster
from leeward.cli.main import main as leeward
from simulation import functions

PRODUCT = str(Path(__file__).parent.parent / "functions" / "leeward")
NODES = 6  # of the worlds and the folder


@dataclass(slots=True)
class Trip:
    """Source that one story runs. `order`: files as the story enters its functions for the first time."""

    codes: set[CodeType] = field(default_factory=set)
    lines: set[tuple[str, int]] = field(default_factory=set)
    order: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        """Number of files entered."""
        return len({code.co_filename for code in self.codes})

    @property
    def returns(self) -> int:
        """Times that a reader comes back to a file that was left before, reading each function where it is entered."""
        changes = [name for before, name in zip(["", *self.order], self.order, strict=False) if name != before]
        return len(changes) - len(set(changes))

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what the product runs meanwhile."""
        before = sys.gettrace()
        sys.settrace(self._entered)
        try:
            yield
        finally:
            sys.settrace(before)

    def _entered(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PRODUCT) or code.co_name == "<module>":
            return None
        if code not in self.codes:
            self.codes.add(code)
            self.order.append(code.co_filename)
        return self._passed

    def _passed(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._passed


def trips() -> dict[str, Trip]:
    """Return the trips by name."""
    walked: dict[str, Trip] = {}
    with _watched(walked):
        calls_worlds.spot_warning()
        calls_worlds.disruption(NODES)
        calls_worlds.upgrade(NODES, "34%")
    named = {story: walked[kind] for story, kind in STORIES.items()}
    with tempfile.TemporaryDirectory() as place:
        folder.write(Path(place), NODES, NODES * 5)
        for command in (["plan"], ["drain", raw_cluster.node_name(0)]):
            given = [*command, "--snapshot", place, "--now", folder.NOW]
            named[f"leeward {command[0]}"] = _of_command(given)
    return named


STORIES = {
    "spot message": "interruption",
    "drain": "drain drain",
    "replacement": "drain replace",
    "planner": "disruption-planner",
    "upgrade turn": "upgrade drain",
    "pre-flight": "upgrade check",
    "minute reconciler": "reconciler",
}
"""Names for readers of functions and steps."""


@contextmanager
def _watched(walked: dict[str, Trip]) -> Iterator[None]:
    """Record each call of a function or step meanwhile, by its name."""
    originals = {name: getattr(functions, name) for name in ("interruption", "step", "decide", "reconcile")}
    names = {"interruption": "interruption", "decide": "disruption-planner", "reconcile": "reconciler"}

    def recording(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*given: Any, **more: Any) -> Any:
            kind = names.get(name) or f"{given[0]} {given[1]['step']}"
            with walked.setdefault(kind, Trip()).recorded():
                return call(*given, **more)

        return recorded

    try:
        for name, call in originals.items():
            setattr(functions, name, recording(name, call))
        yield
    finally:
        for name, call in originals.items():
            setattr(functions, name, call)


def _of_command(arguments: Sequence[str]) -> Trip:
    trip = Trip()
    with trip.recorded(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        leeward(arguments)
    return trip


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the name of each trip and its figures."""
    for name, trip in trips().items():
        yield name, f"{trip.files} files, {len(trip.codes)} functions, {len(trip.lines)} lines, {trip.returns} returns"
