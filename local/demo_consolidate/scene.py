"""Fleet of the consolidation demo: one group whose image is old, an empty node, three large nodes with little on them,
and a pod whose owner has opted out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local import fleet
from local.demo import scenario
from local.fleet import GroupPlan
from local.stack import ROOT, LocalStack

POLICY = Path(__file__).parent / "policy.yaml"
WEB, BATCH, WIDE, SMALL = "shop-web", "shop-batch", "shop-wide", "shop-small"
POOL = "shop.example/pool"
PRICES = {"m5.large": 0.096, "m5.xlarge": 0.192, "m5.2xlarge": 0.384}
HELD = "ledger"  # the Deployment whose pod has opted out


def group(name: str, pool: str, size: int, kind: str = "m5.large") -> GroupPlan:
    """Plan a group whose nodes carry the pool's label, which a tag declares in Cluster Autoscaler's format."""
    tag = f"k8s.io/cluster-autoscaler/node-template/label/{POOL}"
    return GroupPlan(name=name, size=size, type=kind, maximum=6, tags={tag: pool})


GROUPS = (
    group(WEB, "web", 3),
    group(BATCH, "batch", 1),
    group(WIDE, "shop", 3, "m5.2xlarge"),
    group(SMALL, "shop", 0, "m5.xlarge"),
)
TYPES = {plan.name: plan.type for plan in GROUPS}
WORKLOADS = (
    *(fleet.deployment("web", 6, cpu="700m", on={POOL: "web"}), fleet.budget("web", maxUnavailable=1)),
    fleet.deployment(
        HELD, 1, cpu="100m", on={POOL: "web"}, annotations={"karpenter.sh/do-not-disrupt": "true"}, grace=5
    ),
    *(fleet.deployment("cart", 6, cpu="400m", on={POOL: "shop"}), fleet.budget("cart", maxUnavailable=2)),
    fleet.daemon_set("agent"),
)
NODES = sum(plan.size for plan in GROUPS)


def settings(stack: LocalStack) -> dict[str, Any]:
    """Return the CDK context of the demo's deployment."""
    return {"clusters": [{"name": stack.cluster, "policies": [str(POLICY.relative_to(ROOT))]}]}


def build_fleet(stack: LocalStack) -> None:
    """Build seven nodes of three groups, a fourth group at zero, and the prices of their types."""
    network = fleet.build_network(stack)
    for plan in GROUPS:
        fleet.build_group(stack, network, plan)
    stack.control("PUT", "prices", {"on-demand": PRICES})


def settled(stack: LocalStack) -> bool:
    """Return whether every node is Ready and every pod runs."""
    ready = sum(scenario.is_ready(node) for node in stack.kubernetes("GET", "/api/v1/nodes")["items"])
    return ready == NODES and ready_pods(stack) == pods()


def pods() -> int:
    """Return the number of pods that the workloads request."""
    return sum(thing["spec"].get("replicas", 0) for thing in WORKLOADS)


def ready_pods(stack: LocalStack) -> int:
    """Return the number of ready pods of the workloads."""
    return sum(scenario.is_ready(pod) for pod in stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"])


def publish_image(stack: LocalStack) -> str:
    """Put another image in the web group's launch template, of which the group launches the latest version: its nodes
    have drifted from now on. Return the image's id.
    """
    ec2 = stack.client("ec2")
    found = ec2.describe_launch_template_versions(LaunchTemplateName=WEB, Versions=["$Latest"])
    present = str(found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"])
    image = next(str(one["ImageId"]) for one in ec2.describe_images()["Images"] if one["ImageId"] != present)
    ec2.create_launch_template_version(
        LaunchTemplateName=WEB, SourceVersion="$Latest", LaunchTemplateData={"ImageId": image}
    )
    return image


def sizes(stack: LocalStack) -> Mapping[str, int]:
    """Return desired sizes by group."""
    answer = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[*TYPES])
    return {str(one["AutoScalingGroupName"]): int(one["DesiredCapacity"]) for one in answer["AutoScalingGroups"]}


def cost(stack: LocalStack) -> float:
    """Return the dollars an hour of all existing nodes."""
    return sum(PRICES[TYPES[name]] * len(fleet.instances_of(stack, name)) for name in TYPES)


def images(stack: LocalStack, name: str) -> Mapping[str, str]:
    """Return the image by instance, of the members of a group."""
    ids = [str(member["InstanceId"]) for member in fleet.instances_of(stack, name)]
    found = stack.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
    return {str(one["InstanceId"]): str(one["ImageId"]) for each in found for one in each["Instances"]}


def node_of(stack: LocalStack, name: str) -> str:
    """Return the node on which the only pod of a Deployment runs."""
    pods = stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
    return next(str(pod["spec"]["nodeName"]) for pod in pods if pod["metadata"]["labels"].get("app") == name)


def sync(stack: LocalStack) -> None:
    """Run the schedule of fn sync now."""
    stack.client("lambda").invoke(FunctionName="leeward-sync")


def decide(stack: LocalStack) -> None:
    """Run the schedule of fn disruption-planner now."""
    stack.client("lambda").invoke(FunctionName="leeward-disruption-planner")


def suspended(stack: LocalStack) -> list[str]:
    """Return the groups with a suspended process."""
    answer = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[*TYPES])
    return [str(one["AutoScalingGroupName"]) for one in answer["AutoScalingGroups"] if one["SuspendedProcesses"]]


def disruptions_run(stack: LocalStack) -> list[str]:
    """Return the status of every execution of disruption."""
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-disruption"
    pages = stack.client("stepfunctions").get_paginator("list_executions").paginate(stateMachineArn=machine)
    return [str(run["status"]) for page in pages for run in page["executions"]]
