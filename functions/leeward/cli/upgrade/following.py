"""Following of an upgrade to its end: a line for each change, redrawn on a terminal.

Interrupting it stops no upgrade."""

from leeward.cli import following
from leeward.cli.context import ClusterContext
from leeward.cli.progress import Progress
from leeward.cli.upgrade.outcome import outcome_of
from leeward.cli.upgrade.status import group_status
from leeward.upgrade.status import UpgradePhase, UpgradeStatus

LOOKS = 2  # that find it over: Step Functions shows a new execution a moment after its start
OVER = frozenset(
    {UpgradePhase.DONE, UpgradePhase.ABORTED, UpgradePhase.FAILED, UpgradePhase.STOPPED, UpgradePhase.NOT_STARTED}
)


def follow(group: str, context: ClusterContext, progress: Progress | None = None) -> int:
    """Print a line for every change of the group's upgrade. Return 0 when it is done or aborted, 1 when it has failed
    or stopped, 130 after a Ctrl-C, which leaves it running. A call that fails for now is repeated.
    """
    ports, lines, over = context.ports, progress or Progress(), 0

    def show() -> int | None:
        nonlocal over
        status = group_status(group, context.cluster, ports)
        lines.show({group: line_of(status)}, ports.clock.now())
        over = over + 1 if status.phase in OVER and not status.execution else 0
        if over < LOOKS:
            return None
        for line in outcome_of(group, context, status).lines():
            lines.say(line)
        return int(status.phase not in {UpgradePhase.DONE, UpgradePhase.ABORTED, UpgradePhase.NOT_STARTED})

    return following.follow(show, lambda: [group], ports.clock, lines)


def line_of(status: UpgradeStatus) -> str:
    """Return the status in a line, without times: it changes only with the upgrade. Until its execution has recorded
    a target, which nodes are old is not known.
    """
    if status.phase is UpgradePhase.STARTING:
        return status.phase.value
    counts = f"{status.new} new, {status.old} old, {status.draining} draining, {status.failed} failed"
    missing = "" if status.gate.open or status.phase in OVER else f"; gate: {status.gate.missing[0].message}"
    blocked = ", ".join(dict.fromkeys(one.object for one in status.blockers))
    return f"{status.phase.value}: {counts}{missing}{f'; blocked by {blocked}' if blocked else ''}"
