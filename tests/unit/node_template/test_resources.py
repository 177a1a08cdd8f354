"""Capacity and allocatable of real instance types (as DescribeInstanceTypes returns them) against EKS' own figures.

Max pods: amazon-eks-ami, templates/shared/runtime/eni-max-pods.txt. Kube-reserved: nodeadm's config.go, worked out by
hand. Memory: Karpenter's vmMemoryOverheadPercent of 7.5 %."""

import pytest

from leeward.model.quantity import CPU, MEMORY
from leeward.node_template.kubelet import kube_reserved
from leeward.node_template.resources import Networking
from tests.unit.node_template.builders import TYPES, a_group, a_launch, a_nodegroup, allocatable, capacity

MIB = 1024**2
ENI_MAX_PODS = {
    "m5.large": 29,
    "m5.xlarge": 58,
    "m6g.xlarge": 58,
    "c5.24xlarge": 737,
    "g4dn.xlarge": 29,
    "p4d.24xlarge": 737,
    "inf1.xlarge": 38,
    "trn1.2xlarge": 58,
    "t3.nano": 4,
    "t3.medium": 17,
    "m5.metal": 737,
    "i3.large": 29,
}
RESERVED = {  # thousandths of a core, MiB
    "m5.large": (70, 574),
    "m6g.xlarge": (80, 893),
    "c5.24xlarge": (310, 8362),
    "g4dn.xlarge": (80, 574),
    "p4d.24xlarge": (310, 8362),
    "inf1.xlarge": (80, 673),
    "t3.nano": (70, 299),
}
GIB_20 = 20 * 1024**3


def of(kind, **arguments):
    return {"launch": a_launch(kind), **arguments}


@pytest.mark.parametrize(("kind", "pods"), ENI_MAX_PODS.items())
def test_a_self_managed_node_takes_as_many_pods_as_its_interfaces_allow(kind, pods):
    assert capacity(**of(kind))["pods"] == allocatable(**of(kind))["pods"] == str(pods)


@pytest.mark.parametrize(("kind", "reserved"), RESERVED.items())
def test_kube_reserved_is_eks_published_formula(kind, reserved):
    found = kube_reserved(vcpus=TYPES[kind].vcpus, pods=ENI_MAX_PODS[kind])
    assert (found[CPU], found[MEMORY] // MIB) == reserved


def test_a_m5_large_in_full():
    assert capacity(**of("m5.large")) == {
        "cpu": "2",
        "memory": "7577Mi",  # 8192 less 7.5 %
        "ephemeral-storage": "20Gi",
        "pods": "29",
    }
    assert allocatable(**of("m5.large")) == {
        "cpu": "1930m",
        "memory": "6903Mi",  # less 574 for kubelet and 100 for evictions
        "ephemeral-storage": "17Gi",  # less 1 for kubelet and a tenth
        "pods": "29",
    }


def test_a_node_too_small_for_what_eks_reserves_offers_what_is_left():
    assert allocatable(**of("t3.nano"))["memory"] == "74Mi"  # 512 - 39 - 299 - 100


def test_graviton_keeps_64_mib_more_to_itself():
    assert capacity(**of("m6g.xlarge"))["memory"] == "15096Mi"  # (16384 - 64) less 7.5 %


@pytest.mark.parametrize(
    ("kind", "resource", "count"),
    [
        ("g4dn.xlarge", "nvidia.com/gpu", "1"),
        ("p4d.24xlarge", "nvidia.com/gpu", "8"),
        ("inf1.xlarge", "aws.amazon.com/neuron", "1"),  # reported under two names, there once
        ("inf1.xlarge", "aws.amazon.com/neuroncore", "4"),
        ("trn1.2xlarge", "aws.amazon.com/neuron", "1"),
    ],
)
def test_accelerators_are_offered_as_their_device_plugins_name_them(kind, resource, count):
    assert capacity(**of(kind))[resource] == allocatable(**of(kind))[resource] == count


@pytest.mark.parametrize(("maker", "resource"), [("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi")])
def test_gpus_of_other_makers_have_names_of_their_own(maker, resource):
    raw = {"InstanceType": "x.large", "GpuInfo": {"Gpus": [{"Manufacturer": maker, "Name": "chip", "Count": 4}]}}
    found = capacity(launch=a_launch("x.large"), types={"x.large": type(TYPES["m5.large"]).from_json(raw)})
    assert found[resource] == "4"
    assert "nvidia.com/gpu" not in found


def test_efa_is_there_only_where_the_launch_template_attaches_it():
    assert "vpc.amazonaws.com/efa" not in capacity(**of("p4d.24xlarge"))
    interfaces = [{"InterfaceType": "efa"}, {"InterfaceType": "efa-only"}, {"InterfaceType": "interface"}, {}]
    launch = a_launch("p4d.24xlarge", NetworkInterfaces=interfaces)
    assert capacity(launch=launch)["vpc.amazonaws.com/efa"] == "2"


def test_where_eks_writes_the_user_data_max_pods_is_capped_at_110_and_from_30_cores_at_250():
    assert capacity(**of("c5.24xlarge", nodegroup=a_nodegroup()))["pods"] == "250"
    prefixes = Networking(prefixes=True)
    assert capacity(**of("m5.large", nodegroup=a_nodegroup(), networking=prefixes))["pods"] == "110"
    assert capacity(**of("m5.large", nodegroup=a_nodegroup()))["pods"] == "29"


def test_the_cap_holds_whatever_the_user_data_of_a_managed_group_says():
    """The EKS user guide: it takes precedence over any other configuration of max pods."""
    launch = a_launch("m5.large", "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args --max-pods=200\n")
    assert capacity(launch=launch, nodegroup=a_nodegroup(amiType="AL2_x86_64"))["pods"] == "110"
    assert capacity(launch=launch, nodegroup=a_nodegroup(amiType="CUSTOM"))["pods"] == "200"


def test_an_image_of_ones_own_is_not_capped_and_does_not_know_prefixes():
    custom = a_nodegroup(amiType="CUSTOM")
    assert capacity(**of("c5.24xlarge", nodegroup=custom))["pods"] == "737"
    assert capacity(**of("m5.large", networking=Networking(prefixes=True)))["pods"] == "29"


def test_under_custom_networking_the_first_interface_serves_no_pods():
    found = capacity(**of("m5.large", nodegroup=a_nodegroup(), networking=Networking(custom=True)))
    assert found["pods"] == "20"  # 2 x 9 + 2, as max-pods-calculator.sh


def test_of_several_types_of_a_managed_group_the_fewest_pods_count_for_all():
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1"},
            "Overrides": [{"InstanceType": "m5.xlarge"}, {"InstanceType": "t3.medium"}],
        }
    }
    managed = a_group(managed=True, MixedInstancesPolicy=policy)
    assert capacity(group=managed, launch=a_launch(""), nodegroup=a_nodegroup())["pods"] == "17"
    assert capacity(group=a_group(MixedInstancesPolicy=policy), launch=a_launch(""))["pods"] == "58"


def test_memory_is_kept_for_the_interfaces_pods_whatever_max_pods_says_except_on_bottlerocket():
    script = "#!/bin/bash\n/etc/eks/bootstrap.sh blue --use-max-pods false --kubelet-extra-args '--max-pods=110'\n"
    assert allocatable(launch=a_launch("m5.large", script))["memory"] == "6903Mi"
    toml = "[settings.kubernetes]\nmax-pods = 110\n"
    assert allocatable(launch=a_launch("m5.large", toml))["memory"] == "6012Mi"  # 7577 - (255 + 11 * 110) - 100


def test_storage_is_the_root_volume_else_the_disk_size_else_eks_default():
    volume = [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100}}, {"DeviceName": "/dev/sdb", "Ebs": {}}]
    root = a_launch(BlockDeviceMappings=volume)
    assert capacity(launch=root, nodegroup=a_nodegroup(diskSize=50))["ephemeral-storage"] == "100Gi"
    assert capacity(nodegroup=a_nodegroup(diskSize=50))["ephemeral-storage"] == "50Gi"
    assert capacity(nodegroup=a_nodegroup(amiType="WINDOWS_CORE_2022_x86_64"))["ephemeral-storage"] == "50Gi"


def test_bottlerocket_keeps_pods_on_its_data_volume():
    volumes = [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 4}},
        {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 80}},
    ]
    found = capacity(launch=a_launch(BlockDeviceMappings=volumes), nodegroup=a_nodegroup(amiType="BOTTLEROCKET_x86_64"))
    assert found["ephemeral-storage"] == "80Gi"


def test_local_disks_made_into_one_are_the_storage():
    config = (
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  instance: {localStorage: {strategy: RAID0}}\n"
    )
    assert capacity(launch=a_launch("i3.large", config))["ephemeral-storage"] == str(475 * 10**9)


@pytest.mark.parametrize(
    ("options", "cpu"),
    [({"CoreCount": 2, "ThreadsPerCore": 1}, ("2", "1930m")), ({"AmdSevSnp": "enabled"}, ("4", "3920m"))],
    ids=["without hyper-threading", "other options"],
)
def test_cpu_options_leave_fewer_cores_than_the_type_has(options, cpu):
    launch = a_launch("m6g.xlarge", CpuOptions=options)
    assert (capacity(launch=launch)["cpu"], allocatable(launch=launch)["cpu"]) == cpu


def test_pods_per_core_count_the_cores_that_cpu_options_leave():
    config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {podsPerCore: 10}}}\n"
    launch = a_launch("m6g.xlarge", config, CpuOptions={"CoreCount": 2, "ThreadsPerCore": 1})
    assert capacity(launch=launch)["pods"] == "20"


def test_an_unknown_type_offers_nothing_so_that_nothing_is_thought_to_fit():
    assert capacity(launch=a_launch("m9.large")) == {}
