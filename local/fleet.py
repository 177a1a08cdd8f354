"""Three-zone network and node groups in the local AWS, workloads for the local cluster: for demos and tests."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.stack import LocalStack
from local.workloads import apply_objects, apply_roles

ZONES = ("a", "b", "c")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """Plan of an Auto Scaling group; `spot` groups have a mixed instances policy that is all spot."""

    name: str
    size: int
    type: str = "m5.large"
    spot: bool = False
    maximum: int = 12
    tags: Mapping[str, str] = field(default_factory=dict)
    image: str = ""  # empty: the first that the local EC2 lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Network made by `build_network`."""

    vpc: str
    subnets: tuple[str, ...]


def build_network(stack: LocalStack, prefix: int = 24) -> Network:
    """Build a VPC with one subnet a zone; `prefix` sizes the subnets."""
    ec2 = stack.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.40.0.0/16")["Vpc"]["VpcId"]
    apart = max(1, 2 ** (24 - prefix))
    subnets = tuple(
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.40.{number * apart}.0/{prefix}", AvailabilityZone=f"{stack.region}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate(ZONES)
    )
    return Network(vpc=vpc, subnets=subnets)


def build_group(stack: LocalStack, network: Network, plan: GroupPlan) -> None:
    """Build a launch template and a group of `plan.size` instances over all zones, tagged for the cluster."""
    ec2, autoscaling = stack.client("ec2"), stack.client("autoscaling")
    image = plan.image or stack.image
    user_data = base64.b64encode(f"cluster={stack.cluster}".encode()).decode()
    template = ec2.create_launch_template(
        LaunchTemplateName=plan.name,
        LaunchTemplateData={"ImageId": image, "InstanceType": plan.type, "UserData": user_data},
        TagSpecifications=[
            {
                "ResourceType": "launch-template",
                "Tags": [{"Key": f"kubernetes.io/cluster/{stack.cluster}", "Value": "owned"}],
            }
        ],
    )["LaunchTemplate"]["LaunchTemplateId"]
    specification = {"LaunchTemplateId": template, "Version": "$Latest"}
    source: dict[str, Any] = {"LaunchTemplate": specification}
    if plan.spot:
        source = {
            "MixedInstancesPolicy": {
                "LaunchTemplate": {
                    "LaunchTemplateSpecification": specification,
                    "Overrides": [{"InstanceType": plan.type}],
                },
                "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0, "OnDemandBaseCapacity": 0},
            }
        }
    tags = {f"kubernetes.io/cluster/{stack.cluster}": "owned", "Name": plan.name, **plan.tags}
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=plan.name,
        MinSize=0,
        MaxSize=plan.maximum,
        DesiredCapacity=plan.size,
        VPCZoneIdentifier=",".join(network.subnets),
        Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in tags.items()],
        **source,
    )


def instances_of(stack: LocalStack, group: str) -> list[Mapping[str, Any]]:
    """Return the group's instances as it lists them now."""
    groups = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    return list(groups["AutoScalingGroups"][0]["Instances"])


def apply(stack: LocalStack, objects: Sequence[Mapping[str, Any]]) -> None:
    """Apply the ClusterRoles that a user applies once, and these workloads. It needs no kubectl."""
    apply_roles(stack)
    apply_objects(stack, objects)


def let_in(stack: LocalStack, *more: str) -> None:
    """Create the caller's access entry: a user of `leeward` needs one, as for kubectl. `more`: further groups."""
    arn = stack.client("sts").get_caller_identity()["Arn"]
    stack.client("eks").create_access_entry(
        clusterName=stack.cluster, principalArn=arn, kubernetesGroups=["leeward:read", "leeward:taint", *more]
    )
    stack.take_over_access_entries()


def deployment(
    name: str,
    replicas: int,
    *,
    cpu: str = "250m",
    grace: int = 20,
    on: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a Deployment whose pods end within `grace` seconds. `on`: labels of the nodes that they require."""
    labels = {"app": name}
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(annotations or {})},
                "spec": {
                    "terminationGracePeriodSeconds": grace,
                    "nodeSelector": dict(on or {}),
                    "containers": [container],
                },
            },
        },
    }


def budget(name: str, **limit: int | str) -> dict[str, Any]:
    """Return a PodDisruptionBudget over the Deployment of the same name: `maxUnavailable=1` or `minAvailable=…`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **limit},
    }


def daemon_set(name: str) -> dict[str, Any]:
    """Return a DaemonSet of an agent on every node that tolerates everything, as kube-proxy does."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "agent", "image": "agent"}],
                },
            },
        },
    }


def manifests(objects: Sequence[Mapping[str, Any]]) -> str:
    """Return one document that `kubectl apply -f -` accepts."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
