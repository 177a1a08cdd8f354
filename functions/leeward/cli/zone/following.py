"""Following of an evacuation: a line for each node, until every node that can leave has left.

Reads the table's records alone; interrupting it stops nothing."""

from collections.abc import Sequence

from leeward.cli import following
from leeward.cli.drain.live import look
from leeward.cli.progress import Progress
from leeward.evacuation.plan import EvacuationStanding, NodeVerdict
from leeward.model.termination import Outcome, Status, TerminationRecord
from leeward.model.zonal_shift import Evacuation
from leeward.ports import Ports

WAITS = "waits for a disruption budget, or for the next minute"
OPENED = "stays: the zone was opened again"


def follow(
    cluster: str,
    evacuation: Evacuation,
    verdicts: Sequence[NodeVerdict],
    ports: Ports,
    progress: Progress | None = None,
) -> int:
    """Show every change. Return 0 when each node of the plan has left, 1 when one stays, also because the zone was
    opened again, 130 after a Ctrl-C, which leaves it running. A call that fails for now is repeated.
    """
    lines = progress or Progress()
    left = {one.node.name: one.node.instance_id for one in verdicts if one.standing is not EvacuationStanding.STAYS}
    failed = len(left) < len(verdicts)
    for one in verdicts:
        if one.standing is EvacuationStanding.STAYS:
            lines.say(f"{one.node.name} stays in {evacuation.zone}: {one.reason}")

    def show() -> int | None:
        nonlocal failed
        newest = ports.catalog.zone_record(cluster).evacuation_of(evacuation.zone)
        closed = newest is not None and newest.closed and newest.since == evacuation.since
        records = ports.claims.read_all(left.values())
        states = {name: _look(records.get(instance), evacuation, closed=closed) for name, instance in left.items()}
        lines.show({name: line for name, (line, _) in states.items()}, ports.clock.now())
        for name, (_, ended) in states.items():
            if ended is not None:
                del left[name]
                failed = failed or not ended
        return None if left else int(failed)

    return following.follow(show, lambda: list(left), ports.clock, lines)


def _look(record: TerminationRecord | None, evacuation: Evacuation, *, closed: bool) -> tuple[str, bool | None]:
    """Return the state of a node and whether it has left, None while that is open. A node that was returned to service
    before this evacuation is asked again.
    """
    if record is not None and (record.status is Status.OPEN or record.outcome is Outcome.TERMINATED):
        return look(record)
    if record is not None and any(evacuation.caused(cause) for cause in record.causes):
        return look(record)
    return (WAITS, None) if closed else (OPENED, False)
