"""Watch of the upgrade: shows `leeward upgrade status`, and lets a PodDisruptionBudget block the drains for a while."""

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
from leeward.upgrade.status import UpgradePhase, UpgradeStatus
from local.demo import ledger
from local.demo_upgrade import command, scene
from local.stack import LocalStack, LocalStackError

TIMEOUT_SECONDS = 900  # limits only the wait for an upgrade that does not end
POLL_SECONDS = 1.0
BLOCKED_SECONDS = 6  # how long the blocked drain is shown before `orders` gets its third replica
KILL_SECONDS_PER_NODE = 3.0  # `--kill-at` chooses a moment between the start and so many seconds for each node after it
ENDS = frozenset({UpgradePhase.DONE, UpgradePhase.FAILED, UpgradePhase.ABORTED})


@dataclass(kw_only=True)
class Watched:
    """Observations of one upgrade. All times but `began` and those of `actions` are in seconds after the start.

    `actions`: (time, sentence) of each action of the users; `phases`: in the order in which they were seen;
    `estimates`: (time, estimated seconds left) at the first observation of each phase; `blocker`: the status's entry
    for the blocking budget, first seen at `blocked_at`; `scaled_down`, `scaled_up`: whether the workload of that budget
    has had too few replicas, and then enough; `kill_at`: when the execution is to be stopped, None without a seed and
    after it is done.
    """

    began: datetime
    actions: list[tuple[datetime, str]] = field(default_factory=list)
    phases: list[UpgradePhase] = field(default_factory=list)
    estimates: list[tuple[float, int]] = field(default_factory=list)
    blocker: Blocker | None = None
    blocked_at: float | None = None
    scaled_down: bool = False
    scaled_up: bool = False
    kill_at: float | None = None
    ended: UpgradePhase | None = None
    seconds: float = 0.0


@contextmanager
def acting_on(stack: LocalStack) -> Iterator[Ports]:
    """Yield the ports of the command line on the stack; within the block, this process has the stack's environment."""
    before = dict(os.environ)
    os.environ.update(stack.environment())
    try:
        yield command_line_ports(stack.cluster, stack.region)
    finally:
        os.environ.clear()
        os.environ.update(before)


def watch(stack: LocalStack, console: Console, execution: str, *, cast: scene.Cast, seed: int | None = None) -> Watched:
    """Read the status every second or two until the upgrade has ended. With a seed, the execution is stopped at a
    moment that the seed decides, and the upgrade is started again. Raises LocalStackError when it does not end in time.
    """
    began = time.monotonic()
    latest = KILL_SECONDS_PER_NODE * cast.size
    seen = Watched(began=datetime.now(UTC), kill_at=None if seed is None else Random(seed).uniform(1.0, latest))
    with acting_on(stack) as ports, _shown(console) as show:
        while seen.ended is None:
            seen.seconds = time.monotonic() - began
            if seen.seconds > TIMEOUT_SECONDS:
                raise LocalStackError(f"the upgrade has not ended within {TIMEOUT_SECONDS} s: {_states(stack)}")
            status = _read_status(stack, ports)
            if status is not None:
                _note(stack, seen, status)
                show(status)
                for action in _users_actions(stack, seen, status) if cast.in_the_way else ():
                    _report(console, seen, action)
            if seen.phases and seen.kill_at is not None and seen.seconds >= seen.kill_at:
                _report(console, seen, _kill(stack, seen, execution))
            time.sleep(POLL_SECONDS)
    return seen


def _report(console: Console, seen: Watched, action: str) -> None:
    seen.actions.append((datetime.now(UTC), action))
    console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] [bold]{action}[/]")


def _read_status(stack: LocalStack, ports: Ports) -> UpgradeStatus | None:
    """Return the status; None before the target is known or when a service does not answer: the next poll retries."""
    try:
        record = ports.upgrades.read(scene.GROUP)
        return group_status(scene.GROUP, stack.cluster, ports) if record is not None and record.prepared else None
    except LeewardError:
        return None


def _note(stack: LocalStack, seen: Watched, status: UpgradeStatus) -> None:
    if not seen.phases or seen.phases[-1] is not status.phase:
        seen.phases.append(status.phase)
        if status.eta is not None:
            seen.estimates.append((seen.seconds, seconds_left(status)))
    if status.phase in ENDS and scene.running(stack) == 0:
        seen.ended = status.phase
    blocker = next((entry for entry in status.blockers if entry.object.endswith(scene.BLOCKING)), None)
    if blocker is not None and seen.blocked_at is None:
        seen.blocker, seen.blocked_at = blocker, seen.seconds


def _users_actions(stack: LocalStack, seen: Watched, status: UpgradeStatus) -> Iterator[str]:
    """Carry out the users' actions and yield a sentence for each: too few replicas once the first new node is launched,
    enough of them after the drain has been blocked for a while.
    """
    if not seen.scaled_down and status.new and status.phase not in ENDS:
        seen.scaled_down = True
        scene.scale(stack, scene.TOO_FEW)
        yield f"an operator scales {scene.BLOCKING} to {scene.TOO_FEW} replicas: its budget now allows no eviction"
    if not seen.scaled_up and seen.blocked_at is not None and seen.seconds - seen.blocked_at >= BLOCKED_SECONDS:
        seen.scaled_up = True
        scene.scale(stack, scene.ENOUGH)
        yield f"an operator scales {scene.BLOCKING} to {scene.ENOUGH}: one may be evicted once the third is Ready"


def _kill(stack: LocalStack, seen: Watched, execution: str) -> str:
    """Stop the execution in whatever state it is, and start the upgrade again, which knows its target. Until the nodes
    are cordoned, a start repeats pre-flight. `orders` may have too few replicas by then: that blocker is overridden.
    """
    seen.kill_at = None
    arn = f"arn:aws:states:{stack.region}:{stack.account}:execution:leeward-node-group-upgrade:{execution}"
    stack.client("stepfunctions").stop_execution(executionArn=arn, cause="killed by the demo")
    started = command.start(stack, "--override", Code.PDB_NEVER_ALLOWS.value).document
    arguments = f"upgrade start --override {Code.PDB_NEVER_ALLOWS.value}"
    return f"killed {execution} after {seen.seconds:.1f} s; {arguments}: {started['said']} ({started['execution']})"


def _states(stack: LocalStack) -> str:
    terminations = ledger.terminations(stack)
    return ", ".join(f"{entry.node} {entry.phase} {'; '.join(entry.blocked_by)}" for entry in terminations)


def seconds_left(status: UpgradeStatus) -> int:
    """Return the seconds left by Leeward's estimate, 0 without one. Local terminations are shorter than it assumes."""
    return max(int((status.eta - datetime.now(UTC)).total_seconds()), 0) if status.eta is not None else 0


class _Lines:
    """Output without a terminal: one line for each change."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""

    def __call__(self, status: UpgradeStatus) -> None:
        line = line_of(status)
        if line != self._last:
            left = f", about {seconds_left(status)} s left" if status.eta is not None else ""
            self._console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {line}{left}")
            self._last = line


def line_of(status: UpgradeStatus) -> str:
    """Return one line: the phase, the numbers of nodes, and the budgets that block drains."""
    held = "".join(f"; {ledger.short(entry.node)}: {entry.pod} held by {entry.object}" for entry in status.blockers)
    return f"{status.phase.value}: {status.new} new, {status.old} old, {status.draining} draining{held}"


@contextmanager
def _shown(console: Console) -> Iterator["_Lines | _Table"]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield _Table(live)


class _Table:
    """Output on a terminal: the table of `leeward upgrade status`, and the estimated time left."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def __call__(self, status: UpgradeStatus) -> None:
        left = f"about {seconds_left(status)} s left" if status.eta is not None else "no estimate"
        shown = Text("\n".join(render(status_report(scene.GROUP, status), View(Output.TABLE))))
        self._live.update(Group(shown, f"{left}, seen at {time.strftime('%H:%M:%S')}"))
