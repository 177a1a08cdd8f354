"""How many volumes a node that does not exist yet is trusted with."""

import pytest

from leeward.model.instance_type import InstanceType
from leeward.scheduling.nodes import NodeSpec
from leeward.snapshot.launches import estimated_limit, seen_limits, with_volume_limits
from tests.unit.disruption.fleet import a_fleet

EBS = "ebs.csi.aws.com"


def a_node(name, kind, **limits):
    return NodeSpec(name=name, labels={"node.kubernetes.io/instance-type": kind}, allocatable={}, attach_limits=limits)


def limits(*types, known=(), seen=()):
    launchable = a_fleet().group("web", *types).snapshot().launchables["web"]
    kinds = {kind.name: kind for kind in known}
    return with_volume_limits(launchable, kinds, seen_limits(seen)).template.node.attach_limits


def a_type(name="medium", **fields):
    return InstanceType(name=name, vcpus=2, memory_mib=8192, **{"max_enis": 3, **fields})


@pytest.mark.parametrize(
    ("kind", "volumes"),
    [
        (a_type(), 24),  # 28, three interfaces, the root
        (a_type(local_storage_gb=75), 23),
        (a_type(max_volumes=10), 6),
        (a_type(max_volumes=128), 24),
        (a_type(nitro=False), 38),
        (a_type(max_enis=30), 1),
    ],
    ids=["nitro", "a local disk", "EC2 says fewer", "EC2 says more", "xen", "at least one"],
)
def test_what_the_driver_would_reckon_on_the_careful_side(kind, volumes):
    assert estimated_limit(kind) == volumes


def test_what_nodes_of_the_type_say_comes_first_and_the_fewest_of_them_counts():
    seen = [a_node("n1", "medium", **{EBS: 25}), a_node("n2", "medium", **{EBS: 26, "efs": 7})]
    assert limits("medium", known=[a_type()], seen=seen) == {EBS: 25, "efs": 7}


def test_the_type_with_the_fewest_stands_for_the_group():
    seen = [a_node("n1", "medium", **{EBS: 25})]
    assert limits("medium", "large", known=[a_type("large", max_volumes=12)], seen=seen) == {EBS: 8}


def test_of_an_unknown_type_nothing_is_reported():
    assert limits("medium") == {}
