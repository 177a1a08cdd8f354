"""Estimated time that a running upgrade still takes, from what is left and from how far the nodes under way have
come.

Decides a number of seconds, reported as an estimate. What has not begun counts in whole waves, nodes that drain with
what is left of them: so the estimate falls while they drain, and does not restart with every observation."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from leeward.model.termination import TerminationRecord
from leeward.upgrade.preflight.estimate import TERMINATION_SECONDS, Pace, total_seconds
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.plan import pace_of
from leeward.upgrade.surge.sizes import Strategy


def seconds_left(
    preflight: Preflight, *, gate_passed: bool, terminations: Mapping[str, TerminationRecord] | None = None
) -> int:
    """Return the seconds left. `gate_passed`: the first new nodes have come, and no further boot is waited for (with
    MINIMAL each wave waits for its own). `terminations`: of old nodes under way by instance, where they can be read.
    """
    pace = pace_of(preflight)
    ends, now = terminations or {}, preflight.world.now
    under_way = {
        one.node.name: ends.get(one.instance.id) for one in preflight.old if one.node is not None and one.node.marked
    }
    drains = [_drain_left(name, record, pace, now) for name, record in under_way.items()]
    waves = [[name for name in wave if name not in under_way] for wave in preflight.waves()]
    waves = [wave for wave in waves if wave]
    if not waves:
        return max((_end_left(name, record, pace, now) for name, record in under_way.items()), default=0)
    boot = pace.boot if gate_passed and preflight.strategy is not Strategy.MINIMAL else 0
    return total_seconds(waves, pace, preflight.strategy) - boot + max(drains, default=0)


def _drain_left(name: str, record: TerminationRecord | None, pace: Pace, now: datetime) -> int:
    """Return the seconds until its last pod has left; a drain that takes longer than estimated may end any moment."""
    whole = pace.drains.get(name, 0)
    if record is None or "draining" not in record.times:
        return whole
    return 0 if "drained" in record.times else _less(whole, now - record.times["draining"])


def _end_left(name: str, record: TerminationRecord | None, pace: Pace, now: datetime) -> int:
    after = pace.settle + TERMINATION_SECONDS
    if record is not None and "drained" in record.times:
        return _less(after, now - record.times["drained"])
    return _drain_left(name, record, pace, now) + after


def _less(seconds: int, passed: timedelta) -> int:
    return max(seconds - int(passed.total_seconds()), 0)
