"""`leeward upgrade plan` of groups whose types or images are of another architecture than the first type."""

import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.upgrade import a_node, a_pod, an_upgrade_snapshot, templates

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
    def run(**files):
        snapshot = an_upgrade_snapshot(tmp_path, **files)
        result = leeward("upgrade", "plan", "web", "--snapshot", snapshot, "--now", NOON, "-o", "json")
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
