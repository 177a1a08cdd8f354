"""Repair of managed node groups beside EKS' node auto repair.

A group that EKS repairs is left to EKS: two controllers would replace a node twice. So is one of which that is not
known. Where EKS does not repair, the policy may import the group's overrides and threshold
(`repair.nodeRepairConfig: import`), so that both repair by one configuration; EKS' limits of parallel repairs are not
imported, because the circuit breaker counts the nodes under repair."""

from dataclasses import replace
from datetime import timedelta

from leeward.cluster.facets import Known
from leeward.cluster.state import ClusterState
from leeward.model.group import Group
from leeward.model.nodegroup import NodeRepair
from leeward.policy.document import NodePolicy
from leeward.policy.repair import DEFAULT_CONDITIONS, RepairAction, RepairCondition, RepairPolicy

ACTIONS = {"Replace": RepairAction.REPLACE, "Reboot": RepairAction.REBOOT, "NoAction": RepairAction.NONE}


def left_to_eks(group: Group, state: ClusterState) -> str:
    """Return why the group's nodes are left to EKS, empty if they are not."""
    if group.nodegroup is None or not isinstance(state.node_repair, Known):
        return ""
    repair = state.node_repair.value.get(group.name)
    if repair is None:
        return f"whether EKS repairs its node group {group.nodegroup} is not known: fn sync has not read it"
    return f"EKS repairs its node group {group.nodegroup} (nodeRepairConfig)" if repair.enabled else ""


def rules_of(policy: NodePolicy, group: Group | None, state: ClusterState) -> RepairPolicy:
    """Return the rules of the policy for a node of the group, with what they import from EKS."""
    rules = policy.repair
    if group is None or not rules.imports_from_eks or not isinstance(state.node_repair, Known):
        return rules
    repair = state.node_repair.value.get(group.name)
    return rules if repair is None else imported(rules, repair)


def imported(rules: RepairPolicy, repair: NodeRepair) -> RepairPolicy:
    """Return the rules with EKS' overrides before their own conditions, and with EKS' threshold if it has one."""
    own = [
        RepairCondition(
            type=one.condition,
            reason=one.reason,
            after=timedelta(minutes=one.after),
            action=ACTIONS.get(one.action, RepairAction.NONE),
        )
        for one in repair.overrides
        if one.condition
    ]
    rules = replace(rules, conditions=(*own, *rules.conditions))
    if repair.most_unhealthy is None:
        return rules
    return replace(rules, max_unhealthy=repair.most_unhealthy, max_unhealthy_percent=repair.percent)


def conditions_of(group: Group | None, state: ClusterState) -> tuple[RepairCondition, ...]:
    """Return the conditions by which a node of the group counts as unhealthy; EKS' own for nodes of no policy."""
    policy = state.policy_of(group)
    return rules_of(policy, group, state).conditions if policy is not None else DEFAULT_CONDITIONS
