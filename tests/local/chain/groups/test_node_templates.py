"""What fn sync knows of a managed node group at zero, on the deployed stack: from DescribeNodegroup, or from tags."""

import json
import time
from collections.abc import Iterator

import pytest

from leeward.adapters.aws.catalog import DynamoCatalog
from leeward.adapters.aws.table import DynamoTable
from leeward.model.facts import ClusterFacts
from local import fleet
from tests.local.chain.conftest import called, forget_what_is_cached, logged

pytestmark = pytest.mark.local

MANY = {f"example.com/label-{number}": str(number) for number in range(60)}
TTL = 1.5  # seconds: that of the policy of `eks-brief-*` and its jitter
TAG = "k8s.io/cluster-autoscaler/node-template/label/example.com/label-1"


def made(stack, network: fleet.Network, name: str) -> str:
    """The Auto Scaling group of a node group without nodes and with more labels than a group may have tags."""
    eks = stack.client("eks")
    eks.create_nodegroup(
        clusterName=stack.cluster,
        nodegroupName=name,
        nodeRole="arn:aws:iam::000000000000:role/node",
        subnets=list(network.subnets),
        instanceTypes=["m5.large", "m5a.large"],
        capacityType="SPOT",
        labels=MANY,
        taints=[{"key": "dedicated", "value": "web", "effect": "NO_EXECUTE"}],
        scalingConfig={"minSize": 0, "maxSize": 3, "desiredSize": 0},
    )
    described = eks.describe_nodegroup(clusterName=stack.cluster, nodegroupName=name)["nodegroup"]
    return str(described["resources"]["autoScalingGroups"][0]["name"])


@pytest.fixture
def group(stack, network: fleet.Network) -> Iterator[str]:
    """One whose description is known for as long as a test takes; one of its labels is a tag too."""
    eks, name = stack.client("eks"), made(stack, network, "known")
    tag = {"Key": TAG, "Value": "tag", "ResourceId": name, "ResourceType": "auto-scaling-group"}
    stack.client("autoscaling").create_or_update_tags(Tags=[{**tag, "PropagateAtLaunch": True}])
    yield name
    stack.control("DELETE", "faults")
    eks.delete_nodegroup(clusterName=stack.cluster, nodegroupName="known")


def template(stack, group):
    class Clients:
        def get(self, service):
            return stack.client(service)

    sheets = DynamoCatalog(DynamoTable(Clients(), "leeward")).read(stack.cluster)
    return ClusterFacts.from_sheets(sheets).templates[group]


def test_the_node_of_a_group_at_zero_is_known_and_with_the_permission_denied_as_far_as_its_tags_say(stack, group):
    called(stack, "sync")
    known = template(stack, group)
    node = known.node
    assert {**MANY, "example.com/label-1": "tag"}.items() <= node["metadata"]["labels"].items()
    assert node["spec"]["taints"] == [{"key": "dedicated", "value": "web", "effect": "NoExecute"}]
    assert node["status"]["allocatable"]["cpu"] == "1930m"
    assert (known.types, known.capacity) == (("m5.large", "m5a.large"), "spot")
    assert len(known.zones) == 3
    described = described_so_far(stack)
    called(stack, "sync")
    assert described_so_far(stack) == described  # the answer is still known

    fault = {"service": "eks", "action": "DescribeNodegroup", "code": "AccessDeniedException", "status": 403}
    stack.control("POST", "faults", {**fault, "times": None, "function": "leeward-sync"})
    forget_what_is_cached(stack, "leeward-sync")
    for _ in range(2):
        called(stack, "sync")
    labels = template(stack, group).node["metadata"]["labels"]
    assert (labels["example.com/label-1"], labels["nodegroup-name"]) == ("tag", "known")
    assert "example.com/label-2" not in labels
    (line,) = logged(stack, "sync", "eks:DescribeNodegroup")
    assert f"{stack.cluster}/known: AccessDeniedException" in json.loads(line)["message"]


def described_so_far(stack):
    return stack.control("GET", "calls")["leeward-sync"]["eks:DescribeNodegroup"]


def test_a_node_group_is_described_again_once_its_description_is_older_than_the_ttl(stack, network):
    """TC1, TC3 and TC4 of Cluster Autoscaler's proposal: the request names the cluster and the node group of the tags,
    and is made where nothing is known and once the description is too old. The test above has TC2, TC5 and TC6.
    """
    eks, name = stack.client("eks"), made(stack, network, "brief")
    called(stack, "sync")
    asked = described_so_far(stack)
    assert template(stack, name).node["metadata"]["labels"]["example.com/label-2"] == "2"
    eks.update_nodegroup_config(
        clusterName=stack.cluster,
        nodegroupName="brief",
        labels={"addOrUpdateLabels": {"example.com/label-2": "changed"}},
    )
    time.sleep(TTL)
    called(stack, "sync")
    assert template(stack, name).node["metadata"]["labels"]["example.com/label-2"] == "changed"
    assert described_so_far(stack) > asked
    requests = [one for one in stack.control("GET", "requests") if one["action"] == "eks:DescribeNodegroup"]
    assert any(one["resource"].endswith(f"nodegroup/{stack.cluster}/brief/id") for one in requests)
    eks.delete_nodegroup(clusterName=stack.cluster, nodegroupName="brief")
