"""A managed node group on the deployed stack: EKS rolls it; Leeward starts its update, watches, names what blocks."""

import json
import re

import pytest

from local import fleet
from local.demo import ledger
from tests.local.chain.conftest import Crew, called
from tests.local.chain.groups.test_node_group_upgrade import ended, group_of, start

pytestmark = pytest.mark.local

MACHINE, NODEGROUP = "leeward-managed-node-group-upgrade", "web-managed"
LABEL = "eks.amazonaws.com/sourceLaunchTemplateVersion"


@pytest.fixture
def managed(stack, network):
    """Two Ready nodes of a node group with a launch template of its own, of which there is a second version."""
    eks, ec2 = stack.client("eks"), stack.client("ec2")
    images = [image["ImageId"] for image in ec2.describe_images()["Images"]]
    data = {"ImageId": images[0], "InstanceType": "m5.large"}
    template = ec2.create_launch_template(LaunchTemplateName=NODEGROUP, LaunchTemplateData=data)["LaunchTemplate"]
    ec2.create_launch_template_version(
        LaunchTemplateName=NODEGROUP, SourceVersion="1", LaunchTemplateData={"ImageId": images[1]}
    )
    eks.create_nodegroup(
        clusterName=stack.cluster,
        nodegroupName=NODEGROUP,
        nodeRole="arn:aws:iam::000000000000:role/node",
        subnets=list(network.subnets),
        launchTemplate={"id": template["LaunchTemplateId"], "version": "1"},
        scalingConfig={"minSize": 0, "maxSize": 2, "desiredSize": 2},
    )
    described = eks.describe_nodegroup(clusterName=stack.cluster, nodegroupName=NODEGROUP)["nodegroup"]
    name = described["resources"]["autoScalingGroups"][0]["name"]
    members = [str(one["InstanceId"]) for one in fleet.instances_of(stack, name)]
    team = Crew(stack=stack, group=name, instances=members)
    team.until(lambda: all(one in ledger.nodes(stack) for one in members), "the nodes of the node group")
    stack.control("PUT", f"eks/{stack.cluster}", {"evictionSeconds": 4})
    called(stack, "sync")
    yield team
    stack.control("PUT", f"eks/{stack.cluster}", {"evictionSeconds": 900})
    stack.kubectl("delete", "deployment,pdb", "held", "--ignore-not-found")
    eks.delete_nodegroup(clusterName=stack.cluster, nodegroupName=NODEGROUP)


def run_held_pod(stack, team):
    """One pod that may run on nodes of the node group alone, under a budget that never allows its eviction."""
    workload = fleet.deployment("held", 1, cpu="100m", grace=1)
    workload["spec"]["template"]["spec"]["nodeSelector"] = {"eks.amazonaws.com/nodegroup": NODEGROUP}
    objects = [workload, fleet.budget("held", maxUnavailable=0)]
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests(objects))

    def ready():
        found = stack.kubernetes("GET", "/apis/apps/v1/namespaces/default/deployments/held")
        return found.get("status", {}).get("readyReplicas") == 1

    team.until(ready, "the pod")


def versions(stack, group):
    """Of the launch template of the node group's own, as nodes in service are labelled."""
    serving = (one for one in group_of(stack, group)["Instances"] if one["LifecycleState"] == "InService")
    nodes, members = ledger.nodes(stack), [one["InstanceId"] for one in serving]
    return sorted(nodes[one]["metadata"]["labels"][LABEL] for one in members if one in nodes)


def writes(stack):
    """What fn upgrade has changed through Auto Scaling."""
    calls = stack.control("GET", "calls").get("leeward-upgrade", {})
    changing = (name for name in calls if name.startswith("autoscaling:") and ":Describe" not in name)
    return {name: calls[name] for name in changing}


def passed_on(stack, team, execution):
    """The execution of the other state machine that goes on, as the end of this one names it."""
    outcome = ended(stack, team, execution)
    assert outcome["status"] == "SUCCEEDED", outcome
    document = json.loads(outcome["output"])
    assert document["next"] == "continued", document
    name = re.fullmatch("execution (.+) continues", document["why"])[1]
    return f"arn:aws:states:{stack.region}:{stack.account}:execution:{MACHINE}:{name}"


def test_eks_rolls_it_to_the_version_asked_for_and_a_blocked_drain_is_named_then_forced(stack, managed):
    group, before = managed.group, writes(stack)
    run_held_pod(stack, managed)

    begun = start(stack, f"{NODEGROUP}-1", group=group, launchTemplateVersion="2")
    outcome = ended(stack, managed, passed_on(stack, managed, begun))
    assert outcome["error"] == "PreflightBlocked"
    assert "PdbNeverAllows (pdb default/held)" in outcome["cause"]
    assert versions(stack, group) == ["1", "1"]

    override = {"group": group, "launchTemplateVersion": "2", "override": ["PdbNeverAllows"]}
    outcome = ended(stack, managed, start(stack, f"{NODEGROUP}-2", MACHINE, **override))
    assert outcome["error"] == "PodEvictionFailure", outcome["cause"]
    assert "default/held-" in outcome["cause"]
    assert "pdb default/held" in outcome["cause"]

    outcome = ended(stack, managed, start(stack, f"{NODEGROUP}-3", MACHINE, **override, force=True))
    assert outcome["status"] == "SUCCEEDED", outcome
    managed.until(lambda: versions(stack, group) == ["2", "2"], "two nodes of the second version")
    after = group_of(stack, group)
    assert (after["DesiredCapacity"], after["MaxSize"]) == (2, 2)
    assert writes(stack) == before, "nothing was written through Auto Scaling"
