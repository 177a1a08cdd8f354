"""View of `leeward top` on a terminal: nodes in the chosen order, or one node that is opened.

Decides what a key does, and which nodes are seen where the terminal has too few rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from leeward.budgets.pdb import PdbIndex
from leeward.cli.tables import Table, fields
from leeward.cli.top.keys import DOWN
from leeward.cli.top.nodes import MILLI, NodeState, TopFacts, TopNode, blockers_of_pod
from leeward.cli.top.tables import GIBIBYTE, top_report
from leeward.model.counts import count_of
from leeward.model.times import format_instant, parse_instant

QUIT = "q"
HELP = "sort: n s b g p c m   up, down, Enter: open {}   q: end"
BACK = "Esc: back to the nodes   q: end"
FEWEST = 3  # nodes that are shown on the smallest screen
_STATES = list(NodeState)
_ORDERS: Mapping[str, Callable[[TopNode], tuple[object, ...]]] = {
    "n": lambda one: (one.node.name,),
    "s": lambda one: (_STATES.index(one.state), not one.blockers),
    "b": lambda one: (not one.blockers, one.blockers),
    "g": lambda one: (one.group or "", one.node.name),
    "p": lambda one: (-(one.price or 0.0),),
    "c": lambda one: (-_share(one.cpu),),
    "m": lambda one: (-_share(one.memory),),
}  # name, state, blocker, group, price, CPU, memory; most first


@dataclass(slots=True)
class TopView:
    """Nodes as they were read last, and what the keys have chosen. `chosen`, `opened`: names of nodes."""

    order: str = ""
    turned: bool = False
    chosen: str = ""
    opened: bool = False
    nodes: list[TopNode] = field(default_factory=list)
    facts: TopFacts = field(default_factory=lambda: TopFacts(nodes=(), pods=()))

    def show(self, nodes: Sequence[TopNode], facts: TopFacts) -> None:
        """Take what was read; the order and the chosen node stay."""
        self.nodes, self.facts = list(nodes), facts
        self._sort()

    def press(self, key: str) -> bool:
        """Do what the key means; return False where it ends the view."""
        names = [one.node.name for one in self.nodes]
        place = names.index(self.chosen) if self.chosen in names else 0
        match key:
            case "q":
                return False
            case "up" | "down" if names and not self.opened:
                self.chosen = names[min(max(place + (1 if key == DOWN else -1), 0), len(names) - 1)]
            case "enter" if names:
                self.chosen, self.opened = names[place], True
            case "escape":
                self.opened = False
            case _ if key in _ORDERS:
                self.turned, self.order = self.order == key and not self.turned, key
                self._sort()
        return True

    def report(self, now: datetime, rows: int) -> list[Table | str]:
        """Return the report with so many nodes at most: the keys, then the nodes or the opened node."""
        chosen = next((one for one in self.nodes if one.node.name == self.chosen), None)
        if self.opened and chosen is not None:
            return [BACK, *_opened(chosen, self.facts, now)]
        first = chosen or next(iter(self.nodes), None)
        name = first.node.name.partition(".")[0] if first is not None else "a node"
        shown = self._seen(max(rows, FEWEST))
        left = Counter(one.state for one in self.nodes if one not in shown)
        more = ", ".join(f"{left[state]} {state.value}" for state in NodeState if left[state])
        hidden = [f"not on the screen: {left.total()} of {count_of(len(self.nodes), 'node')}: {more}"] if left else []
        return [
            HELP.format(name),
            *hidden,
            *top_report(self.nodes, self.facts, now, shown=shown, chosen=self.chosen),
        ]

    def _sort(self) -> None:
        if self.order:
            self.nodes.sort(key=lambda one: one.node.name)
            self.nodes.sort(key=_ORDERS[self.order], reverse=self.turned)

    def _seen(self, rows: int) -> list[TopNode]:
        """Return the nodes of the screen, the chosen one among them."""
        names = [one.node.name for one in self.nodes]
        place = names.index(self.chosen) if self.chosen in names else 0
        begin = max(0, min(place - rows // 2, len(names) - rows))
        return self.nodes[begin : begin + rows]


def _share(amounts: tuple[int, int]) -> float:
    return amounts[0] / amounts[1] if amounts[1] else 0.0


def _opened(node: TopNode, facts: TopFacts, now: datetime) -> Iterator[Table | str]:
    """Yield what a node is, since when, what blocks it, and its pods: those that are blocked first."""
    since = _since(node, facts)
    capacity = node.capacity.value if node.capacity else "unknown"
    yield from fields(
        {
            "Node": f"{node.node.name} ({node.node.instance_id or 'no instance'})",
            "Group": f"{node.group or '-'}, {node.instance_type or 'unknown'}, {capacity}, {node.zone or 'no zone'}",
            "State": f"{node.state.value}{f' since {format_instant(since)}' if since else ''}",
            "Blocked by": "; ".join(node.blockers) or "nothing",
        }
    )
    budgets = PdbIndex(facts.budgets)
    pods = [one for one in facts.pods if one.pod.node == node.node.name]
    table = Table(
        ("POD", "BLOCKER", "CPU", "MEMORY"),
        title=count_of(len(pods), "pod"),
        optional=("MEMORY", "CPU"),
        text="BLOCKER",
        kind="pod",
    )
    blockers = {one.pod.key: list(blockers_of_pod(one.pod, budgets, now)) for one in pods}
    for one in sorted(pods, key=lambda one: (not blockers[one.pod.key], one.pod.key)):
        held = ", ".join(blockers[one.pod.key])
        table.add(one.pod.key, held, f"{one.cpu / MILLI:g}", f"{one.memory / GIBIBYTE:.2f}GiB")
    yield table


def _since(node: TopNode, facts: TopFacts) -> datetime | None:
    """Return since when the node is in its state, as the termination or the node itself tells; None: unknown."""
    record = facts.records.get(node.node.instance_id)
    key = {NodeState.TERMINATING: "terminating", NodeState.SETTLING: "drained"}.get(node.state, "draining")
    if record is not None:
        return record.times.get(key) or record.times.get("claimed")
    if node.state is NodeState.NOT_READY:
        return node.node.not_ready_since
    added = next((taint.added for taint in node.node.taints if taint.added), "")
    return parse_instant(added) if added and node.state is not NodeState.READY else None
