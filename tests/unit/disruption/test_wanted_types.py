"""Instance types that consolidation would want and may not use."""

from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_in
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.wanted_types import wanted_types
from leeward.model.instance_type import InstanceType
from leeward.policy.document import Requirement
from tests.unit.disruption.fleet import a_fleet, a_policy

SMALL = InstanceType(name="small", vcpus=1, memory_mib=2400, max_enis=3, ips_per_eni=10)
MEDIUM = InstanceType(name="medium", vcpus=2, memory_mib=4800, max_enis=3, ips_per_eni=10)
ARM = InstanceType(name="small", vcpus=1, memory_mib=2400, max_enis=3, ips_per_eni=10, architectures=("arm64",))


def wanted(fleet, *types):
    snapshot = fleet.having(types={one.name: one for one in types}).snapshot()
    state = PlanningState(snapshot)
    return wanted_types(state, plan_in(state, only=MethodName.CONSOLIDATION))


def a_large_node(*policies, types=("large",), cpu="500m"):
    return a_fleet(*policies).group("web", *types).node("n1").pod("a", "n1", cpu=cpu)


def test_the_cheapest_type_that_the_pods_fit_on_is_named_with_its_price():
    (found,) = wanted(a_large_node(), SMALL, MEDIUM)
    assert (found.node, found.group, found.type, found.price, found.savings) == ("n1", "web", "small", 0.03, 0.09)
    assert found.reason == "group web launches large alone"


def test_a_type_that_is_too_small_is_passed_over():
    assert [one.type for one in wanted(a_large_node(cpu="1500m"), SMALL, MEDIUM)] == ["medium"]
    assert wanted(a_large_node(cpu="2500m"), SMALL, MEDIUM) == ()


def test_a_type_that_the_group_launches_beside_a_more_expensive_one_is_named():
    (found,) = wanted(a_large_node(types=("large", "small")), SMALL, MEDIUM)
    assert found.reason == "group web may launch large as well: the most expensive type counts"


def test_a_requirement_that_forbids_the_type_is_named():
    key = "node.kubernetes.io/instance-type"
    policy = a_policy(requirements=(Requirement(key=key, operator="In", values=("large", "huge")),))
    (found,) = wanted(a_large_node(policy), SMALL)
    assert found.reason == f"requirement {key} of policy web does not allow it"


def test_a_type_of_another_architecture_is_none():
    fleet = a_large_node()
    fleet.nodes[0]["metadata"]["labels"]["kubernetes.io/arch"] = "amd64"
    assert wanted(fleet, ARM) == ()


def test_a_node_that_is_removed_or_not_considered_wants_nothing():
    fleet = a_large_node().group("batch", "small")
    assert wanted(fleet, SMALL) == ()  # it is replaced
    kept = a_large_node()
    kept.nodes[0]["metadata"]["annotations"] = {"leeward.dev/do-not-disrupt": "true"}
    assert wanted(kept, SMALL) == ()
