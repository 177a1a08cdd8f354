"""Groups, launch templates and instance types with defaults: `a_node(tags={…})` is the template's Node object."""

import base64
import json
from pathlib import Path

from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.build import TAGS_WIN, Sources, expected_node
from leeward.node_template.choices import LaunchImages, choices
from leeward.node_template.resources import NO_CNI_SETTINGS

RAW = json.loads(Path("tests/unit/node_template/instance-types.json").read_text())["InstanceTypes"]
TYPES = {raw["InstanceType"]: InstanceType.from_json(raw) for raw in RAW}
PREFIX = "k8s.io/cluster-autoscaler/node-template/"
MANAGED = {"eks:cluster-name": "blue", "eks:nodegroup-name": "web"}
ZONES = ("us-east-1a", "us-east-1b")


def a_group(*, tags=None, managed=False, **raw):
    """An Auto Scaling group without instances, of the launch template lt-1 unless reported."""
    found = {**(MANAGED if managed else {}), **(tags or {})}
    source = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "$Latest"}}
    if {"MixedInstancesPolicy", "LaunchConfigurationName"} & raw.keys():
        source = {}
    return Group.from_json(
        {
            "AutoScalingGroupName": "eks-web-1",
            "MinSize": 0,
            "MaxSize": 5,
            "DesiredCapacity": 0,
            "AvailabilityZones": list(ZONES),
            "Tags": [{"Key": key, "Value": value} for key, value in found.items()],
            **source,
            **raw,
        }
    )


def a_mixed_policy(*overrides, spot=True):
    return {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "3"},
            "Overrides": list(overrides),
        },
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0 if spot else 100},
    }


def a_launch(kind="m5.large", user_data="", **data):
    encoded = {"UserData": base64.b64encode(user_data.encode()).decode()} if user_data else {}
    return LaunchSettings.from_template(
        {
            "LaunchTemplateId": "lt-1",
            "VersionNumber": 3,
            "LaunchTemplateData": {"InstanceType": kind, "ImageId": "ami-1", **encoded, **data},
        }
    )


def a_nodegroup(**raw):
    """As EKS describes the group of `a_group(managed=True)`."""
    return Nodegroup.from_json(
        {
            "nodegroupName": "web",
            "clusterName": "blue",
            "amiType": "AL2023_x86_64_STANDARD",
            "capacityType": "ON_DEMAND",
            "version": "1.33",
            **raw,
        }
    )


def an_expected_node(
    *,
    group=None,
    launch=None,
    nodegroup=None,
    networking=NO_CNI_SETTINGS,
    precedence=TAGS_WIN,
    types=None,
    image=None,
    observed=None,
):
    """The template of a self-managed group, or of a managed one where `nodegroup` is given."""
    group = group or a_group(managed=nodegroup is not None)
    launch = launch or a_launch()
    known = TYPES if types is None else types
    found = choices(group, launch, nodegroup, known=known, images=LaunchImages(own=image))
    sources = Sources(
        group=group,
        choices=found,
        launch=launch,
        nodegroup=nodegroup,
        types=known,
        networking=networking,
        image=image,
        observed=observed,
    )
    return expected_node(sources, precedence)


def labels(**arguments):
    return an_expected_node(**arguments).labels


def taints(**arguments):
    """As kubectl writes them: `key=value:Effect`."""
    return [f"{taint.key}={taint.value}:{taint.effect}" for taint in an_expected_node(**arguments).taints]


def capacity(**arguments):
    return an_expected_node(**arguments).to_json()["status"]["capacity"]


def allocatable(**arguments):
    return an_expected_node(**arguments).to_json()["status"]["allocatable"]
