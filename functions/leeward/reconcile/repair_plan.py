"""Plan of `leeward plan --method unhealthy`: the verdicts as a plan, from a whole snapshot.

The minute reconciler carries them out one by one; here they are only printed."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.cluster.facets import Known
from leeward.disruption.command import Command, CommandDecision, DisruptionPlan, MethodName, PlannedReplacement
from leeward.disruption.command import MethodVerdict as PlanVerdict
from leeward.model.instance_status import Impairment
from leeward.model.node import Node
from leeward.model.nodegroup import NodeRepair
from leeward.reconcile.unhealthy_nodes import Act, RepairVerdict, verdicts
from leeward.snapshot.cluster import ClusterSnapshot

EMPTY: Mapping[str, NodeRepair] = {}


def repair_plan(
    snapshot: ClusterSnapshot, impaired: Mapping[str, Impairment], node_repair: Mapping[str, NodeRepair] = EMPTY
) -> DisruptionPlan:
    """Plan one command for each node that would be repaired now. `impaired`: failing status checks by instance;
    `node_repair`: EKS' node auto repair by managed group.

    A node whose instance is gone is deleted: its group has another already, or is to have fewer.
    """
    judged = verdicts(replace(snapshot, impaired=Known(impaired), node_repair=Known(node_repair)), snapshot.now)
    acting = [name for name, verdict in judged.items() if verdict.acts]
    nodes = {node.name: node for node in snapshot.nodes}
    return DisruptionPlan(
        method=MethodName.UNHEALTHY,
        commands=tuple(_command(nodes[name], judged[name], snapshot) for name in acting),
        verdicts={name: {MethodName.UNHEALTHY: _as_plan_verdict(verdict)} for name, verdict in judged.items()},
        warnings=snapshot.warnings,
    )


def _as_plan_verdict(verdict: RepairVerdict) -> PlanVerdict:
    return PlanVerdict(candidate=verdict.acts, reason=verdict.reason)


def _command(node: Node, verdict: RepairVerdict, snapshot: ClusterSnapshot) -> Command:
    replaced = verdict.act is Act.REPLACE and not verdict.gone
    decision = (
        CommandDecision.REPLACE if replaced else CommandDecision.DELETE if verdict.gone else CommandDecision.REBOOT
    )
    new = _replacement(node, snapshot) if replaced else ()
    return Command(decision=decision, nodes=(node.name,), reason=verdict.reason, replacements=new, savings=0.0)


def _replacement(node: Node, snapshot: ClusterSnapshot) -> tuple[PlannedReplacement, ...]:
    """Return any instance that the group may launch, in any of its zones; none if that is not known."""
    group = snapshot.group_of(node)
    launchable = snapshot.launchables.get(group.name) if group else None
    if launchable is None or not launchable.types or not launchable.zones:
        return ()
    return (
        PlannedReplacement(
            group=launchable.group,
            types=launchable.types,
            zones=launchable.zones,
            capacity=launchable.capacity,
            price=launchable.price,
        ),
    )
