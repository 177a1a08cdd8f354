"""`leeward top`: nodes with price, use, state and blocker; refreshed on a terminal until Ctrl-C, else once.

Decides when the view is refreshed and what a failed refresh shows."""

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from leeward.cli.cluster_state import check_prices
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.fixes import sentence_lines
from leeward.cli.node_filter import NodeFilter, add_node_filters, node_filter
from leeward.cli.output import Output, emit, printed_lines
from leeward.cli.pause.shown import pause_lines
from leeward.cli.top.document import to_json
from leeward.cli.top.keys import Keys
from leeward.cli.top.nodes import TopFacts, TopNode, top_nodes
from leeward.cli.top.reading import TopReader
from leeward.cli.top.screen import Screen
from leeward.cli.top.tables import COLUMNS, top_report
from leeward.cli.top.view import FEWEST, TopView
from leeward.errors import LeewardError
from leeward.model.times import format_instant
from leeward.ports.clock import Clock

INTERVAL = 5.0  # seconds between the end of one reading and the next
SLICE = 0.5  # seconds after which a key or another size of the terminal is seen at the latest
DESCRIPTION = """Shows the nodes of a cluster: state, what blocks the node, group, type, zone, price, CPU and memory
requested of what the node offers, pods; dollars and use stand above. On a terminal it is refreshed every 5 s until q
or Ctrl-C: n, s, b, g, p, c and m sort by name, state, blocker, group, price, CPU and memory (again: the other way
round), Enter opens a node. With --once, with --snapshot, without a terminal, and with -o json, yaml or name it is
printed once. Leeward need not be installed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --once and the filters."""
    parser.add_argument("--once", action="store_true", help="print one table, also on a terminal")
    add_node_filters(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print once, or refresh until Ctrl-C. Raises LeewardError where the first reading fails."""
    arguments.view.check(COLUMNS)
    context = context_of(arguments, "top")
    check_prices(context)
    reader, listed = TopReader(context), node_filter(arguments, context)
    if _is_live(arguments, context):
        return _watch(reader, listed, arguments, context)
    nodes, facts = _read(reader, listed, arguments.now)
    report = [*pause_lines(context, arguments.now), *top_report(nodes, facts, arguments.now)]
    emit(to_json(nodes, facts), arguments.view, lambda: report)
    return 0


def refresh(
    lines_at: Callable[[datetime], Sequence[str]],
    clock: Clock,
    keys: Keys | None = None,
    press: Callable[[str], Sequence[str] | None] = lambda _: None,
) -> int:
    """Draw the lines on the terminal every 5 s until Ctrl-C, which ends with 0. A reading that fails leaves the last
    lines with the error above them. `press` takes a key and returns what is drawn then, None where the key ends the
    view. Raises LeewardError where the first reading fails.
    """
    lines, read = lines_at(clock.now()), clock.now()
    try:
        with Screen() as screen:
            error = ""
            while True:
                said = f"not read since {format_instant(read)}: {error}"
                failed = sentence_lines(said, shutil.get_terminal_size().columns) if error else []
                screen.draw([*failed, *lines])
                if keys is None:
                    clock.sleep(INTERVAL)
                elif not _pressed(keys, press, clock, screen, failed):
                    return 0
                try:
                    lines, read, error = lines_at(clock.now()), clock.now(), ""
                except LeewardError as failure:
                    error = " ".join(str(failure).split())
    except KeyboardInterrupt:
        return 0


def _pressed(
    keys: Keys,
    press: Callable[[str], Sequence[str] | None],
    clock: Clock,
    screen: Screen,
    above: Sequence[str],
) -> bool:
    """Take keys until the next reading is due, and draw after each, with the lines `above`; return False where one ends
    the view. A terminal of another size is drawn again within a second.
    """
    due, size = clock.now() + timedelta(seconds=INTERVAL), shutil.get_terminal_size()
    while (left := (due - clock.now()).total_seconds()) > 0:
        key = keys.read(min(left, SLICE))
        if not key and shutil.get_terminal_size() == size:
            continue
        size, drawn = shutil.get_terminal_size(), press(key)
        if drawn is None:
            return False
        screen.draw([*above, *drawn])
    return True


def _watch(reader: TopReader, listed: NodeFilter, arguments: argparse.Namespace, context: ClusterContext) -> int:
    """Refresh the view, and let keys sort it and open a node where there is a keyboard."""
    view = TopView()
    moment, pauses = arguments.now, list[str]()

    def drawn() -> list[str]:
        """Return the lines, with as many nodes as the terminal has rows for; a row may have several lines."""
        heading = f"{format_instant(moment)}   cluster {arguments.cluster}   Ctrl-C ends"
        height = rows = shutil.get_terminal_size().lines
        while True:
            lines = [heading, *printed_lines(arguments.view, [*pauses, *view.report(moment, rows)])]
            if len(lines) <= height or rows <= FEWEST:
                return lines
            rows -= min(len(lines), 2 * height) - height

    def lines_at(now: datetime) -> list[str]:
        nonlocal moment, pauses
        view.show(*_read(reader, listed, now))
        moment, pauses = now, pause_lines(context, now)
        return drawn()

    def press(key: str) -> list[str] | None:
        return drawn() if view.press(key) else None

    if not sys.stdin.isatty():
        return refresh(lines_at, context.ports.clock)
    with Keys() as keys:
        return refresh(lines_at, context.ports.clock, keys, press)


def _is_live(arguments: argparse.Namespace, context: ClusterContext) -> bool:
    watched = sys.stdout.isatty() and context.folder is None and not arguments.once
    return watched and arguments.view.output in {Output.TABLE, Output.WIDE}


def _read(reader: TopReader, listed: NodeFilter, now: datetime) -> tuple[list[TopNode], TopFacts]:
    facts = reader.read(now)
    return [one for one in top_nodes(facts, now) if listed.includes(one.node.labels, one.group)], facts
