"""`leeward upgrade plan` of groups whose types or images are of another architecture than the first type."""

import json

import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.upgrade import a_group, a_node, a_pod, an_upgrade_snapshot, templates

ARCH, TYPE = "kubernetes.io/arch", "node.kubernetes.io/instance-type"
BOTH = [
    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
    {"key": ARCH, "operator": "In", "values": ["amd64", "arm64"]},
]


def mixed(*overrides):
    specification = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "Version": "$Latest"}
    return {
        "LaunchTemplate": None,
        "MixedInstancesPolicy": {
            "LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": list(overrides)},
            "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100},
        },
    }


@pytest.fixture
def codes(leeward, tmp_path):
    def run(*more, **files):
        snapshot = an_upgrade_snapshot(tmp_path, **files)
        result = leeward("upgrade", "plan", "web", "--snapshot", snapshot, "--now", NOON, "-o", "json", *more)
        return [(one["code"], one["severity"]) for one in result.json["findings"]]

    return run


def test_pods_that_accept_both_architectures_fit_a_group_that_launches_both(codes):
    """EKS' own coredns asks so."""
    nodes = [a_node(0), a_node(1, labels={ARCH: "arm64", TYPE: "m6g.xlarge"}), a_node(2)]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": BOTH}]}
        }
    }
    pods = [a_pod(f"dns-{number}", number, app="dns", cpu="100m", affinity=affinity) for number in range(3)]
    group = mixed({"InstanceType": "m5.large"}, {"InstanceType": "m6g.xlarge"})
    assert ("PodsFitNowhere", "blocker") not in codes(nodes=nodes, pods=pods, group=group)


def test_a_group_by_attributes_launches_types_of_the_architecture_of_its_image(codes):
    nodes = [a_node(number, labels={ARCH: "arm64", TYPE: "m6g.xlarge"}) for number in range(3)]
    pods = [a_pod(f"web-{number}", number, nodeSelector={ARCH: "arm64"}) for number in range(3)]
    needs = {"VCpuCount": {"Min": 4, "Max": 4}, "MemoryMiB": {"Min": 16384, "Max": 16384}}
    versions = templates({}, {})
    images = []
    for version in versions["LaunchTemplateVersions"]:
        version["LaunchTemplateData"].pop("InstanceType")
        image = version["LaunchTemplateData"]["ImageId"]
        images.append({"ImageId": image, "Architecture": "arm64", "ImageOwnerAlias": "amazon", "OwnerId": "1"})
    found = codes(
        nodes=nodes,
        pods=pods,
        group=mixed({"InstanceRequirements": needs}),
        launch_template_versions=versions,
        images={"Images": images},
    )
    assert not {code for code, severity in found if severity == "blocker"}


ARM_NEEDS, X86_NEEDS = (
    {"VCpuCount": {"Min": 2, "Max": 4}, "MemoryMiB": {"Min": 8192}, "CpuManufacturers": [maker]}
    for maker in ("amazon-web-services", "intel")
)
NEW, OLD = "2", "1"


def two_images(version):
    """A group that chooses types by attributes for an image of each architecture, one template for each image, with a
    node of each that comes from this version.
    """
    arm = {"LaunchTemplateId": "lt-arm", "LaunchTemplateName": "arm", "Version": "$Latest"}
    group = mixed(
        {"InstanceRequirements": X86_NEEDS}, {"InstanceRequirements": ARM_NEEDS, "LaunchTemplateSpecification": arm}
    )
    nodes = [a_node(0), a_node(1, labels={ARCH: "arm64", TYPE: "m6g.xlarge"})]
    versions = templates({}, {})["LaunchTemplateVersions"]
    for one in versions:
        one["LaunchTemplateData"].pop("InstanceType")
    of_arm = [json.loads(json.dumps(one)) for one in versions]
    for number, one in enumerate(of_arm):
        one |= {"LaunchTemplateId": "lt-arm", "LaunchTemplateName": "arm"}
        one["LaunchTemplateData"]["ImageId"] = f"ami-0a{number}"
    images = [
        {"ImageId": one["LaunchTemplateData"]["ImageId"], "Architecture": architecture}
        for kind, architecture in ((versions, "x86_64"), (of_arm, "arm64"))
        for one in kind
    ]
    members = a_group(nodes)["Instances"]
    for member, template, kind in zip(members, ("lt-1", "lt-arm"), ("m5.large", "m6g.xlarge"), strict=True):
        member |= {"LaunchTemplate": {"LaunchTemplateId": template, "Version": version}, "InstanceType": kind}
    return {
        "nodes": nodes,
        "pods": [],
        "group": {**group, "Instances": members},
        "launch_template_versions": {"LaunchTemplateVersions": [*versions, *of_arm]},
        "images": {"Images": [{"ImageOwnerAlias": "amazon", "OwnerId": "1", **image} for image in images]},
    }


@pytest.mark.parametrize(("version", "old"), [(NEW, []), (OLD, ["node-0", "node-1"])])
def test_nodes_of_each_image_of_a_group_are_old_by_their_own_template(leeward, tmp_path, version, old):
    snapshot = an_upgrade_snapshot(tmp_path, **two_images(version))
    plan = leeward("upgrade", "plan", "web", "--snapshot", snapshot, "--now", NOON, "-o", "json").json
    assert sorted(name for wave in plan["waves"] for name in wave) == old
    assert not [one for one in plan["findings"] if one["severity"] == "blocker"]


def test_an_image_that_overrides_name_is_not_changed_by_a_version_made_for_another(codes):
    group = mixed({"InstanceType": "m5.large", "ImageId": "ami-0123456789abcdef1"})
    assert ("ImageOverridden", "blocker") in codes("--ami", "ami-0123456789abcdef0", group=group)
    assert ("ImageOverridden", "blocker") not in codes(group=group)


def test_types_with_a_launch_template_of_their_own_do_not_run_the_image_that_is_asked_for(codes):
    found = codes("--ami", "al2023@1.32", **two_images(OLD))
    assert [code for code, severity in found if severity == "blocker"] == []
