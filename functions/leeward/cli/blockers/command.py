"""`leeward blockers`: what blocks a node, its owner, until when, and the fix.

Decides how the list is printed; `leeward.blockers` decides what blocks."""

import argparse

from leeward.cli.context import context_of
from leeward.cli.node_filter import add_node_filters, node_filter
from leeward.cli.output import emit

DESCRIPTION = """Shows everything that holds up a node (or all nodes): budgets that allow no eviction, pods and nodes
that ask to be left alone, pods that would come back or do not end, volumes that do not leave, lifecycle hooks; the
owner of each, until when it lasts, and the fix. It changes nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the node argument and the filters."""
    parser.add_argument("node", metavar="NODE", nargs="?", help="name, short name or instance id (default: all nodes)")
    parser.add_argument("--verbose", action="store_true", help="a row for each pod, not one for each cause")
    add_node_filters(parser)


def run(arguments: argparse.Namespace) -> int:
    """Find and print the blockers; return 0, whatever the list holds. Raises InvalidInputError for an unknown node."""
    from leeward.blockers.find import blockers  # late: --help needs none of them
    from leeward.blockers.namespaces import kept_by_namespace
    from leeward.cli.blockers.inputs import node_inputs_of
    from leeward.cli.blockers.tables import blockers_report
    from leeward.cli.pause.shown import pause_lines

    context = context_of(arguments, "blockers")
    name = None if arguments.node is None else context.node(arguments.node).name
    nodes = node_inputs_of(context.ports, context.cluster, name, arguments.now)
    listed = node_filter(arguments, context)
    nodes = [inputs for inputs in nodes if listed.includes(inputs.node.labels, inputs.group)]
    blocking = [blocker for node_inputs in nodes for blocker in blockers(node_inputs, arguments.now)]
    found = [blocker.to_json() for blocker in blocking]
    namespaces = kept_by_namespace(blocking, arguments.now)
    looked_at = [node_inputs.node.name for node_inputs in nodes]
    document = {"blockers": found, "namespaces": [one.to_json() for one in namespaces]}
    emit(
        document,
        arguments.view,
        lambda: [
            *pause_lines(context, arguments.now),
            *blockers_report(blocking, namespaces, looked_at, verbose=arguments.verbose),
        ],
    )
    return 0
