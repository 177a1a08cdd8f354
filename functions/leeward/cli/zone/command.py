"""`leeward zone evacuate|return|status`: take the nodes out of a zone, open it again, and show where that stands.

Decides which arguments an action takes and when it asks; `leeward.evacuation` plans, the minute reconciler works."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from leeward.budgets.pdb import PdbIndex
from leeward.cli.cluster_state import cluster_of
from leeward.cli.confirmation import add_yes, check_can_ask, confirm
from leeward.cli.context import ClusterContext
from leeward.cli.member import profile_of
from leeward.cli.nearest import did_you_mean
from leeward.cli.output import emit
from leeward.cli.pause.shown import pause_lines
from leeward.cli.pause.switch import one_line
from leeward.cli.zone.documents import (
    COLUMNS,
    ZONE_COLUMNS,
    evacuation_document,
    evacuation_report,
    return_document,
    return_report,
    status_document,
    status_report,
)
from leeward.cli.zone.effects import effects_of
from leeward.cli.zone.following import follow
from leeward.cli.zone.record import change, evacuated, opened
from leeward.cluster.facets import known_or
from leeward.errors import InvalidInputError, TerminalError
from leeward.evacuation.plan import EvacuationInputs, plan_evacuation
from leeward.model.zonal_shift import NOT_SHIFTED
from leeward.placement.restrictions import by_claim
from leeward.snapshot.cluster import ClusterSnapshot

DESCRIPTION = """Takes the nodes out of a zone and opens it again. leeward zone ACTION --help explains each.

A zone that is evacuated is closed: Leeward launches nothing there, and disruption, repair and upgrades leave its nodes
alone."""
EVACUATE = """Closes the zone for new nodes and replaces its nodes elsewhere, within the disruption budgets: a
replacement in another zone first, then drain and TERMINATION with decrement, so that sizes stay. Nodes with pods that
cannot leave stay in service and are named. With --dry-run or --snapshot it only shows the plan. The minute reconciler
does the work; Ctrl-C stops nothing."""
RETURN = """Opens the zone again: no further node leaves, nodes that drain finish, and the groups have the sizes that
they had before. Balancing of zones (AZRebalance) is resumed when the last of these nodes has ended."""
STATUS = """Shows the zones of the cluster: open, shifted or evacuated, since when and by whom, how many nodes are
there, which of them wait or stay and why, and the sizes of the groups before and now."""


class RefusedZoneError(TerminalError):
    """Reason why a zone is not evacuated; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    help: str
    description: str
    run: Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each action."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, help=", ".join(ACTIONS))
    for name, action in ACTIONS.items():
        subparser = actions.add_parser(name, help=action.help, description=action.description)
        subparser.set_defaults(act=action.run)
        if name != "status":
            subparser.add_argument("zone", metavar="ZONE", help="name of the zone, such as us-east-1a")
        if name == "evacuate":
            subparser.add_argument(
                "--group",
                metavar="GROUP",
                action="append",
                default=[],
                help="only nodes of this group; may be repeated",
            )
            subparser.add_argument("--why", metavar="TEXT", type=one_line, help="the reason, for others")
            subparser.add_argument("--dry-run", action="store_true", help="only show the plan")
            subparser.add_argument("--watch", action="store_true", help="follow the nodes until they have left")
            add_yes(subparser)


def run(arguments: argparse.Namespace) -> int:
    """Run the action; return its exit code."""
    return int(arguments.act(arguments))


def _evacuate(arguments: argparse.Namespace) -> int:
    dry = arguments.dry_run or arguments.snapshot is not None
    arguments.view.check(COLUMNS)
    if dry and arguments.watch:
        raise InvalidInputError("zone evacuate: found --watch with a dry run, expected one of them")
    if not dry and arguments.cluster is not None:
        check_can_ask(
            arguments, "zone evacuate", "replaces every node of the zone elsewhere (--dry-run shows the plan)"
        )
    context, snapshot = cluster_of(arguments, "zone evacuate")
    _check_zone(arguments.zone, snapshot, "zone evacuate")
    _check_groups(arguments.group, snapshot, context)
    inputs = inputs_of(snapshot, context)
    verdicts = plan_evacuation(inputs, arguments.zone, arguments.group)
    if dry:
        document = evacuation_document(arguments.zone, verdicts, None)
        report = [*pause_lines(context, arguments.now), *evacuation_report(document)]
        emit(document, arguments.view, lambda: report, snapshot.warnings)
        return 0
    left = sorted({subnet.zone for subnet in snapshot.subnets.values()} - inputs.closed - {arguments.zone})
    if not left:
        raise RefusedZoneError(
            f"refused: no other zone of cluster {snapshot.cluster} would be open; nothing was changed"
        )
    confirm(arguments, effects_of(snapshot.cluster, arguments.zone, context.options, verdicts))
    record = change(
        snapshot.cluster,
        context.ports.catalog,
        context.ports.clock,
        lambda record: evacuated(
            record,
            zone=arguments.zone,
            groups=arguments.group,
            by=_caller(arguments),
            why=arguments.why or "",
            now=arguments.now,
        ),
    )
    evacuation = record.evacuation_of(arguments.zone)
    document = evacuation_document(arguments.zone, verdicts, evacuation)
    emit(document, arguments.view, lambda: evacuation_report(document), snapshot.warnings)
    if evacuation is None or not arguments.watch:
        return 0
    return follow(snapshot.cluster, evacuation, verdicts, context.ports)


def _return(arguments: argparse.Namespace) -> int:
    if arguments.snapshot is not None:
        raise InvalidInputError("zone return: found --snapshot, expected --cluster NAME: it is live alone")
    context, snapshot = cluster_of(arguments, "zone return")
    before = context.ports.catalog.zone_record(snapshot.cluster).evacuation_of(arguments.zone)
    if before is None:  # the cluster may have lost an evacuated zone's last node and subnet since
        _check_zone(arguments.zone, snapshot, "zone return")
    record = change(
        snapshot.cluster,
        context.ports.catalog,
        context.ports.clock,
        lambda record: opened(record, arguments.zone, arguments.now),
    )
    after = record.evacuation_of(arguments.zone)
    document = return_document(arguments.zone, before, after, snapshot)
    emit(document, arguments.view, lambda: return_report(document), snapshot.warnings)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    arguments.view.check((*ZONE_COLUMNS, *COLUMNS))
    context, snapshot = cluster_of(arguments, "zone status")
    record = context.ports.catalog.zone_record(snapshot.cluster)
    document = status_document(snapshot, record, inputs_of(snapshot, context))
    emit(document, arguments.view, lambda: status_report(document), snapshot.warnings)
    return 0


def inputs_of(snapshot: ClusterSnapshot, context: ClusterContext) -> EvacuationInputs:
    """Return the inputs of a plan, as the minute reconciler reads them."""
    claimed = any(pod.claims for pod in snapshot.pods)
    kubernetes = context.ports.clusters.kubernetes(context.cluster)
    instances = sorted(filter(None, (node.instance_id for node in snapshot.nodes)))
    return EvacuationInputs(
        state=snapshot,
        pods={node.name: snapshot.pods_on(node.name) for node in snapshot.nodes},
        volumes=by_claim(kubernetes.volumes()) if claimed else {},
        subnets=snapshot.subnets,
        records=context.ports.claims.read_all(instances),
        closed=known_or(snapshot.shifts, NOT_SHIFTED).zones,
        budgets=PdbIndex(snapshot.budgets),
        now=snapshot.now,
    )


def _check_zone(zone: str, snapshot: ClusterSnapshot, verb: str) -> None:
    """Raise InvalidInputError for a zone in which the cluster has neither a node nor a subnet of a group."""
    known = {subnet.zone for subnet in snapshot.subnets.values()} | {snapshot.zone_of(node) for node in snapshot.nodes}
    zones = sorted(known - {""})
    if zone not in zones:
        raise InvalidInputError(
            f"{verb}: found zone {zone!r}, expected one of the cluster's zones: {', '.join(zones) or 'none is known'}"
            f"{did_you_mean(zone, zones)}"
        )


def _check_groups(groups: list[str], snapshot: ClusterSnapshot, context: ClusterContext) -> None:
    for name in groups:
        if name not in snapshot.groups:
            raise context.unknown_group(name)


def _caller(arguments: argparse.Namespace) -> str:
    from leeward.adapters import wiring  # late: --help needs no AWS library

    return wiring.command_line_deployment(arguments.region, **profile_of(arguments)).identity().arn


ACTIONS = {
    "evacuate": _Action(help="close a zone and replace its nodes elsewhere", description=EVACUATE, run=_evacuate),
    "return": _Action(help="open a zone again", description=RETURN, run=_return),
    "status": _Action(help="show the zones, and what leaves them", description=STATUS, run=_status),
}
