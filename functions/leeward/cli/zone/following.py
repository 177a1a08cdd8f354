"""Following of an evacuation: a line for each node, until every node that can leave has left.

Reads the table's records alone; interrupting it stops nothing."""

from collections.abc import Sequence

from leeward.cli import following
from leeward.cli.drain.live import look
from leeward.cli.progress import Progress
from leeward.evacuation.plan import NodeVerdict, Standing
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.ports import Ports

WAITS = "waits for a disruption budget, or for the next minute"


def follow(zone: str, verdicts: Sequence[NodeVerdict], ports: Ports, progress: Progress | None = None) -> int:
    """Show every change. Return 0 when each node of the plan has left, 1 when one stays, 130 after a Ctrl-C, which
    leaves it running. A call that fails for now is repeated.
    """
    lines = progress or Progress()
    left = {one.node.name: one.node.instance_id for one in verdicts if one.standing is not Standing.STAYS}
    failed = len(left) < len(verdicts)
    for one in verdicts:
        if one.standing is Standing.STAYS:
            lines.say(f"{one.node.name} stays in {zone}: {one.reason}")

    def show() -> int | None:
        nonlocal failed
        records = ports.claims.read_all(left.values())
        states = {name: _look(records.get(instance)) for name, instance in left.items()}
        lines.show({name: line for name, (line, _) in states.items()}, ports.clock.now())
        for name, (_, ended) in states.items():
            if ended is not None:
                del left[name]
                failed = failed or not ended
        return None if left else int(failed)

    return following.follow(show, lambda: list(left), ports.clock, lines)


def _look(record: TerminationRecord | None) -> tuple[str, bool | None]:
    if record is None or not record.has(CauseKind.EVACUATION):
        return WAITS, None
    return look(record)
