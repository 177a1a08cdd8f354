"""`leeward inspect template` as its users run it, on a snapshot and against the local AWS."""

import base64
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.cli.command import a_snapshot

SCHEMA = json.loads(Path("docs/schema/template.json").read_text())
TYPES = json.loads(Path("tests/unit/node_template/instance-types.json").read_text())
PREFIX = "k8s.io/cluster-autoscaler/node-template/"
POLICY = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {{name: web}}
spec:
  selector: {{groups: ["*"]}}
  template: {{precedence: {precedence}}}
"""
MANAGED = {"eks:cluster-name": "prod", "eks:nodegroup-name": "ng"}
OVERRIDES = ("m5.large", "c5.24xlarge")


def a_group(name="web", *, tags=None, **fields):
    pairs = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
    source = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "$Latest"}}
    return {
        "AutoScalingGroupName": name,
        "AvailabilityZones": ["us-east-1a", "us-east-1b"],
        "Tags": pairs,
        **({} if {"MixedInstancesPolicy", "LaunchConfigurationName"} & fields.keys() else source),
        **fields,
    }


def mixed(*overrides):
    specification = {"LaunchTemplateId": "lt-1", "Version": "$Default"}
    return {"LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": list(overrides)}}


def versions(*data):
    return {
        "LaunchTemplateVersions": [
            {"LaunchTemplateId": "lt-1", "VersionNumber": n, "DefaultVersion": n == 1, "LaunchTemplateData": one}
            for n, one in enumerate(data, 1)
        ]
    }


def a_nodegroup(**fields):
    return {"nodegroup": {"nodegroupName": "ng", "clusterName": "prod", "amiType": "AL2023_x86_64_STANDARD", **fields}}


class Folder:
    """A snapshot folder and the command on it; every file can be replaced."""

    def __init__(self, leeward, directory):
        self.leeward = leeward
        self.directory = directory

    def write(self, *, group=None, precedence="asg-tags", **files):
        files = {
            "auto_scaling_groups": {"AutoScalingGroups": [group or a_group()]},
            "launch_template_versions": versions(
                {"InstanceType": "t3.nano"}, {"InstanceType": "m5.large", "ImageId": "ami-1"}
            ),
            "instance_types": TYPES,
            "policy": POLICY.format(precedence=precedence),
            **files,
        }
        return a_snapshot(self.directory, **{name: content for name, content in files.items() if content is not None})

    def run(self, *arguments, **files):
        return self.leeward("inspect", "template", "web", *arguments, "--snapshot", self.write(**files), "-o", "json")

    def node(self, *arguments, said="", **files):
        """The Node object of a run that went well; `said`: what has to stand on standard error."""
        result = self.run(*arguments, **files)
        assert result.code == 0, result.err
        assert said in result.err if said else result.err == ""
        jsonschema.validate(result.json, SCHEMA)
        return result.json


@pytest.fixture
def folder(leeward, tmp_path):
    return Folder(leeward, tmp_path)


def labels(node):
    return node["metadata"]["labels"]


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_self_managed_group_in_full(folder):
    node = folder.node()
    assert (labels(node)["node.kubernetes.io/instance-type"], labels(node)["topology.kubernetes.io/zone"]) == (
        "m5.large",
        "us-east-1a",
    )
    assert node["status"]["capacity"] == {"cpu": "2", "memory": "7577Mi", "ephemeral-storage": "20Gi", "pods": "29"}
    assert node["status"]["allocatable"]["cpu"] == "1930m"


def test_a_ready_node_of_the_same_version_shows_what_the_next_one_is(folder):
    member = {"InstanceId": "i-1", "AvailabilityZone": "us-east-1a", "InstanceType": "m5.large"}
    launched = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "2"}, "LifecycleState": "InService"}
    node = {
        "metadata": {"name": "n1", "uid": "u1", "labels": {"kubernetes.io/os": "linux"}},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"memory": "6000Mi"}},
    }
    files = {"group": a_group(Instances=[{**member, **launched}]), "instances": {"Reservations": []}}
    found = folder.node(**files, nodes={"items": [node]})
    assert found["status"]["allocatable"]["memory"] == "6000Mi"
    assert "capacity=observed" in found["metadata"]["annotations"]["leeward.dev/template-provenance"]
    node["status"]["conditions"][0]["status"] = "False"
    assert "observed" not in str(folder.node(**files, nodes={"items": [node]}))


def test_the_output_is_yaml_by_default_wherever_the_option_stands(folder, leeward):
    snapshot = folder.write()
    usual = leeward("inspect", "template", "web", "--snapshot", snapshot)
    as_json = leeward("-o", "json", "inspect", "template", "web", "--snapshot", snapshot)
    table = leeward("inspect", "template", "web", "--snapshot", snapshot, "-o", "table")
    assert yaml.safe_load(usual.out) == as_json.json
    assert usual.out.startswith("apiVersion: v1\nkind: Node\n")
    assert all(word in table.out for word in ("the next node of web", "1930m", "kubernetes.io/arch", "amd64"))


def test_zone_and_type_are_the_first_by_default(folder):
    group = a_group(MixedInstancesPolicy=mixed(*({"InstanceType": name} for name in OVERRIDES)))
    assert labels(folder.node(group=group))["node.kubernetes.io/instance-type"] == "m5.large"
    reported = folder.node("--zone", "us-east-1b", "--instance-type", "c5.24xlarge", group=group)
    assert labels(reported)["topology.ebs.csi.aws.com/zone"] == "us-east-1b"
    assert labels(reported)["node.kubernetes.io/instance-type"] == "c5.24xlarge"
    assert reported["status"]["capacity"]["pods"] == "737"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--zone", "us-east-1z"],
            "inspect template: found zone 'us-east-1z', expected one of the group's: us-east-1a, us-east-1b",
        ),
        (
            ["--instance-type", "m9.large"],
            "inspect template: found instance type 'm9.large', expected one of the group's: m5.large",
        ),
    ],
)
def test_what_the_group_cannot_launch_is_bad_input(folder, leeward, arguments, message):
    assert leeward.refuses("inspect", "template", "web", *arguments, "--snapshot", folder.write()) == message


def test_an_unknown_group_and_no_source_are_bad_input(folder, leeward):
    snapshot = folder.write()
    assert "found no group 'x', expected one of its groups: web" in leeward.refuses(
        "inspect", "template", "x", "--snapshot", snapshot
    )
    assert "expected --cluster NAME (live) or --snapshot DIR" in leeward.refuses("inspect", "template", "web")


class TestManagedGroups:
    def test_a_node_group_with_more_labels_than_tags_allow(self, folder):
        many = {f"example.com/label-{number}": str(number) for number in range(70)}
        taint = {"key": "dedicated", "value": "web", "effect": "PREFER_NO_SCHEDULE"}
        nodegroup = a_nodegroup(labels=many, taints=[taint], capacityType="SPOT", diskSize=80, version="1.33")
        node = folder.node(group=a_group(tags=MANAGED), nodegroups=[nodegroup])
        expected = {
            **many,
            "amiType": "AL2023_x86_64_STANDARD",
            "diskSize": "80",
            "k8sVersion": "1.33",
            "nodegroup-name": "ng",
            "cluster-name": "prod",
            "eks.amazonaws.com/nodegroup": "ng",
            "eks.amazonaws.com/nodegroup-image": "ami-1",
            "eks.amazonaws.com/capacityType": "SPOT",
        }
        assert expected.items() <= labels(node).items()
        assert node["spec"]["taints"] == [{"key": "dedicated", "value": "web", "effect": "PreferNoSchedule"}]
        assert node["status"]["capacity"]["ephemeral-storage"] == "80Gi"

    @pytest.mark.parametrize("files", [{}, {"nodegroups": []}, {"nodegroups": [a_nodegroup(nodegroupName="other")]}])
    def test_one_that_is_absent_is_a_call_that_failed_the_tags_alone_are_used(self, folder, files):
        group = a_group(tags={**MANAGED, PREFIX + "label/team": "tag"})
        node = folder.node(group=group, said="only the group's tags are used", **files)
        assert (labels(node)["team"], labels(node)["nodegroup-name"]) == ("tag", "ng")
        assert not {"amiType", "k8sVersion", "diskSize"} & labels(node).keys()

    def test_a_node_group_of_another_cluster_is_not_it(self, folder):
        other = a_nodegroup(clusterName="test", labels={"team": "test"})
        node = folder.node(group=a_group(tags=MANAGED), nodegroups=[other, a_nodegroup(labels={"team": "prod"})])
        assert labels(node)["team"] == "prod"

    def test_an_unknown_taint_effect_voids_the_answer(self, folder):
        nodegroup = a_nodegroup(labels={"team": "api"}, taints=[{"key": "a", "effect": "NEVER"}])
        node = folder.node(group=a_group(tags=MANAGED), nodegroups=[nodegroup], said="found effect 'NEVER'")
        assert "team" not in labels(node)
        assert "taints" not in node["spec"]

    @pytest.mark.parametrize(("precedence", "winner"), [("asg-tags", "tag"), ("eks-api", "api")])
    def test_the_policy_says_who_wins(self, folder, precedence, winner):
        group = a_group(tags={**MANAGED, PREFIX + "label/team": "tag"})
        nodegroups = [a_nodegroup(labels={"team": "api"})]
        said = f"tag {PREFIX}label/team: it wins over" if winner == "tag" else ""
        node = folder.node(group=group, nodegroups=nodegroups, precedence=precedence, said=said)
        assert labels(node)["team"] == winner

    def test_prefix_delegation_of_the_clusters_cni_counts(self, folder):
        container = {"name": "aws-node", "env": [{"name": "ENABLE_PREFIX_DELEGATION", "value": "true"}]}
        daemon_set = {
            "kind": "DaemonSet",
            "metadata": {"namespace": "kube-system", "name": "aws-node"},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
        files = {"group": a_group(tags=MANAGED), "nodegroups": [a_nodegroup()], "daemonsets": {"items": [daemon_set]}}
        assert folder.node(**files)["status"]["capacity"]["pods"] == "110"


class TestSources:
    def test_requirements_take_the_smallest_known_type_that_meets_them(self, folder):
        needs = {"VCpuCount": {"Min": 4}, "MemoryMiB": {"Min": 0}, "AcceleratorTypes": ["gpu"]}
        node = folder.node(group=a_group(MixedInstancesPolicy=mixed({"InstanceRequirements": needs})))
        assert labels(node)["node.kubernetes.io/instance-type"] == "g4dn.xlarge"
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"

    def test_requirements_that_no_known_type_meets_show_their_minima(self, folder):
        needs = {"VCpuCount": {"Min": 300, "Max": 400}, "MemoryMiB": {"Min": 4096}}
        group = a_group(MixedInstancesPolicy=mixed({"InstanceRequirements": needs}))
        node = folder.node(group=group, said="no known instance type meets the requirements of web")
        assert (node["status"]["capacity"]["cpu"], node["status"]["capacity"]["memory"]) == ("300", "4Gi")
        assert "node.kubernetes.io/instance-type" not in labels(node)

    def test_an_instance_type_that_is_not_known_exits_1(self, folder):
        group = a_group(MixedInstancesPolicy=mixed({"InstanceType": "z9.unheard"}))
        result = folder.run(group=group)
        assert (result.code, "cpu" in result.json["status"]["capacity"]) == (1, False)
        assert "instance type z9.unheard is not known" in result.err

    def test_an_override_with_a_launch_template_of_its_own(self, folder):
        arm = {
            "InstanceType": "m6g.xlarge",
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-2", "Version": "1"},
        }
        toml = base64.b64encode(b"[settings.kubernetes]\nmax-pods = 21\n").decode()
        found = versions({"InstanceType": "t3.nano"})
        found["LaunchTemplateVersions"].append(
            {"LaunchTemplateId": "lt-2", "VersionNumber": 1, "LaunchTemplateData": {"UserData": toml}}
        )
        group = a_group(MixedInstancesPolicy=mixed({"InstanceType": "m5.large"}, arm))
        files = {"group": group, "launch_template_versions": found}
        assert folder.node(**files)["status"]["capacity"]["pods"] == "29"
        node = folder.node("--instance-type", "m6g.xlarge", **files)
        assert (node["status"]["capacity"]["pods"], labels(node)["kubernetes.io/arch"]) == ("21", "arm64")

    def test_zones_that_the_group_does_not_show_are_its_subnets(self, folder):
        subnets = [
            {"SubnetId": f"subnet-{letter}", "AvailabilityZone": f"us-east-1{letter}", "AvailableIpAddressCount": 9}
            for letter in "ab"
        ]
        group = a_group(AvailabilityZones=[], VPCZoneIdentifier="subnet-b,subnet-a")
        node = folder.node(group=group, subnets={"Subnets": subnets})
        assert labels(node)["topology.kubernetes.io/zone"] == "us-east-1b"

    def test_a_launch_configuration(self, folder):
        files = {
            "group": a_group(LaunchConfigurationName="old"),
            "launch_configurations": {
                "LaunchConfigurations": [{"LaunchConfigurationName": "old", "InstanceType": "t3.nano"}]
            },
        }
        assert folder.node(**files)["status"]["capacity"]["pods"] == "4"

    def test_user_data_of_the_launch_template(self, folder):
        script = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--max-pods=11 --node-labels=team=web'\n"
        data = {"InstanceType": "m5.large", "UserData": base64.b64encode(script.encode()).decode()}
        node = folder.node(launch_template_versions=versions(data))
        assert (node["status"]["capacity"]["pods"], labels(node)["team"]) == ("11", "web")

    def test_it_is_told_how_far_the_template_can_be_relied_on(self, folder, leeward):
        script = '#!/bin/bash\nif [ -n "$A" ]; then\n  EXTRA=--register-with-taints=a=b:NoSchedule\nfi\n'
        script += '/etc/eks/bootstrap.sh prod --kubelet-extra-args "--max-pods=11 $EXTRA"\n'
        data = {"InstanceType": "m5.large", "UserData": base64.b64encode(script.encode()).decode()}
        files = {"launch_template_versions": versions(data)}
        node = folder.node(**files, said="--register-with-taints: may or may not reach kubelet")
        origins = node["metadata"]["annotations"]["leeward.dev/template-provenance"]
        assert origins.startswith("labels=estimated,taints=unknown,maxPods=estimated,capacity=declared,os=declared,")
        assert node["spec"]["taints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
        table = leeward("inspect", "template", "web", "--snapshot", folder.write(**files), "-o", "table").out
        assert "ATTRIBUTES" in table
        assert "unknown" in table

    def test_without_instance_types_memory_is_not_shown_and_that_is_said(self, folder):
        node = folder.node(instance_types=None, said="memory of m5.large is not known")
        assert node["status"]["allocatable"] == {"cpu": "1930m", "ephemeral-storage": "17Gi", "pods": "29"}
        assert "kubernetes.io/arch" not in labels(node)

    def test_without_the_launch_template_the_groups_own_instances_show_the_type(self, folder):
        instance = {"InstanceId": "i-1", "InstanceType": "t3.nano", "State": {"Name": "running"}}
        files = {
            "group": a_group(Instances=[{"InstanceId": "i-1"}]),
            "launch_template_versions": versions(),
            "instances": {"Reservations": [{"Instances": [instance]}]},
        }
        node = folder.node(**files, said="the launch template of web is not known")
        assert node["status"]["capacity"]["pods"] == "4"

    @pytest.mark.parametrize(
        ("files", "place"),
        [
            ({"nodegroups": [{"nodegroup": {"nodegroupName": "ng", "labels": ["a"]}}]}, "[0].nodegroup.labels"),
            ({"launch_template_versions": versions({"BlockDeviceMappings": 3})}, "BlockDeviceMappings"),
            ({"group": a_group(MixedInstancesPolicy=mixed("m5.large"))}, "Overrides[0]"),
            ({"instance_types": {"InstanceTypes": [{"InstanceType": "m5.large", "GpuInfo": []}]}}, "GpuInfo"),
            (
                {"group": a_group(MixedInstancesPolicy=mixed({"InstanceRequirements": {"VCpuCount": {"Min": "x"}}}))},
                "VCpuCount.Min",
            ),
        ],
    )
    def test_a_broken_file_is_reported_with_its_path(self, folder, leeward, files, place):
        snapshot = folder.write(**{"group": a_group(tags=MANAGED), **files})
        assert place in leeward.refuses("inspect", "template", "web", "--snapshot", snapshot)
