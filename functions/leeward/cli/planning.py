"""Work of `leeward plan`: the next run of voluntary disruption, what it saves, and why every other node stays.

Decides how a plan is read and printed; `leeward.disruption` makes it."""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from leeward.adapters.folder.files import load_json
from leeward.adapters.folder.schema import SchemaError, check_of
from leeward.cli.cluster_state import cluster_of
from leeward.cli.context import ClusterContext
from leeward.cli.node_filter import node_filter
from leeward.cli.output import emit
from leeward.cli.plan_apply import Request, apply, check_apply, last_run
from leeward.cli.plan_document import to_json
from leeward.cli.plan_tables import plan_report
from leeward.cli.plan_until_done import check_alone, show_until_done
from leeward.cli.what_if import WhatIf, switched_on
from leeward.disruption.alternatives import RefusedTarget, cheaper_types_save, refused_targets
from leeward.disruption.command import Command, CommandDecision, DisruptionPlan, MethodName, PlannedReplacement
from leeward.disruption.plan import plan_in, validate
from leeward.disruption.planning_state import PlanningState
from leeward.errors import InvalidInputError
from leeward.model.facts import Prices
from leeward.model.instance import CapacityType
from leeward.model.node import Node
from leeward.model.nodegroup import NodeRepair
from leeward.ports.compute import Instances
from leeward.ports.eks import KnownNodegroups
from leeward.reconcile.repair_plan import repair_plan
from leeward.snapshot.cluster import ClusterSnapshot

_PRINTED_BY = "leeward plan -o json"


def run(arguments: argparse.Namespace) -> int:
    """Plan or check, and print; with --apply start the run. Return 1 where the start is refused."""
    check_apply(arguments)
    if arguments.until_done:
        check_alone(arguments)
    earlier = read_plan(arguments.validate) if arguments.validate is not None else None
    context, snapshot = cluster_of(arguments, "plan")
    last = last_run(context) if arguments.apply else None
    listed = node_filter(arguments, context)
    if arguments.what_if is not None:
        snapshot = switched_on(snapshot, WhatIf(arguments.what_if))
    only = MethodName(arguments.method) if arguments.method else None
    if arguments.until_done:
        return show_until_done(arguments, _with_all_prices(snapshot, context), only, listed)
    names = {node.name for node in snapshot.nodes if listed.includes(node.labels, _group(snapshot, node))}
    plan, saved, refused = _plan(
        _with_all_prices(snapshot, context), context.ports.nodegroups, context.ports.instances, only, earlier, names
    )
    document = to_json(plan, snapshot, listed=names, asked=only, cheaper_types=saved, refused=refused)
    show = partial(plan_report, document, pods=arguments.pods, verbose=arguments.verbose, asked=arguments.method)
    report = partial(show, warnings=plan.warnings)
    if not arguments.apply:
        emit(document, arguments.view, report, plan.warnings)
        return 0
    shown = tuple(command for command in plan.commands if names.intersection(command.nodes))
    request = Request(plan=replace(plan, commands=shown), snapshot=snapshot, last=last, document=document)
    return apply(arguments, context, request, report)


def _with_all_prices(snapshot: ClusterSnapshot, context: ClusterContext) -> ClusterSnapshot:
    """Add the prices of all types of a folder: those that no group launches are cheaper types at most. Live, a price
    that the plan does not need would be a call for each type.
    """
    missing = snapshot.types.keys() - snapshot.prices.on_demand.keys() if context.folder is not None else set()
    if not missing:
        return snapshot
    prices = context.ports.price_list
    zones = {subnet.zone for subnet in snapshot.subnets.values()}
    on_demand = {**prices.on_demand(missing), **snapshot.prices.on_demand}
    spot = {**prices.spot(missing, zones, snapshot.now), **snapshot.prices.spot}
    return replace(snapshot, prices=Prices(on_demand=on_demand, spot=spot))


def _plan(
    snapshot: ClusterSnapshot,
    nodegroups: KnownNodegroups,
    instances: Instances,
    only: MethodName | None,
    earlier: DisruptionPlan | None,
    names: Collection[str],
) -> tuple[DisruptionPlan, float | None, tuple[RefusedTarget, ...]]:
    """Make the plan of one method or of all, or what still holds of an earlier plan; with what cheaper types would save
    on the named nodes, and the groups whose nodes refuse pods, where the plan is a new one.
    """
    method = earlier.method if earlier is not None else only
    if method is MethodName.UNHEALTHY:
        plan = repair_plan(snapshot, instances.impaired(), _node_repair(snapshot, nodegroups))
        if earlier is None:
            return plan, None, ()
        known = {command.nodes for command in earlier.commands}
        return replace(plan, commands=tuple(one for one in plan.commands if one.nodes in known)), None, ()
    if earlier is not None:
        return validate(snapshot, earlier.method, earlier.commands), None, ()
    state = PlanningState(snapshot)
    plan = plan_in(state, only=only)
    return plan, cheaper_types_save(state, plan, names), refused_targets(state, plan)


def _node_repair(snapshot: ClusterSnapshot, nodegroups: KnownNodegroups) -> dict[str, NodeRepair]:
    """Return EKS' node auto repair of the selected managed groups; one that cannot be read is left out."""
    found: dict[str, NodeRepair] = {}
    for group in snapshot.selected:
        policy = snapshot.policy_of(group)
        if group.nodegroup is not None and policy is not None:
            nodegroup = nodegroups.get(snapshot.cluster, group.nodegroup, policy.template.ttl)
            found |= {group.name: nodegroup.repair} if nodegroup is not None else {}
    return found


def _group(snapshot: ClusterSnapshot, node: Node) -> str | None:
    group = snapshot.group_of(node)
    return group.name if group is not None else None


def read_plan(path: Path) -> DisruptionPlan:
    """Read a plan. Raises InvalidInputError naming file, path, found and expected."""
    documents = load_json(path, _PRINTED_BY)
    if len(documents) != 1:
        found = "no such file" if not documents else f"{len(documents)} documents"
        raise InvalidInputError(f"{path}: document: found {found}, expected one plan, the output of: {_PRINTED_BY}")
    raw = documents[0]
    try:
        check_of("plan")(raw, "")
        for place, command in enumerate(raw["commands"]):
            if command["decision"] == CommandDecision.REPLACE and not command.get("replacements"):
                raise SchemaError(f"commands[{place}].replacements", "nothing", "at least one, the decision is replace")
    except SchemaError as error:
        raise InvalidInputError(f"{path}: {error} (the output of: {_PRINTED_BY})") from error
    method = raw.get("method")
    if method is None and raw["commands"]:
        raise InvalidInputError(f"{path}: method: found nothing, expected the method of its commands")
    return DisruptionPlan(
        method=MethodName(method) if method else None,
        commands=tuple(_command_of(one) for one in raw["commands"]),
        verdicts={},
    )


def _command_of(raw: Mapping[str, Any]) -> Command:
    return Command(
        decision=CommandDecision(raw["decision"]),
        nodes=tuple(raw["nodes"]),
        reason=raw.get("reason") or "the earlier plan names no reason",
        replacements=tuple(_replacement(one) for one in raw.get("replacements", ())),
        savings=raw.get("savingsPerHour"),
        cost=raw.get("disruptionCost", 0.0),
        score=raw.get("score"),
    )


def _replacement(raw: Mapping[str, Any]) -> PlannedReplacement:
    capacity = raw.get("capacityType")
    return PlannedReplacement(
        group=raw["group"],
        types=tuple(raw["instanceTypes"]),
        zones=tuple(raw["zones"]),
        capacity=CapacityType(capacity) if capacity else None,
    )
