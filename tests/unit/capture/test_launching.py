"""Which launch template versions and instance types a snapshot needs."""

import pytest

from leeward.capture.launching import RawLaunches, described, types_used, versions_used
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from tests.cli.snapshots.disruption import a_template, a_type

TYPES = [a_type("m5.large", 2, 8192), a_type("m5.xlarge", 4, 16384), a_type("c5.large", 2, 4096)]


def a_group(**fields):
    return Group.from_json({"AutoScalingGroupName": "web", "Tags": [], **fields})


def launching(template="lt-1", version="$Latest"):
    return {"LaunchTemplate": {"LaunchTemplateId": template, "Version": version}}


def mixed(*overrides):
    chosen = launching()["LaunchTemplate"]
    return {"MixedInstancesPolicy": {"LaunchTemplate": {"LaunchTemplateSpecification": chosen, "Overrides": overrides}}}


def types(group, *versions, instances=(), nodes=(), configurations=(), nodegroups=(), every_type=lambda: TYPES):
    launches = RawLaunches(versions, configurations, nodegroups, every_type)
    return types_used("blue", [group], instances, nodes, launches)


class TestVersions:
    def test_those_that_move_always_come_along(self):
        found = versions_used([a_group(**launching(version="3"))], [])
        assert found == {LaunchTemplateRef(id="lt-1"): ("$Default", "$Latest", "3")}

    def test_a_member_keeps_the_version_it_came_from(self):
        member = {"InstanceId": "i-1", **launching(version="2")}
        found = versions_used([a_group(**launching(), Instances=[member])], [])
        assert found == {LaunchTemplateRef(id="lt-1"): ("$Default", "$Latest", "2")}

    def test_overrides_and_node_groups_bring_templates_of_their_own(self):
        override = {"InstanceType": "m5.large", "LaunchTemplateSpecification": {"LaunchTemplateName": "arm"}}
        nodegroup = Nodegroup(name="workers", cluster="blue", template=("lt-eks", "7"))
        found = versions_used([a_group(**mixed(override))], [nodegroup])
        assert set(found) == {
            LaunchTemplateRef(id="lt-1"),
            LaunchTemplateRef(name="arm"),
            LaunchTemplateRef(id="lt-eks"),
        }
        assert "7" in found[LaunchTemplateRef(id="lt-eks")]

    def test_a_group_without_a_template_needs_none(self):
        assert versions_used([a_group(LaunchConfigurationName="old")], []) == {}


class TestTypes:
    def test_the_launch_templates_type(self):
        assert types(a_group(**launching()), a_template("lt-1", "m5.large")) == ("m5.large",)

    def test_a_launch_configurations(self):
        reported = {"LaunchConfigurationName": "old", "InstanceType": "m4.large"}
        assert types(a_group(LaunchConfigurationName="old"), configurations=[reported]) == ("m4.large",)

    def test_the_overrides_and_what_still_runs(self):
        group = a_group(**mixed({"InstanceType": "c5.large"}), Instances=[{"InstanceId": "i-1"}])
        instances = [{"InstanceId": "i-1", "InstanceType": "m5.xlarge"}]
        assert types(group, instances=instances) == ("c5.large", "m5.xlarge")

    def test_all_that_requirements_allow(self):
        needs = {"VCpuCount": {"Min": 2, "Max": 2}, "MemoryMiB": {"Min": 1}}
        assert types(a_group(**mixed({"InstanceRequirements": needs}))) == ("c5.large", "m5.large")

    def test_the_regions_types_are_only_asked_for_where_requirements_choose(self):
        def never():
            pytest.fail("asked for every type of the Region")

        group = a_group(**mixed({"InstanceType": "c5.large"}))
        assert types(group, a_template("lt-1", "m5.large"), every_type=never) == ("c5.large",)

    def test_what_nodes_say_that_they_are(self):
        node = {"metadata": {"name": "n", "labels": {"node.kubernetes.io/instance-type": "t3.nano"}}}
        assert types(a_group(), nodes=[node, {"metadata": {"name": "bare"}}]) == ("t3.nano",)

    def test_a_managed_node_groups(self):
        tags = [{"Key": "eks:cluster-name", "Value": "blue"}, {"Key": "eks:nodegroup-name", "Value": "workers"}]
        nodegroup = Nodegroup(name="workers", cluster="blue", instance_types=("m6i.large",))
        assert types(a_group(Tags=tags), nodegroups=[nodegroup]) == ("m6i.large",)


def test_a_node_group_with_an_unknown_taint_is_passed_over():
    odd = {"nodegroup": {"nodegroupName": "odd", "taints": [{"key": "k", "effect": "SOMETIMES"}]}}
    fine = {"nodegroup": {"nodegroupName": "fine"}}
    assert [one.name for one in described([odd, fine])] == ["fine"]
