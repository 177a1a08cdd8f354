"""Estimate of what instance types would save that no group launches."""

from leeward.disruption.alternatives import cheaper_types_save
from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_in
from leeward.disruption.planning_state import PlanningState
from leeward.model.instance_type import InstanceType
from tests.unit.disruption.fleet import a_fleet

SMALL = InstanceType(name="small", vcpus=1, memory_mib=2400, max_enis=3, ips_per_eni=10)
MEDIUM = InstanceType(name="medium", vcpus=2, memory_mib=4800, max_enis=3, ips_per_eni=10)
ARM = InstanceType(name="small", vcpus=1, memory_mib=2400, max_enis=3, ips_per_eni=10, architectures=("arm64",))


def saves(fleet, *types, names=("n1",)):
    snapshot = fleet.having(types={one.name: one for one in types}).snapshot()
    state = PlanningState(snapshot)
    return round(cheaper_types_save(state, plan_in(state, only=MethodName.CONSOLIDATION), names), 2)


def a_large_node(*types, cpu="500m"):
    return a_fleet().group("web", *(types or ("large",))).node("n1").pod("a", "n1", cpu=cpu)


def test_the_cheapest_type_that_holds_the_requests_counts():
    assert saves(a_large_node(), SMALL, MEDIUM) == 0.09
    assert saves(a_large_node(cpu="1500m"), SMALL, MEDIUM) == 0.06
    assert saves(a_large_node(cpu="2500m"), SMALL, MEDIUM) == 0


def test_a_type_that_the_group_launches_beside_a_more_expensive_one_counts():
    assert saves(a_large_node("large", "small"), SMALL, MEDIUM) == 0.09


def test_a_type_of_another_architecture_is_none():
    fleet = a_large_node()
    fleet.nodes[0]["metadata"]["labels"]["kubernetes.io/arch"] = "amd64"
    assert saves(fleet, ARM) == 0


def test_a_node_that_is_removed_not_considered_or_not_named_saves_nothing():
    assert saves(a_large_node().group("batch", "small"), SMALL) == 0  # it is replaced
    kept = a_large_node()
    kept.nodes[0]["metadata"]["annotations"] = {"leeward.dev/do-not-disrupt": "true"}
    assert saves(kept, SMALL) == 0
    assert saves(a_large_node(), SMALL, names=()) == 0
