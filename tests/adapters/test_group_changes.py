"""Changes to a group: what is written, what is left as it is, and what a repeat does."""

import pytest

from leeward.adapters.aws.group_changes import AutoScalingGroupChanges
from leeward.errors import AccessDeniedError, InvalidInputError, ObjectGoneError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef

NEW = LaunchTemplateRef(id="lt-1", name="web", version="8")
NAMED = {"AutoScalingGroupNames": ["web-a"]}
SPREAD = {"OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": "price-capacity-optimized"}


def raw_group(**more):
    return {
        "AutoScalingGroupName": "web-a",
        "MinSize": 0,
        "MaxSize": 5,
        "DesiredCapacity": 3,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-east-1a"],
        "HealthCheckType": "EC2",
        "CreatedTime": "2026-03-01T00:00:00Z",
        **more,
    }


def of_template(version="7", **more):
    spec = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "Version": version}
    return raw_group(LaunchTemplate=spec, **more)


def mixed(version="7"):
    spec = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "Version": version}
    own = {"LaunchTemplateId": "lt-arm", "LaunchTemplateName": "arm", "Version": "2"}
    overrides = [
        {"InstanceType": "m5.large", "WeightedCapacity": "2"},
        {"InstanceType": "m6g.large", "LaunchTemplateSpecification": own},
    ]
    launch = {"LaunchTemplateSpecification": spec, "Overrides": overrides}
    return raw_group(MixedInstancesPolicy={"LaunchTemplate": launch, "InstancesDistribution": SPREAD})


@pytest.fixture
def changes(aws):
    return AutoScalingGroupChanges(aws.clients)


@pytest.fixture
def found(aws):
    """What Auto Scaling says of the group."""

    def expect(*raw):
        aws.expect("autoscaling", "describe_auto_scaling_groups", NAMED, {"AutoScalingGroups": list(raw)})
        return Group.from_json(raw[0]) if raw else None

    return expect


def update(aws, **changed):
    aws.expect("autoscaling", "update_auto_scaling_group", {"AutoScalingGroupName": "web-a", **changed})


class TestPointAt:
    def test_a_launch_template_is_named_by_its_id_alone(self, aws, changes, found):
        group = found(of_template())
        update(aws, LaunchTemplate={"LaunchTemplateId": "lt-1", "Version": "8"})
        changes.point_at(group, NEW)

    def test_a_group_that_points_there_already_is_not_written(self, changes, found):
        changes.point_at(found(of_template("8")), NEW)
        changes.point_at(found(mixed("8")), NEW)

    def test_a_mixed_instances_policy_keeps_its_overrides_and_its_distribution(self, aws, changes, found):
        group = found(mixed())
        own = {"LaunchTemplateId": "lt-arm", "Version": "2"}
        overrides = [
            {"InstanceType": "m5.large", "WeightedCapacity": "2"},
            {"InstanceType": "m6g.large", "LaunchTemplateSpecification": own},
        ]
        launch = {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "8"},
            "Overrides": overrides,
        }
        update(aws, MixedInstancesPolicy={"LaunchTemplate": launch, "InstancesDistribution": SPREAD})
        changes.point_at(group, NEW)

    def test_a_launch_configuration_is_refused(self, changes, found):
        group = found(raw_group(LaunchConfigurationName="old"))
        with pytest.raises(InvalidInputError, match="web-a: found a launch configuration"):
            changes.point_at(group, NEW)

    def test_a_template_that_the_caller_may_not_use_is_denied_in_awss_own_words(self, aws, changes, found):
        group = found(of_template())
        words = "You are not authorized to use launch template: lt-1"
        aws.refuse("autoscaling", "update_auto_scaling_group", "AccessDenied", words)
        with pytest.raises(AccessDeniedError, match=rf"web-a \(LaunchTemplate\): AccessDenied: {words}"):
            changes.point_at(group, NEW)

    def test_a_group_that_is_gone_is_gone(self, changes, found):
        group = Group.from_json(of_template())
        found()
        with pytest.raises(ObjectGoneError, match="web-a"):
            changes.point_at(group, NEW)


class TestSizes:
    def test_both_sizes_are_raised_in_one_call(self, aws, changes, found):
        found(of_template())
        update(aws, DesiredCapacity=6, MaxSize=7)
        changes.raise_to("web-a", desired=6, maximum=7)

    def test_a_size_that_is_larger_already_stays(self, aws, changes, found):
        found(of_template())
        update(aws, MaxSize=7)
        changes.raise_to("web-a", desired=2, maximum=7)
        found(of_template())
        changes.raise_to("web-a", desired=3, maximum=5)

    def test_the_maximum_comes_back_only_when_nothing_is_above_it(self, aws, changes, found):
        found(of_template())
        assert not changes.put_back_maximum("web-a", 2)
        found(of_template())
        update(aws, MaxSize=3)
        assert not changes.put_back_maximum("web-a", 2, partly=True)
        found(of_template())
        update(aws, MaxSize=3)
        assert changes.put_back_maximum("web-a", 3)
        found(of_template())
        assert changes.put_back_maximum("web-a", 9)

    def test_errors_name_the_call_and_the_size(self, aws, changes, found):
        found(of_template())
        aws.refuse("autoscaling", "update_auto_scaling_group", "AccessDenied", "no")
        with pytest.raises(AccessDeniedError, match=r"UpdateAutoScalingGroup on web-a \(MaxSize\): AccessDenied: no"):
            changes.raise_to("web-a", maximum=9)


class TestProcesses:
    def test_one_process_is_named(self, aws, changes):
        asked = {"AutoScalingGroupName": "web-a", "ScalingProcesses": ["AZRebalance"]}
        aws.expect("autoscaling", "suspend_processes", asked)
        changes.suspend("web-a", "AZRebalance")
        aws.expect("autoscaling", "resume_processes", asked)
        changes.resume("web-a", "AZRebalance")

    @pytest.mark.parametrize("verb", ["suspend", "resume"])
    def test_a_group_that_is_gone_is_gone(self, aws, changes, verb):
        message = "AutoScalingGroup name not found - AutoScalingGroup 'web-a' not found"
        aws.refuse("autoscaling", f"{verb}_processes", "ValidationError", message)
        with pytest.raises(ObjectGoneError):
            getattr(changes, verb)("web-a", "Launch")
