"""Test groups: one for each play, made before it and removed after it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from account_test.context import Context
from account_test.errors import StepError
from account_test.journal import Made
from account_test.node_template import group_tags, template_data
from account_test.run import TAG


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """Specification of a group. `spot`: all instances are spot. `managed`: by a managed node group. `foreign`: outside
    of the test's policies.
    """

    part: str
    size: int
    spot: bool = False
    managed: bool = False
    foreign: bool = False

    @property
    def maximum(self) -> int:
        """Maximum size, one more than the group has: a replacement needs it."""
        return self.size + 1


def make_group(context: Context, plan: GroupPlan) -> str:
    """Create launch template and group; return the Auto Scaling group's name."""
    run = context.run
    name = run.name(plan.part)
    cluster = context.aws("eks").describe_cluster(name=run.cluster)["cluster"]
    if plan.managed:
        return _managed(context, plan, name)
    template = _template(context, name, template_data(context, cluster, name))
    specification = {"LaunchTemplateId": template, "Version": "1"}
    source: dict[str, Any] = {"LaunchTemplate": specification}
    if plan.spot:
        launch = {
            "LaunchTemplateSpecification": specification,
            "Overrides": [{"InstanceType": kind} for kind in spot_types(run.instance_type)],
        }
        market = {"OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": "price-capacity-optimized"}
        source = {"MixedInstancesPolicy": {"LaunchTemplate": launch, "InstancesDistribution": market}}
    context.journal.making("auto-scaling-group", name)
    context.aws("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=plan.maximum,
        DesiredCapacity=plan.size,
        VPCZoneIdentifier=",".join(run.subnets),
        Tags=group_tags(run, name),
        **source,
    )
    return name


def spot_types(kind: str) -> list[str]:
    """Return two types of one size: spot capacity of a single one may be short."""
    family, _, size = kind.partition(".")
    return [kind, f"{family}a.{size}"] if family in {"t3", "m5", "c5", "r5", "m6", "m7"} else [kind]


def _managed(context: Context, plan: GroupPlan, name: str) -> str:
    run, eks = context.run, context.aws("eks")
    data: dict[str, Any] = {"InstanceType": run.instance_type}
    template = _template(context, name, data)
    context.journal.making("node-group", name, cluster=run.cluster)
    eks.create_nodegroup(
        clusterName=run.cluster,
        nodegroupName=name,
        nodeRole=context.base["nodeRole"],
        subnets=list(run.subnets),
        launchTemplate={"id": template, "version": "1"},
        scalingConfig={"minSize": 1, "maxSize": plan.size + 1, "desiredSize": plan.size},
        labels={TAG: name},
        taints=[{"key": TAG, "value": name, "effect": "NO_SCHEDULE"}],
        tags=run.tags,
    )
    eks.get_waiter("nodegroup_active").wait(clusterName=run.cluster, nodegroupName=name)
    described = eks.describe_nodegroup(clusterName=run.cluster, nodegroupName=name)["nodegroup"]
    return str(described["resources"]["autoScalingGroups"][0]["name"])


def _template(context: Context, name: str, data: dict[str, Any]) -> str:
    """Create two versions that differ only in a tag: an upgrade from the first to the second needs no other image."""
    ec2, run = context.aws("ec2"), context.run
    context.journal.making("launch-template", name)
    of_cluster = {f"kubernetes.io/cluster/{run.cluster}": "owned", **run.tags}  # without it no launch is allowed
    tags = [{"ResourceType": "launch-template", "Tags": [{"Key": key, "Value": of_cluster[key]} for key in of_cluster]}]
    made = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data, TagSpecifications=tags)
    template = str(made["LaunchTemplate"]["LaunchTemplateId"])
    again = {"ResourceType": "instance", "Tags": [{"Key": "Version", "Value": "2"}, {"Key": TAG, "Value": run.id}]}
    ec2.create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"TagSpecifications": [again]}
    )
    return template


def remove_group(context: Context, plan: GroupPlan, remove: Callable[[Made], None]) -> None:
    """Remove the group after its play: what the journal has of it, in reverse order."""
    name = context.run.name(plan.part)
    mine: list[Made] = [made for made in context.journal.left if made.name == name]
    for made in mine:
        remove(made)


def described(context: Context, group: str) -> dict[str, Any]:
    """Return the group as DescribeAutoScalingGroups reports it. Raises StepError if it does not exist."""
    answer = context.aws("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    for found in answer["AutoScalingGroups"]:
        return dict(found)
    raise StepError(f"Auto Scaling group {group} is gone")
