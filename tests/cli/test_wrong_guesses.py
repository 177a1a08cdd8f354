"""Plans and upgrades of groups whose next node is easily guessed wrong: whole commands on snapshots in the shape of
real groups."""

import base64

import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.disruption import (
    PRICES,
    ZONE,
    a_disruption_snapshot,
    a_group,
    a_node,
    a_pod,
    a_template,
    a_type,
    an_instance,
)
from tests.cli.snapshots.placement import items
from tests.cli.snapshots.upgrade import ZONES, an_upgrade_snapshot, templates, zone_of
from tests.cli.snapshots.upgrade import a_group as an_upgraded_group
from tests.cli.snapshots.upgrade import a_node as an_old_node
from tests.cli.snapshots.upgrade import a_pod as an_upgraded_pod

LINUX = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "topology.kubernetes.io/zone": ZONE,
    "node.kubernetes.io/instance-type": "m5.xlarge",
}
NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n"
CLOUD_CONFIG = """#cloud-config
write_files:
- path: /etc/eksctl/kubelet.env
  content: |-
    NODE_LABELS=alpha.eksctl.io/nodegroup-name=batch
    NODE_TAINTS=dedicated=red:NoSchedule
"""
BOOTSTRAP = (
    "#!/bin/bash\n/etc/eks/bootstrap.sh c1 --kubelet-extra-args '--register-with-taints=dedicated=red:NoSchedule'\n"
)
POWERSHELL = "<powershell>\n& $EKSBootstrapScriptFile -EKSClusterName c1 3>&1\n</powershell>\n"
WINDOWS_GROUP = {
    "nodegroupName": "batch",
    "clusterName": "c1",
    "amiType": "WINDOWS_CORE_2022_x86_64",
    "instanceTypes": ["m5.large"],
    "resources": {"autoScalingGroups": [{"name": "batch"}]},
}
MIXED = {
    "LaunchTemplate": {
        "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-batch", "Version": "$Latest"},
        "Overrides": [{"InstanceType": "m5.large"}, {"InstanceType": "m5.medium"}],
    },
    "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100},
}


OF_EKS = [{"Key": "eks:cluster-name", "Value": "c1"}, {"Key": "eks:nodegroup-name", "Value": "batch"}]
FEWER_PODS = f'{NODE_CONFIG}  kubelet: {{maxPodsExpression: "max_pods - 24"}}\n'  # 5 of 29
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.k8s.aws/zone-id",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def disks(strategy):
    return f"{NODE_CONFIG}  instance:\n    localStorage: {{strategy: {strategy}}}\n"


def asking(**requests):
    pod = a_pod("p0", "n1")
    pod["spec"]["containers"][0]["resources"]["requests"] |= requests
    return [pod]


def accepting(*types):
    """A pod that names the types on which it may run."""
    pod = a_pod("p0", "n1")
    terms = [{"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}]}]
    pod["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    return [pod]


def a_kind(name, cores, memory, architecture="x86_64", disk=0):
    stored = {"TotalSizeInGB": disk, "Disks": [{"SizeInGB": disk // 4, "Count": 4, "Type": "ssd"}]}
    raw = a_type(name, cores, memory) | {"ProcessorInfo": {"SupportedArchitectures": [architecture]}}
    return raw | ({"InstanceStorageInfo": stored} if disk else {})


def a_daemon_set(kind):
    """One that needs most of a small node, and runs on nodes of a type alone."""
    pod = accepting(kind)[0]
    pod["spec"].pop("nodeName")
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1500m"}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod["spec"]}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    return {"kind": "DaemonSet", "metadata": {"namespace": "kube-system", "name": "agent", "uid": "u"}, "spec": spec}


def planned_onto(leeward, tmp_path, pods=None, user_data="", architecture="x86_64", disk=0, batch=(), **files):
    """The groups in which `leeward plan` launches a cheaper node for the pods of the one expensive node."""
    data = a_template("lt-batch", "m5.large")
    data["LaunchTemplateData"]["UserData"] = encoded(user_data)
    nodes = [a_node("n1", labels=LINUX)]
    groups = [a_group("web", "lt-web", "n1"), a_group("batch", "lt-batch") | dict(batch)]
    kinds = [a_kind("m5.large", 2, 8192, architecture, disk), a_kind("m5.xlarge", 4, 16384)]
    kinds.append(a_kind("m5.medium", 2, 4096))
    content = {
        "nodes": items(*nodes),
        "pods": items(*(pods or asking())),
        "auto_scaling_groups": {"AutoScalingGroups": groups},
        "launch_template_versions": {"LaunchTemplateVersions": [a_template("lt-web", "m5.xlarge"), data]},
        "instances": {"Reservations": [{"Instances": [an_instance("n1")]}]},
        "instance_types": {"InstanceTypes": kinds},
        "prices": {**PRICES, "on-demand": {**PRICES["on-demand"], "m5.medium": 0.05}},
    }
    snapshot = a_disruption_snapshot(tmp_path, **(content | files))
    result = leeward("plan", "--snapshot", snapshot, "--now", NOON, "-o", "json")
    assert result.code == 0, result.err
    return [new["group"] for command in result.json["commands"] for new in command["replacements"]]


BIG_DISK = asking(**{"ephemeral-storage": "2500Gi"})
SMALL_PODS = [a_pod(f"p{number}", "n1", cpu="50m") for number in range(6)]
for light in SMALL_PODS:
    light["spec"]["containers"][0]["resources"]["requests"]["memory"] = "64Mi"


@pytest.mark.parametrize(
    ("case", "onto"),
    [
        pytest.param({}, ["batch"], id="a group of which nothing is special"),
        pytest.param({"user_data": CLOUD_CONFIG}, [], id="eksctl's cloud-config taints its nodes"),
        pytest.param({"user_data": BOOTSTRAP}, [], id="the boot script taints its nodes"),
        pytest.param({"user_data": POWERSHELL}, [], id="Windows by its user data"),
        pytest.param(
            {"nodegroups": [{"nodegroup": WINDOWS_GROUP}], "batch": {"Tags": OF_EKS}}, [], id="a managed Windows group"
        ),
        pytest.param({"architecture": "arm64"}, [], id="another architecture"),
        pytest.param({"pods": SMALL_PODS, "user_data": FEWER_PODS}, [], id="an expression allows fewer pods"),
        pytest.param({"pods": SMALL_PODS}, ["batch"], id="the formula allows the pods"),
        pytest.param({"pods": BIG_DISK, "disk": 3600, "user_data": disks("RAID0")}, ["batch"], id="RAID0"),
        pytest.param({"pods": BIG_DISK, "disk": 3600, "user_data": disks("RAID10")}, [], id="RAID10 keeps half"),
        pytest.param(
            {"pods": accepting("m5.xlarge", "m5.large"), "batch": {"MixedInstancesPolicy": MIXED}},
            [],
            id="the group may launch a type that the pod does not accept",
        ),
        pytest.param(
            {"pods": accepting("m5.xlarge", "m5.large", "m5.medium"), "batch": {"MixedInstancesPolicy": MIXED}},
            ["batch"],
            id="the pod accepts every type of the group",
        ),
        pytest.param({"daemonsets": items(a_daemon_set("m5.large"))}, [], id="a DaemonSet takes most of the new node"),
        pytest.param({"daemonsets": items(a_daemon_set("m5.xlarge"))}, ["batch"], id="a DaemonSet of other types"),
    ],
)  # fmt: skip
def test_pods_are_planned_onto_the_next_node_of_a_group_if_it_will_take_them(leeward, tmp_path, case, onto):
    assert planned_onto(leeward, tmp_path, **case) == onto


def test_a_node_that_reports_less_memory_than_its_type_promises_shows_that_the_next_one_will(leeward, tmp_path):
    """6,903 MiB are estimated, and the group's own node has 6,000."""
    small = a_node("s1", labels={**LINUX, "node.kubernetes.io/instance-type": "m5.large"})
    small["status"]["allocatable"] = {"cpu": "1930m", "memory": "6000Mi", "pods": "29"}
    full = a_pod("full", "s1", cpu="1900m", annotations={"karpenter.sh/do-not-disrupt": "true"})
    group = a_group("batch", "lt-batch", "s1")
    group["Instances"][0] |= {"LaunchTemplate": {"LaunchTemplateId": "lt-batch", "Version": "1"}}
    more = {
        "nodes": items(a_node("n1", labels=LINUX), small),
        "instances": {"Reservations": [{"Instances": [an_instance("n1"), an_instance("s1", InstanceType="m5.large")]}]},
        "batch": group,
    }
    asked = [*asking(memory="6500Mi"), full]
    assert planned_onto(leeward, tmp_path / "empty", pods=asked[:1]) == ["batch"]
    assert planned_onto(leeward, tmp_path / "seen", pods=asked, **more) == []


def weighted(kind="units", **override):
    named = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "$Latest"}}
    policy = {"LaunchTemplate": {**named, "Overrides": [{"InstanceType": "m5.large", **override}]}}
    return {"DesiredCapacityType": kind, "MixedInstancesPolicy": policy}


def upgrade_blockers(leeward, tmp_path, fields=(), pod=None, zone_ids=False, **files):
    ids = {zone: f"use1-az{number}" for number, zone in enumerate(ZONES, 1)} if zone_ids else {}
    labels = [{"topology.k8s.aws/zone-id": ids[zone_of(number)]} if ids else {} for number in range(6)]
    nodes = [an_old_node(number, labels=labels[number]) for number in range(6)]
    if ids:
        raw = {"AvailableIpAddressCount": 200}
        named = [
            {"SubnetId": f"subnet-{z[-1]}", "AvailabilityZone": z, "AvailabilityZoneId": ids[z], **raw} for z in ZONES
        ]
        files["subnets"] = {"Subnets": named}
    pods = [an_upgraded_pod(f"web-{n}", n, **(pod(labels[n]) if pod else {})) for n in range(6)]
    group = an_upgraded_group(nodes) | dict(fields)
    snapshot = an_upgrade_snapshot(
        tmp_path,
        nodes=nodes,
        pods=pods,
        auto_scaling_groups={"AutoScalingGroups": [group]},
        launch_template_versions=templates({}, {}),
        **files,
    )
    result = leeward("upgrade", "plan", "web", "--snapshot", snapshot, "--now", NOON, "-o", "json")
    return sorted(found["code"] for found in result.json["findings"] if found["severity"] == "blocker")


@pytest.mark.parametrize(
    ("case", "codes"),
    [
        pytest.param({"fields": weighted()}, [], id="one unit each"),
        pytest.param({"fields": weighted(WeightedCapacity="2")}, ["CapacityUnits"], id="weights"),
        pytest.param({"fields": weighted("vcpu")}, ["CapacityUnits"], id="sizes count vCPUs"),
        pytest.param({"zone_ids": True, "pod": lambda own: {"nodeSelector": own}}, [], id="zone id in a selector"),
        pytest.param({"zone_ids": True, "pod": lambda _: {"topologySpreadConstraints": [SPREAD]}}, [], id="it spreads"),
    ],
)  # fmt: skip
def test_an_upgrade_is_blocked_where_its_launches_do_not_balance_and_nowhere_else(leeward, tmp_path, case, codes):
    assert upgrade_blockers(leeward, tmp_path, **case) == codes
