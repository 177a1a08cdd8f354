"""Progress of started drains until each has ended; interrupting it stops no drain.

Reads the table's records alone: they hold everything that Leeward knows of a termination."""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from leeward.model.termination import Outcome, Status, TerminationRecord
from leeward.model.times import format_instant
from leeward.ports.clock import Clock
from leeward.ports.records import Claims

LOOK_AGAIN_SECONDS = 2.0
INTERRUPTED = 130
PHASES: Mapping[str, str] = MappingProxyType(
    {
        "removed": "Node removed",
        "terminated": "terminated",
        "terminating": "terminating",
        "drained": "settling",
        "draining": "draining",
        "tainted": "cordoned",
    }
)

Say = Callable[[str], None]


def follow(nodes: Sequence[tuple[str, str]], clock: Clock, claims: Claims, say: Say) -> int:
    """Print a line for every change of `nodes`, pairs (name, instance). Return 0 when every node is terminated, 1 when
    one was returned to service or could not be terminated by now, 130 after a Ctrl-C, which leaves everything running.
    """
    known: dict[str, str] = {}
    left = dict(nodes)
    failed = False
    try:
        while True:
            for name, instance in list(left.items()):
                line, ended = _look(claims.read(instance))
                if known.get(name) != line:
                    known[name] = line
                    say(f"{format_instant(clock.now())} {name}: {line}")
                if ended is not None:
                    del left[name]
                    failed = failed or not ended
            if not left:
                return int(failed)
            clock.sleep(LOOK_AGAIN_SECONDS)
    except KeyboardInterrupt:
        say(f"not followed any more, and still under way: {', '.join(left)}")
        return INTERRUPTED


def print_progress(line: str) -> None:
    """Print to standard error: standard output holds the plan."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _look(record: TerminationRecord | None) -> tuple[str, bool | None]:
    """Return the state as a sentence, and the result: True terminated, False failed or in service, None under way."""
    if record is None:
        return "nothing is written down about it any more", False
    if record.status is Status.CLOSED:
        if record.outcome is Outcome.TERMINATED:
            return f"gone, {record.pods_evicted} pods evicted", True
        return f"in service again: {record.failure or 'nothing wants it gone any more'}", False
    if "retry" in record.times and record.failure:
        return f"failed: {record.failure}; tried again at {format_instant(record.times['retry'])}", False
    phase = next((words for name, words in PHASES.items() if name in record.times), "waiting to begin")
    blocked = f", waits for {'; '.join(record.blocked_by)}" if record.blocked_by and phase == "draining" else ""
    return f"{phase}, {record.pods_evicted} pods evicted{blocked}", None
