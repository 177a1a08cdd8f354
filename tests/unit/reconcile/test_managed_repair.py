"""Managed node groups: EKS repairs, or Leeward by EKS' own configuration, never both."""

from dataclasses import replace

import pytest

from leeward.cluster.facets import Known
from leeward.model.facts import FactKind, Sheet, node_repair_content, node_repair_of
from leeward.model.nodegroup import Nodegroup, NodeRepair, RepairOverride
from leeward.policy.repair import DEFAULT_CONDITIONS, RepairAction, RepairCondition, RepairPolicy
from leeward.reconcile.reconciler import reconcile_once
from leeward.reconcile.unhealthy_nodes import Act, imported, verdicts
from leeward.sync.controller import sync_once
from tests.fakes.builders import CLUSTER, GROUP, a_group
from tests.fakes.clock import START
from tests.unit.reconcile.health import NOON, a_state, minutes, policies
from tests.unit.reconcile.health import a_group as group_of
from tests.unit.reconcile.health import a_node as node_of
from tests.unit.reconcile.test_repair import IDS, ILL, a_system, reconcilers, silent
from tests.unit.reconcile.test_unhealthy_nodes import sick

CONFIG = {
    "enabled": True,
    "maxUnhealthyNodeThresholdPercentage": 40,
    "maxParallelNodesRepairedCount": 2,
    "nodeRepairConfigOverrides": [
        {
            "nodeMonitoringCondition": "AcceleratedHardwareReady",
            "nodeUnhealthyReason": "NvidiaXID64Error",
            "minRepairWaitTimeMins": 5,
            "repairAction": "Reboot",
        }
    ],
}
MANAGED = {"eks:nodegroup-name": "gpu", "eks:cluster-name": CLUSTER}


def test_eks_configuration_is_read_kept_and_read_again():
    repair = Nodegroup.from_json({"nodegroupName": "gpu", "nodeRepairConfig": CONFIG}).repair
    override = RepairOverride(condition="AcceleratedHardwareReady", reason="NvidiaXID64Error", after=5, action="Reboot")
    assert repair == NodeRepair(enabled=True, most_unhealthy=40, percent=True, overrides=(override,))
    assert node_repair_of(node_repair_content({"g": repair})) == {"g": repair}
    count = NodeRepair.from_json({"maxUnhealthyNodeThresholdCount": 0})
    assert (count.enabled, count.most_unhealthy, count.percent) == (False, 0, False)
    assert NodeRepair.from_json({}) == NodeRepair()


def managed(repair, *, known=True, rules=None, reason="NvidiaXID64Error"):
    """Ten nodes of a managed group, one with a condition for six minutes."""
    ill = sick(node_of("a1"), "AcceleratedHardwareReady", 6, reason)
    nodes = [ill, *(node_of(f"b{n}") for n in range(9))]
    group = replace(group_of("web", nodes), tags=MANAGED)
    state = a_state(nodes, groups={"web": group}, policies=policies(repair=rules or RepairPolicy()))
    return verdicts(replace(state, node_repair=Known({"web": repair} if known else {})), NOON)["a1"]


def test_a_group_that_eks_repairs_is_left_to_eks():
    verdict = managed(NodeRepair(enabled=True), rules=RepairPolicy(imports_from_eks=True))
    assert (verdict.act, verdict.reason) == (Act.LEFT, "EKS repairs its node group gpu (nodeRepairConfig)")


def test_a_group_of_which_it_is_not_known_is_left_as_well():
    assert "is not known" in managed(NodeRepair(), known=False).reason


@pytest.mark.parametrize(("imports", "act"), [(True, Act.REBOOT), (False, Act.WAIT)])
def test_overrides_count_only_where_the_policy_imports_them(imports, act):
    """EKS' default waits ten minutes and replaces, its override five and reboots."""
    repair = replace(NodeRepair.from_json(CONFIG), enabled=False)
    assert managed(repair, rules=RepairPolicy(imports_from_eks=imports)).act is act


def test_an_override_is_about_its_own_reason():
    repair = replace(NodeRepair.from_json(CONFIG), enabled=False)
    assert managed(repair, rules=RepairPolicy(imports_from_eks=True), reason="NvidiaXID79Error").act is Act.WAIT


def test_imported_rules_come_first_and_have_eks_threshold():
    rules = imported(RepairPolicy(), NodeRepair.from_json(CONFIG))
    first = RepairCondition(
        type="AcceleratedHardwareReady", reason="NvidiaXID64Error", after=minutes(5), action=RepairAction.REBOOT
    )
    assert rules.conditions == (first, *DEFAULT_CONDITIONS)
    assert (rules.max_unhealthy, rules.max_unhealthy_percent) == (40, True)
    unlimited = imported(RepairPolicy(max_unhealthy=3, max_unhealthy_percent=False), NodeRepair())
    assert (unlimited.max_unhealthy, unlimited.max_unhealthy_percent) == (3, False)


@pytest.mark.parametrize(("enabled", "repaired"), [(True, []), (False, [ILL])])
def test_the_reconciler_goes_by_what_fn_sync_has_read(enabled, repaired):
    system = a_system(silent(ILL))
    system.groups.by_name[GROUP] = replace(a_group(GROUP, *IDS), tags={**a_group().tags, **MANAGED})
    assert reconcilers(system, 2)[-1].repaired == []
    content = node_repair_content({GROUP: NodeRepair(enabled=enabled)})
    system.catalog.keep(CLUSTER, FactKind.NODE_REPAIR, Sheet(synced=START, content=content))
    system.clock.advance(minutes=11)
    assert [found.repaired for found in reconcilers(system)][-1] == repaired


def test_fn_sync_keeps_the_configuration_of_managed_groups():
    system = a_system()
    system.groups.by_name[GROUP] = replace(a_group(GROUP, *IDS), tags={**a_group().tags, **MANAGED})
    system.nodegroups.known[(CLUSTER, "gpu")] = Nodegroup(name="gpu", cluster=CLUSTER, repair=NodeRepair(enabled=True))
    sync_once(system.ports)
    sheet = system.catalog.sheet(CLUSTER, FactKind.NODE_REPAIR)
    assert node_repair_of(sheet.content) == {GROUP: NodeRepair(enabled=True)}
    assert reconcile_once(system.ports).errors == []
