"""Watch of the upgrade: the output of `leeward upgrade status`, and the budget that blocks for a while."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from leeward.adapters.wiring import command_line_ports
from leeward.blockers.blocker import Blocker
from leeward.cli.output import Output, View
from leeward.cli.tables import render
from leeward.cli.upgrade.status import group_status
from leeward.cli.upgrade.tables import status_report
from leeward.errors import LeewardError
from leeward.ports import Ports
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.status import Phase, Status
from local.demo import ledger
from local.demo_upgrade import command, scene
from local.stack import LocalStack, LocalStackError

PLAY_SECONDS = 900  # limits only the wait for a run that does not end
LOOK_SECONDS = 1.0
BLOCKED_SECONDS = 6  # seconds for which the drain that a budget holds is shown before `orders` gets its third replica
KILLED_WITHIN = 3.0  # seconds for each node, after the start, within which `--kill-at` chooses
ENDS = frozenset({Phase.DONE, Phase.FAILED, Phase.ABORTED})


@dataclass(kw_only=True)
class Watched:
    """Observations. `deeds`: the users' actions; `named`: the blocker that the live status showed for the blocking
    budget, since `blocked`; `kill_after`: when the execution is still to be stopped, in seconds after the start.
    `estimates`: (seconds after the start, seconds left) at the first observation of each phase.
    """

    began: datetime
    deeds: list[tuple[datetime, str]] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    estimates: list[tuple[float, int]] = field(default_factory=list)
    named: Blocker | None = None
    blocked: float | None = None
    narrowed: bool = False
    freed: bool = False
    kill_after: float | None = None
    ended: Phase | None = None
    seconds: float = 0.0


@contextmanager
def acting_on(stack: LocalStack) -> Iterator[Ports]:
    """Give the ports of the command line on the stack; until the end of the block this process has the stack's
    environment.
    """
    before = dict(os.environ)
    os.environ.update(stack.environment())
    try:
        yield command_line_ports(stack.cluster, stack.region)
    finally:
        os.environ.clear()
        os.environ.update(before)


def watch(stack: LocalStack, console: Console, execution: str, *, cast: scene.Cast, seed: int | None = None) -> Watched:
    """Read the status each second or two until the upgrade has ended. With a seed the execution is stopped at a moment
    that the seed decides and started again. Raises LocalStackError when it does not end in time.
    """
    began = time.monotonic()
    latest = KILLED_WITHIN * cast.size
    seen = Watched(began=datetime.now(UTC), kill_after=None if seed is None else Random(seed).uniform(1.0, latest))
    with acting_on(stack) as ports, _shown(console) as show:
        while seen.ended is None:
            seen.seconds = time.monotonic() - began
            if seen.seconds > PLAY_SECONDS:
                raise LocalStackError(f"the upgrade has not ended within {PLAY_SECONDS} s: {_states(stack)}")
            status = _look(stack, ports)
            if status is not None:
                _note(stack, seen, status)
                show(status)
                for deed in _deeds(stack, seen, status) if cast.in_the_way else ():
                    seen.deeds.append((datetime.now(UTC), deed))
                    console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] [bold]{deed}[/]")
            if seen.phases and seen.kill_after is not None and seen.seconds >= seen.kill_after:
                seen.deeds.append((datetime.now(UTC), _kill(stack, seen, execution)))
                console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] [bold]{seen.deeds[-1][1]}[/]")
            time.sleep(LOOK_SECONDS)
    return seen


def _look(stack: LocalStack, ports: Ports) -> Status | None:
    """Return the status; None before the target is known, or while a service does not answer: the next read repeats
    it.
    """
    try:
        record = ports.upgrades.read(scene.GROUP)
        return group_status(scene.GROUP, stack.cluster, ports) if record is not None and record.prepared else None
    except LeewardError:
        return None


def _note(stack: LocalStack, seen: Watched, status: Status) -> None:
    if not seen.phases or seen.phases[-1] is not status.phase:
        seen.phases.append(status.phase)
        if status.eta is not None:
            seen.estimates.append((seen.seconds, seconds_left(status)))
    if status.phase in ENDS and scene.running(stack) == 0:
        seen.ended = status.phase
    held = next((one for one in status.blockers if one.object.endswith(scene.BLOCKING)), None)
    if held is not None and seen.blocked is None:
        seen.named, seen.blocked = held, seen.seconds


def _deeds(stack: LocalStack, seen: Watched, status: Status) -> Iterator[str]:
    """Carry out the users' actions: too few replicas once the first new node is launched, enough of them after a while
    of waiting.
    """
    if not seen.narrowed and status.new and status.phase not in ENDS:
        seen.narrowed = True
        scene.scale(stack, scene.TOO_FEW)
        yield f"an operator scales {scene.BLOCKING} to {scene.TOO_FEW} replicas, which its budget wants: none may go"
    if not seen.freed and seen.blocked is not None and seen.seconds - seen.blocked >= BLOCKED_SECONDS:
        seen.freed = True
        scene.scale(stack, scene.ENOUGH)
        yield f"an operator scales {scene.BLOCKING} to {scene.ENOUGH}: one may go as soon as the third is Ready"


def _kill(stack: LocalStack, seen: Watched, execution: str) -> str:
    """Stop the execution where it is, and start the upgrade again: it knows its target. Before the nodes are cordoned a
    start repeats pre-flight, and `orders` may have too few replicas then: that blocker is known and overridden.
    """
    seen.kill_after = None
    machine = f"arn:aws:states:{stack.region}:{stack.account}:execution:leeward-node-group-upgrade:{execution}"
    stack.client("stepfunctions").stop_execution(executionArn=machine, cause="killed by the demo")
    again = command.start(stack, "--override", Code.PDB_NEVER_ALLOWS.value).document
    asked = f"upgrade start --override {Code.PDB_NEVER_ALLOWS.value}"
    return f"killed {execution} after {seen.seconds:.1f} s; {asked}: {again['said']} ({again['execution']})"


def _states(stack: LocalStack) -> str:
    return ", ".join(f"{one.node} {one.phase} {'; '.join(one.blocked_by)}" for one in ledger.terminations(stack))


def seconds_left(status: Status) -> int:
    """Return the seconds left by Leeward's estimate, which does not include the local stack's short terminations."""
    return max(int((status.eta - datetime.now(UTC)).total_seconds()), 0) if status.eta is not None else 0


class _Lines:
    """Output without a terminal: one line whenever something has changed."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""

    def __call__(self, status: Status) -> None:
        line = line_of(status)
        if line != self._last:
            left = f", about {seconds_left(status)} s left" if status.eta is not None else ""
            self._console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {line}{left}")
            self._last = line


def line_of(status: Status) -> str:
    """Return the phase, counts, and the budgets that hold the drains."""
    held = "".join(f"; {ledger.short(one.node)}: {one.pod} held by {one.object}" for one in status.blockers)
    return f"{status.phase.value}: {status.new} new, {status.old} old, {status.draining} draining{held}"


@contextmanager
def _shown(console: Console) -> Iterator["_Lines | _Table"]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield _Table(live)


class _Table:
    """Output on a terminal: the command's own table, and the estimated time left."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def __call__(self, status: Status) -> None:
        left = f"about {seconds_left(status)} s left" if status.eta is not None else "no estimate"
        shown = Text("\n".join(render(status_report(scene.GROUP, status), View(Output.TABLE))))
        self._live.update(Group(shown, f"{left}, seen at {time.strftime('%H:%M:%S')}"))
