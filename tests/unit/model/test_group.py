"""Groups as DescribeAutoScalingGroups lists them."""

import pytest

from leeward.model.group import Group
from leeward.model.instance import LaunchAttributes


def listed(overrides=(), instances=(), **raw):
    mixed = {"MixedInstancesPolicy": {"LaunchTemplate": {"Overrides": list(overrides)}}} if overrides else {}
    return Group.from_json({"AutoScalingGroupName": "web", "Instances": list(instances), **mixed, **raw})


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"overrides": [{"InstanceType": "m5.large", "WeightedCapacity": "2"}]}, "WeightedCapacity: m5.large 2"),
        ({"instances": [{"InstanceId": "i-1", "InstanceType": "m5.large", "WeightedCapacity": "4"}]}, "m5.large 4"),
        ({"overrides": [{"InstanceRequirements": {}, "WeightedCapacity": "3"}]}, "requirements 3"),
        (
            {
                "overrides": [{"InstanceType": "m5.large", "WeightedCapacity": "2"}],
                "instances": [{"InstanceId": "i-1", "InstanceType": "m5.large"}],
            },
            "WeightedCapacity: m5.large 2",
        ),
        ({"DesiredCapacityType": "vcpu"}, "its sizes count vcpu"),
        ({"DesiredCapacityType": "memory-mib"}, "its sizes count memory-mib"),
    ],
)
def test_a_group_whose_sizes_are_no_instance_counts_says_why(raw, words):
    assert words in listed(**raw).capacity_units


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"DesiredCapacityType": "units"},
        {"overrides": [{"InstanceType": "m5.large"}, {"InstanceType": "m5.xlarge", "WeightedCapacity": "1"}]},
        {"instances": [{"InstanceId": "i-1", "InstanceType": "m5.large", "WeightedCapacity": "1"}]},
    ],
)
def test_weights_of_one_count_instances(raw):
    assert listed(**raw).capacity_units == ""


def test_only_tags_that_propagate_are_laid_on_launches():
    tags = [{"Key": "a", "Value": "1", "PropagateAtLaunch": True}, {"Key": "b", "Value": "2"}]
    tags.append({"Key": "c", "Value": "3", "PropagateAtLaunch": False})
    group = listed(Tags=tags)
    assert (group.tags, group.propagated) == ({"a": "1", "b": "2", "c": "3"}, {"a"})


@pytest.mark.parametrize(
    ("raw", "groups"),
    [
        ({"SecurityGroupIds": ["sg-2", "sg-1"]}, ("sg-1", "sg-2")),
        ({"SecurityGroups": ["sg-1"]}, ("sg-1",)),
        ({"SecurityGroups": ["by-name"]}, None),
        ({"NetworkInterfaces": [{"Groups": ["sg-1"]}]}, ("sg-1",)),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 1, "Groups": ["sg-2"]}, {"DeviceIndex": 0, "Groups": ["sg-1"]}]},
            ("sg-1",),
        ),
        ({"NetworkInterfaces": [{"DeviceIndex": 0}, {"DeviceIndex": 1, "Groups": ["sg-2"]}]}, None),
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkCardIndex": 1, "Groups": ["sg-2"]}]}, None),
    ],
)
def test_security_groups_of_a_launch_are_those_of_its_primary_interface(raw, groups):
    assert LaunchAttributes.of_template(raw).security_groups == groups
