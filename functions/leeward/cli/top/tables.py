"""Table of `leeward top`: a summary, then a row for each node.

Decides how amounts are printed."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from leeward.cli.plan_document import HOURS_A_MONTH
from leeward.cli.tables import CHOSEN, Table
from leeward.cli.top.nodes import MILLI, NodeState, TopFacts, TopNode
from leeward.disruption.savings import dollars
from leeward.model.counts import count_of
from leeward.model.instance import CapacityType

BAR = 8  # characters
GIBIBYTE = 1024**3
COLUMNS = (
    *("NODE", "STATE", "BLOCKER", "GROUP", "TYPE", "ZONE", "CAPACITY", "PRICE", "CPU", "MEMORY", "PODS"),
    *("INSTANCE", "AGE", "KUBELET"),
)
WIDE = frozenset({"INSTANCE", "AGE", "KUBELET"})
OPTIONAL = ("CAPACITY", "ZONE", "TYPE", "MEMORY", "CPU", "PODS", "PRICE", "GROUP")
_STYLES = {
    NodeState.NOT_READY: "red",
    NodeState.CORDONED: "cyan",
    NodeState.DRAINING: "yellow",
    NodeState.SETTLING: "yellow",
    NodeState.TERMINATING: "yellow",
    NodeState.DELETING: "yellow",
}


def top_report(
    nodes: Sequence[TopNode],
    facts: TopFacts,
    now: datetime,
    *,
    shown: Sequence[TopNode] | None = None,
    chosen: str = "",
) -> list[Table | str]:
    """Build the report: the summary, the table, then what could not be read. `shown`: the nodes of the table, default:
    all; `chosen`: the name of the node that is marked.
    """
    table = Table(COLUMNS, wide=WIDE, optional=OPTIONAL, text="BLOCKER", kind="node", empty="no node")
    for one in nodes if shown is None else shown:
        table.add(
            one.node.name,
            one.state.value,
            _some(one.blockers),
            one.group,
            one.instance_type,
            one.zone,
            one.capacity.value if one.capacity else None,
            "unknown" if one.price is None else dollars(one.price),
            _bar(one.cpu),
            _bar(one.memory),
            f"{one.pods[0]}/{one.pods[1]}",
            one.node.instance_id,
            _age((now - one.node.created).total_seconds()),
            one.node.kubelet,
            style=CHOSEN if one.node.name == chosen else _STYLES.get(one.state, ""),
        )
    return [*_summary(nodes, facts), table, *facts.warnings]


def _summary(nodes: Sequence[TopNode], facts: TopFacts) -> Iterator[str]:
    kinds = Counter(one.capacity.value for one in nodes if one.capacity is not None)
    known = [one.price for one in nodes if one.price is not None]
    said = ", ".join(f"{kinds[kind.value]} {kind.value}" for kind in CapacityType if kinds[kind.value])
    yield f"{count_of(len(nodes), 'node')}{f' ({said})' if said else ''}, {_priced(known, len(nodes) - len(known))}"
    pending = f", {facts.pending} pending" if facts.pending else ""
    pods = f"{count_of(sum(one.pods[0] for one in nodes), 'pod')}{pending}"
    cpu = _used([one.cpu for one in nodes], MILLI, "cores")
    memory = _used([one.memory for one in nodes], GIBIBYTE, "GiB")
    yield f"CPU {cpu}, memory {memory}, {pods}"
    states = Counter(one.state for one in nodes)
    unusual = [f"{states[state]} {state.value}" for state in NodeState if states[state] and state != NodeState.READY]
    if unusual:
        yield ", ".join(unusual)


def _priced(known: Sequence[float], unknown: int) -> str:
    if not known:
        return "price not known" if unknown else f"{dollars(0.0)} an hour"
    without = f", without {count_of(unknown, 'node')} of unknown price" if unknown else ""
    return f"{dollars(sum(known))} an hour, ${sum(known) * HOURS_A_MONTH:,.2f} a month{without}"


def _used(amounts: Sequence[tuple[int, int]], parts: int, unit: str) -> str:
    """Return the requested share of what the nodes offer together. `parts`: amounts in one of `unit`."""
    requested, allocatable = (sum(amount[place] for amount in amounts) for place in (0, 1))
    of_all = f" of {allocatable / parts:.2f}".rstrip("0").rstrip(".") + f" {unit}" if allocatable else ""
    return f"{_percent(requested, allocatable)}{of_all}"


def _percent(requested: int, allocatable: int) -> str:
    return f"{round(100 * requested / allocatable)}%" if allocatable else "unknown"


def _bar(amounts: tuple[int, int]) -> str:
    """Return the requested share with a small bar; "unknown" where the node reports nothing allocatable."""
    requested, allocatable = amounts
    if not allocatable:
        return "unknown"
    full, empty = _bar_characters()
    filled = min(BAR, round(BAR * requested / allocatable))
    return f"{_percent(requested, allocatable):<4} {full * filled}{empty * (BAR - filled)}"


def _bar_characters() -> tuple[str, str]:
    """Return what a full and an empty part of a bar are, in ASCII where standard output takes nothing else."""
    try:
        "█░".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return "#", "-"
    return "█", "░"


def _some(blockers: Sequence[str]) -> str:
    """Return the first blocker and the number of others; JSON has them all."""
    more = f" and {len(blockers) - 1} more" if len(blockers) > 1 else ""
    return f"{blockers[0]}{more}" if blockers else ""


def _age(seconds: float) -> str:
    """Return an age as kubectl prints it, in its largest unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"
