"""`leeward top`: nodes with price, use, state and blocker; refreshed on a terminal until Ctrl-C, else once.

Decides when the view is refreshed and what a failed refresh shows."""

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from leeward.cli.cluster_state import check_prices
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.node_filter import NodeFilter, add_node_filters, node_filter
from leeward.cli.output import Output, emit, printed_lines
from leeward.cli.pause.shown import pause_lines
from leeward.cli.top.document import to_json
from leeward.cli.top.nodes import TopFacts, TopNode, top_nodes
from leeward.cli.top.reading import TopReader
from leeward.cli.top.screen import Screen
from leeward.cli.top.tables import COLUMNS, top_report
from leeward.errors import LeewardError
from leeward.model.times import format_instant
from leeward.ports.clock import Clock

INTERVAL = 5.0  # seconds between the end of one reading and the next
DESCRIPTION = """Shows the nodes of a cluster: group, zone, type, price, CPU and memory requested of what the node
offers, pods, state, and what blocks the node; a summary with dollars and use stands above. On a terminal it is a view
that is refreshed every 5 s until Ctrl-C. With --once, with --snapshot, without a terminal, and with -o json, yaml or
name it is printed once. Nothing is changed, and Leeward need not be installed."""


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
        return refresh(lambda now: _lines(reader, listed, arguments, context, now), context.ports.clock)
    nodes, facts = _read(reader, listed, arguments.now)
    report = [*pause_lines(context, arguments.now), *top_report(nodes, facts, arguments.now)]
    emit(to_json(nodes, facts), arguments.view, lambda: report)
    return 0


def refresh(lines_at: Callable[[datetime], Sequence[str]], clock: Clock) -> int:
    """Draw the lines on the terminal every 5 s until Ctrl-C, which ends with 0. A reading that fails leaves the last
    lines with the error above them. Raises LeewardError where the first one fails.
    """
    lines, read = lines_at(clock.now()), clock.now()
    try:
        with Screen() as screen:
            error = ""
            while True:
                failed = [f"not read since {format_instant(read)}: {error}"] if error else []
                screen.draw([*failed, *lines])
                clock.sleep(INTERVAL)
                try:
                    lines, read, error = lines_at(clock.now()), clock.now(), ""
                except LeewardError as failure:
                    error = " ".join(str(failure).split())
    except KeyboardInterrupt:
        return 0


def _is_live(arguments: argparse.Namespace, context: ClusterContext) -> bool:
    watched = sys.stdout.isatty() and context.folder is None and not arguments.once
    return watched and arguments.view.output in {Output.TABLE, Output.WIDE}


def _lines(
    reader: TopReader, listed: NodeFilter, arguments: argparse.Namespace, context: ClusterContext, now: datetime
) -> list[str]:
    nodes, facts = _read(reader, listed, now)
    heading = f"{format_instant(now)}   cluster {arguments.cluster}   Ctrl-C ends"
    return [heading, *printed_lines(arguments.view, [*pause_lines(context, now), *top_report(nodes, facts, now)])]


def _read(reader: TopReader, listed: NodeFilter, now: datetime) -> tuple[list[TopNode], TopFacts]:
    facts = reader.read(now)
    return [one for one in top_nodes(facts, now) if listed.includes(one.node.labels, one.group)], facts
