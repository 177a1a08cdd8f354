"""Labels and taints by source, and which source wins (docs/policy.md, `template.precedence`)."""

import pytest

from leeward.errors import InvalidInputError
from leeward.node_template.build import API_WINS, TAGS_WIN
from leeward.policy.sections import PRECEDENCES
from tests.unit.node_template.builders import (
    MANAGED,
    PREFIX,
    a_group,
    a_launch,
    a_mixed_policy,
    a_nodegroup,
    allocatable,
    an_expected_node,
    capacity,
    labels,
    taints,
)

NODEGROUP = {
    "amiType": "AL2_x86_64",
    "labels": {"team": "api", "only": "api"},
    "taints": [
        {"key": "dedicated", "value": "api", "effect": "NO_SCHEDULE"},
        {"key": "other", "effect": "NO_EXECUTE"},
    ],
    "tags": {PREFIX + "resources/cpu": "1", PREFIX + "resources/example.com/a": "1"},
}
GROUP = {"label_team": "tag", "taint_dedicated": "tag:NoExecute", "resources_cpu": "2", "label_also": "tag"}


def tagged(*, managed=True, **tags):
    """A managed group with node-template tags: `label_team="web"`, `taint_dedicated="x:NoSchedule"`."""
    return a_group(
        managed=managed,
        tags={PREFIX + key.replace("_", "/", 1).replace("__", "/"): value for key, value in tags.items()},
    )


class TestLabels:
    def test_every_node_has_the_cloud_providers_labels_in_both_spellings(self):
        assert labels() == {
            "kubernetes.io/hostname": "eks-web-1-template",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "m5.large",
            "topology.kubernetes.io/zone": "us-east-1a",
            "topology.kubernetes.io/region": "us-east-1",
            "topology.ebs.csi.aws.com/zone": "us-east-1a",
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/instance-type": "m5.large",
            "failure-domain.beta.kubernetes.io/zone": "us-east-1a",
            "failure-domain.beta.kubernetes.io/region": "us-east-1",
        }

    @pytest.mark.parametrize(
        ("zone", "region"),
        [("us-west-2-lax-1a", "us-west-2"), ("us-gov-west-1b", "us-gov-west-1"), ("ap-southeast-3c", "ap-southeast-3")],
    )
    def test_the_region_is_reported_by_the_zone(self, zone, region):
        assert labels(group=a_group(AvailabilityZones=[zone]))["topology.kubernetes.io/region"] == region

    def test_a_managed_groups_nodes_have_eks_labels_and_those_that_cluster_autoscaler_derives(self):
        nodegroup = a_nodegroup(
            diskSize=50, labels={"team": "web"}, launchTemplate={"id": "lt-9", "version": "7"}, capacityType="SPOT"
        )
        found = labels(nodegroup=nodegroup)
        expected = {
            "eks.amazonaws.com/nodegroup": "web",
            "eks.amazonaws.com/nodegroup-image": "ami-1",
            "eks.amazonaws.com/capacityType": "SPOT",
            "eks.amazonaws.com/sourceLaunchTemplateId": "lt-9",
            "eks.amazonaws.com/sourceLaunchTemplateVersion": "7",
            "amiType": "AL2023_x86_64_STANDARD",
            "diskSize": "50",
            "k8sVersion": "1.33",
            "nodegroup-name": "web",
            "cluster-name": "blue",
            "team": "web",
        }
        assert {key: found.get(key) for key in expected} == expected

    def test_without_a_custom_template_no_source_template_is_named(self):
        assert "eks.amazonaws.com/sourceLaunchTemplateId" not in labels(nodegroup=a_nodegroup())

    def test_when_describe_nodegroup_is_silent_the_group_itself_still_shows_what_eks_puts_on(self):
        group = a_group(managed=True, MixedInstancesPolicy=a_mixed_policy({"InstanceType": "m5.large"}))
        found = labels(group=group)
        assert {key: value for key, value in found.items() if key.startswith("eks.")} == {
            "eks.amazonaws.com/nodegroup": "web",
            "eks.amazonaws.com/nodegroup-image": "ami-1",
            "eks.amazonaws.com/capacityType": "SPOT",
        }

    def test_a_self_managed_group_has_no_labels_of_eks(self):
        assert not [key for key in labels() if key.startswith("eks.")]

    def test_an_image_that_is_only_resolved_at_launch_is_no_label(self):
        found = labels(launch=a_launch(ImageId="resolve:ssm:/ami"), nodegroup=a_nodegroup())
        assert "eks.amazonaws.com/nodegroup-image" not in found

    def test_more_labels_than_a_group_may_have_tags(self):
        many = {f"example.com/label-{number}": str(number) for number in range(80)}
        found = labels(nodegroup=a_nodegroup(labels=many))
        assert many.items() <= found.items()

    def test_arm_and_windows_images_are_reported_by_eks_when_the_type_is_not_known(self):
        arm = labels(nodegroup=a_nodegroup(amiType="AL2023_ARM_64_STANDARD"), types={})
        assert arm["kubernetes.io/arch"] == "arm64"
        windows = labels(nodegroup=a_nodegroup(amiType="WINDOWS_CORE_2022_x86_64"))
        assert (windows["kubernetes.io/os"], windows["beta.kubernetes.io/os"]) == ("windows", "windows")


class TestTags:
    """As Cluster Autoscaler parses them (extractLabelsFromAsg and its neighbours in aws_manager.go)."""

    def test_labels_taints_and_resources(self):
        group = tagged(
            managed=False, label_team="web", taint_dedicated="gpu:NoExecute", resources_cpu="1500m", label_="nameless"
        )
        node = an_expected_node(group=group)
        assert node.labels["team"] == "web"
        assert "" not in node.labels
        assert [(taint.key, taint.value, taint.effect) for taint in node.taints] == [("dedicated", "gpu", "NoExecute")]
        assert (node.capacity["cpu"], node.allocatable["cpu"]) == (1500, 1500)

    def test_autoscaling_options_and_other_tags_say_nothing_about_nodes(self):
        tags = {PREFIX + "autoscaling-options/scaledownunneededtime": "1m", "k8s.io/cluster-autoscaler/enabled": "true"}
        assert an_expected_node(group=a_group(tags=tags)) == an_expected_node()

    def test_eks_tags_become_labels(self):
        found = labels(group=a_group(tags=MANAGED))
        assert (found["nodegroup-name"], found["cluster-name"]) == ("web", "blue")

    @pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
    def test_all_three_effects(self, effect):
        assert taints(group=tagged(taint_a=f"b:{effect}")) == [f"a=b:{effect}"]

    def test_a_taint_may_have_no_value(self):
        assert taints(group=tagged(taint_a=":NoSchedule")) == ["a=:NoSchedule"]

    @pytest.mark.parametrize("value", ["NoSchedule", "b:Never", "b", ""])
    def test_a_taint_without_a_known_effect_is_passed_over_and_said(self, value):
        node = an_expected_node(group=tagged(taint_a=value))
        assert node.taints == ()
        assert [warning for warning in node.warnings if "taint/a" in warning and "VALUE:EFFECT" in warning]

    @pytest.mark.parametrize("value", ["web server", "a,b", "-x", "y" * 64, "ü"])
    def test_a_value_that_kubernetes_refuses_is_passed_over_and_said(self, value):
        group = tagged(label_team=value, taint_dedicated=f"{value}:NoSchedule")
        node = an_expected_node(group=group)
        assert ("team" in labels(group=group), node.taints) == (False, ())
        assert [warning for warning in node.warnings if "label/team" in warning]

    @pytest.mark.parametrize("value", ["much", "", "1e", "-1Gi", " 1Gi", "1e99999999999999999999"])
    def test_a_resource_without_a_quantity_is_passed_over_and_said(self, value):
        node = an_expected_node(group=tagged(resources_memory=value))
        assert node.capacity["memory"] == 7577 * 1024**2
        assert [warning for warning in node.warnings if "resources/memory" in warning]

    def test_a_quantity_beyond_every_node_is_capped_as_kubernetes_caps_it(self):
        tags = {PREFIX + "resources/ephemeral-storage": "1e99"}
        assert an_expected_node(group=a_group(tags=tags)).capacity["ephemeral-storage"] == 2**63 - 1

    def test_no_tag_gives_more_cpu_or_memory_than_the_type_has(self):
        node = an_expected_node(group=tagged(resources_cpu="8", resources_memory="64Gi"))
        untagged = an_expected_node()
        assert (node.capacity, node.allocatable) == (untagged.capacity, untagged.allocatable)

    def test_resources_of_any_name_with_quantities_as_kubernetes_writes_them(self):
        tags = {PREFIX + "resources/ephemeral-storage": "1.5Ti", PREFIX + "resources/smarter-devices/fuse": "20"}
        found = allocatable(group=a_group(tags=tags))
        assert (found["ephemeral-storage"], found["smarter-devices/fuse"]) == ("1536Gi", "20")


class TestTaintsOfTheNodeGroup:
    @pytest.mark.parametrize(
        ("spelling", "effect"),
        [
            ("NO_SCHEDULE", "NoSchedule"),
            ("NO_EXECUTE", "NoExecute"),
            ("PREFER_NO_SCHEDULE", "PreferNoSchedule"),
            ("NoSchedule", "NoSchedule"),
            ("NoExecute", "NoExecute"),
            ("PreferNoSchedule", "PreferNoSchedule"),
        ],
    )
    def test_all_three_effects_in_both_spellings(self, spelling, effect):
        raw = [{"key": "a", "value": "b", "effect": spelling}]
        assert taints(nodegroup=a_nodegroup(taints=raw)) == [f"a=b:{effect}"]

    def test_a_taint_without_a_value_is_one(self):
        assert taints(nodegroup=a_nodegroup(taints=[{"key": "a", "effect": "NO_SCHEDULE"}])) == ["a=:NoSchedule"]

    def test_an_effect_in_neither_spelling_voids_the_whole_answer(self):
        good, bad = {"key": "a", "effect": "NO_SCHEDULE"}, {"key": "b", "effect": "NEVER"}
        with pytest.raises(InvalidInputError, match="taint b: found effect 'NEVER', expected one of NO_SCHEDULE"):
            a_nodegroup(taints=[good, bad])


class TestTagsAgainstUserData:
    """Kubelet takes what the user data says, whatever the group's tags promise."""

    CONFIG = (
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n"
        "    - --node-labels=team=red\n    - --register-with-taints=dedicated=red:NoSchedule\n"
    )

    def node(self, **tags):
        return an_expected_node(group=tagged(**tags), launch=a_launch(user_data=self.CONFIG))

    def test_a_tag_with_another_value_makes_a_label_an_estimate_and_is_said(self):
        node = self.node(label_team="blue")
        assert (node.estimated, node.contradicted) == ({"team"}, {"team"})
        assert "label/team: it names 'blue' and the user data 'red'" in node.warnings[0]

    @pytest.mark.parametrize("value", ["red:PreferNoSchedule", "blue:NoSchedule"])
    def test_a_tag_with_another_taint_of_the_key_takes_none_away_and_is_said(self, value):
        node = self.node(taint_dedicated=value)
        assert ("red", "NoSchedule") in [(taint.value, taint.effect) for taint in node.taints]
        assert "taint/dedicated: the user data sets another taint" in node.warnings[0]

    def test_tags_that_say_the_same_are_no_contradiction(self):
        node = self.node(label_team="red", taint_dedicated="red:NoSchedule")
        assert (node.estimated, node.warnings, len(node.taints)) == (frozenset(), (), 1)


class TestPrecedence:
    def node(self, precedence="asg-tags"):
        return {
            "group": tagged(**GROUP),
            "nodegroup": a_nodegroup(**NODEGROUP),
            "precedence": precedence,
        }

    def test_by_default_the_tag_wins(self):
        found = labels(**self.node())
        assert (found["team"], found["only"], found["also"]) == ("tag", "api", "tag")
        assert taints(**self.node()) == ["dedicated=tag:NoExecute", "other=:NoExecute"]
        assert (capacity(**self.node())["cpu"], capacity(**self.node())["example.com/a"]) == ("2", "1")

    def test_a_tag_that_wins_over_eks_is_named(self):
        said = [warning for warning in an_expected_node(**self.node()).warnings if "wins over" in warning]
        assert [warning.split()[1].removeprefix(PREFIX) for warning in said] == ["label/team:", "taint/dedicated:"]
        assert not [warning for warning in an_expected_node(**self.node(API_WINS)).warnings if "wins over" in warning]

    def test_eks_api_gives_what_cluster_autoscaler_ships_today(self):
        found = labels(**self.node(API_WINS))
        assert (found["team"], found["only"], found["also"]) == ("api", "api", "tag")
        assert taints(**self.node(API_WINS)) == [
            "dedicated=tag:NoExecute",
            "dedicated=api:NoSchedule",
            "other=:NoExecute",
        ]
        assert (capacity(**self.node(API_WINS))["cpu"], allocatable(**self.node(API_WINS))["cpu"]) == ("1", "1")

    def test_these_are_the_two_that_a_policy_may_name(self):
        assert set(PRECEDENCES) == {TAGS_WIN, API_WINS}

    def test_a_tag_wins_over_what_every_node_has(self):
        assert labels(group=tagged(**{"label_topology.kubernetes.io__zone": "z"}))["topology.kubernetes.io/zone"] == "z"

    def test_what_user_data_says_is_the_weakest_of_what_is_written_down(self):
        script = (
            "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args "
            "'--node-labels=team=script,mine=script --register-with-taints=dedicated=script:NoSchedule,b=:NoSchedule'\n"
        )
        system = "#!/bin/bash\nkubelet --node-labels=kubernetes.io/os=flatcar\n"
        assert labels(launch=a_launch(user_data=system))["kubernetes.io/os"] == "flatcar"
        arguments = self.node() | {"launch": a_launch(user_data=script)}
        assert (labels(**arguments)["team"], labels(**arguments)["mine"]) == ("tag", "script")
        assert taints(**arguments) == ["dedicated=tag:NoExecute", "other=:NoExecute", "b=:NoSchedule"]


class TestTheObject:
    def test_it_is_a_ready_node(self):
        found = an_expected_node(nodegroup=a_nodegroup(taints=[{"key": "a", "effect": "NO_SCHEDULE"}])).to_json()
        assert (found["apiVersion"], found["kind"]) == ("v1", "Node")
        assert found["spec"] == {"taints": [{"key": "a", "effect": "NoSchedule"}]}
        assert found["status"]["conditions"][0]["status"] == "True"

    @pytest.mark.parametrize("name", ["Web_Nodes.A", "x" * 200, "---", "eks-web-1"])
    def test_its_name_and_hostname_are_names_that_kubernetes_takes(self, name):
        found = an_expected_node(group=a_group(AutoScalingGroupName=name))
        assert found.labels["kubernetes.io/hostname"] == found.name
        assert len(found.name) <= 63
        assert found.name.replace("-", "").isalnum()
        assert found.name == found.name.lower()
        assert found.name[0].isalnum()

    def test_a_launch_template_that_could_not_be_read_is_said(self):
        from leeward.node_template.build import Sources, expected_node
        from leeward.node_template.choices import choices

        group = a_group()
        node = expected_node(Sources(group=group, choices=choices(group, None, known={})))
        assert node.capacity == {}
        assert "the launch template of eks-web-1 is not known: EKS' defaults are taken" in node.warnings
        assert "it is unknown which instance type eks-web-1 launches" in node.warnings
