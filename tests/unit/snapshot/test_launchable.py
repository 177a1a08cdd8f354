"""Nodes that a group would launch: what is the same for every type, and what a zone adds."""

from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode
from leeward.node_template.choices import Choices
from leeward.snapshot.launchable import launchable

ZONE_ID = "topology.k8s.aws/zone-id"
SUBNETS = (Subnet(id="subnet-1", zone="a", zone_id="tst1-az3"), Subnet(id="subnet-2", zone="b"))


def launches(**labels_of_types):
    """`labels_of_types`: by instance type."""
    group = Group(
        name="web", tags={}, minimum=0, maximum=9, desired=0, zones=("a", "b"), subnets=("subnet-1", "subnet-2")
    )
    expected = [
        ExpectedNode(name="web-template", group="web", labels=labels, taints=(), capacity={}, allocatable={})
        for labels in labels_of_types.values()
    ]
    choices = Choices(types=tuple(labels_of_types), zones=group.zones, capacity=CapacityType.ON_DEMAND)
    return launchable(group, choices, expected, SUBNETS, Prices())


def test_new_nodes_of_a_zone_carry_the_id_of_the_zone():
    template = launches(small={"pool": "web", ZONE_ID: "of-another"}).template
    assert [template.new_node(at, 1).labels.get(ZONE_ID) for at in (0, 1)] == ["tst1-az3", None]
