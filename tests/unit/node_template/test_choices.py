"""All types, zones and purchase options of a group; InstanceRequirements as EC2's API reference has them."""

import pytest

from leeward.model.instance import CapacityType
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings, chosen
from leeward.model.quantity import PODS
from leeward.model.well_known import INSTANCE_TYPE_LABEL
from leeward.node_template.build import Sources, expected_nodes
from leeward.node_template.choices import as_launched, choices, matching, narrowed, with_image
from tests.unit.node_template.builders import TYPES, ZONES, a_group, a_launch, a_mixed_policy, a_nodegroup

ANY = {"VCpuCount": {"Min": 0}, "MemoryMiB": {"Min": 0}}


def names(architecture=None, **requirements):
    return [kind.name for kind in matching({**ANY, **requirements}, TYPES.values(), architecture)]


def types(group, launch=None, nodegroup=None, **more):
    return list(choices(group, launch, nodegroup, known=TYPES, **more).types)


class TestRequirements:
    def test_burstable_and_bare_metal_types_are_left_out_unless_asked_for(self):
        assert not {"t3.nano", "m5.metal"} & set(names())
        assert {"t3.nano", "m5.metal", "m5.large"} <= set(names(BurstablePerformance="included", BareMetal="included"))
        assert names(BurstablePerformance="required") == ["t3.nano", "t3.medium"]
        assert names(BareMetal="required") == ["m5.metal"]

    def test_the_smallest_comes_first(self):
        assert names()[:4] == ["m5.large", "i3.large", "inf1.xlarge", "g4dn.xlarge"]

    @pytest.mark.parametrize(
        ("requirements", "expected"),
        [
            ({"VCpuCount": {"Min": 4, "Max": 4}, "MemoryMiB": {"Min": 8192, "Max": 8192}}, ["inf1.xlarge"]),
            ({"MemoryGiBPerVCpu": {"Min": 4, "Max": 4}, "VCpuCount": {"Max": 2}}, ["m5.large"]),
            ({"AllowedInstanceTypes": ["m5*.large", "p4d*"]}, ["m5.large", "p4d.24xlarge"]),
            ({"ExcludedInstanceTypes": ["*.*xlarge"], "LocalStorage": "excluded"}, ["m5.large"]),
            ({"CpuManufacturers": ["amazon-web-services"]}, ["m6g.xlarge"]),
            ({"InstanceGenerations": ["previous"], "VCpuCount": {"Max": 2}}, ["m5.large"]),
            ({"LocalStorage": "required", "VCpuCount": {"Max": 2}}, ["i3.large"]),
            ({"TotalLocalStorageGB": {"Min": 5000}}, ["p4d.24xlarge"]),
            ({"LocalStorage": "required", "LocalStorageTypes": ["hdd"]}, []),
            ({"AcceleratorTypes": ["gpu"]}, ["g4dn.xlarge", "p4d.24xlarge"]),
            ({"AcceleratorTypes": ["inference"]}, ["inf1.xlarge", "trn1.2xlarge"]),
            ({"AcceleratorCount": {"Min": 2}}, ["p4d.24xlarge"]),
            ({"AcceleratorManufacturers": ["amazon-web-services"]}, ["inf1.xlarge", "trn1.2xlarge"]),
            ({"AcceleratorNames": ["t4", "v100"]}, ["g4dn.xlarge"]),
            ({"AcceleratorTotalMemoryMiB": {"Min": 300000}}, ["p4d.24xlarge"]),
            ({"NetworkInterfaceCount": {"Min": 20}}, ["p4d.24xlarge"]),
            ({"BaselineEbsBandwidthMbps": {"Min": 19000}}, ["c5.24xlarge", "p4d.24xlarge"]),
        ],
    )
    def test_each_requirement_narrows_the_list(self, requirements, expected):
        assert names(**requirements) == expected

    def test_no_accelerator_at_all(self):
        assert not {"g4dn.xlarge", "p4d.24xlarge", "inf1.xlarge", "trn1.2xlarge"} & set(
            names(AcceleratorCount={"Max": 0})
        )

    def test_the_architecture_of_the_image_counts(self):
        assert names("arm64") == ["m6g.xlarge"]


class TestTypes:
    def test_overrides_come_before_the_templates_type_in_their_own_order(self):
        policy = a_mixed_policy({"InstanceType": "t3.medium"}, {"InstanceType": "m5.large"})
        assert types(a_group(MixedInstancesPolicy=policy), a_launch("c5.24xlarge")) == ["t3.medium", "m5.large"]

    def test_without_overrides_the_templates_type_counts(self):
        assert types(a_group(), a_launch("m5.large")) == ["m5.large"]
        assert types(a_group(MixedInstancesPolicy=a_mixed_policy()), a_launch("m5.large")) == ["m5.large"]

    def test_a_launch_configuration_names_its_type(self):
        settings = LaunchSettings.from_configuration({"InstanceType": "m5.large", "SpotPrice": "0.1"})
        group = a_group(LaunchConfigurationName="old")
        found = choices(group, settings, known=TYPES)
        assert (found.types, found.capacity) == (("m5.large",), CapacityType.SPOT)

    @pytest.mark.parametrize("where", ["override", "template"])
    def test_requirements_stand_for_all_types_that_meet_them(self, where):
        needs = {**ANY, "AcceleratorTypes": ["gpu"]}
        if where == "override":
            group = a_group(MixedInstancesPolicy=a_mixed_policy({"InstanceRequirements": needs}))
            assert types(group, a_launch("")) == ["g4dn.xlarge", "p4d.24xlarge"]
        else:
            assert types(a_group(), a_launch("", InstanceRequirements=needs)) == ["g4dn.xlarge", "p4d.24xlarge"]

    def test_requirements_take_the_architecture_of_eks_image(self):
        group = a_group(managed=True, MixedInstancesPolicy=a_mixed_policy({"InstanceRequirements": ANY}))
        assert types(group, a_launch(""), a_nodegroup(amiType="BOTTLEROCKET_ARM_64")) == ["m6g.xlarge"]

    def test_requirements_that_nothing_meets_are_said(self):
        needs = {"VCpuCount": {"Min": 1000}, "MemoryMiB": {"Min": 0}}
        found = choices(a_group(), a_launch("", InstanceRequirements=needs), known=TYPES)
        assert found.types == ()
        assert any("no known instance type meets the requirements of eks-web-1" in one for one in found.warnings)

    @pytest.mark.parametrize(
        ("makers", "gpus", "neurons"),
        [(["nvidia"], [2], []), (["amazon-web-services"], [], [2]), (["nvidia", "amd"], [], []), ([], [], [])],
    )
    def test_the_fewest_accelerators_count_where_their_maker_is_certain(self, makers, gpus, neurons):
        needs = {**ANY, "AcceleratorCount": {"Min": 2}, "AcceleratorManufacturers": makers}
        found = choices(a_group(), a_launch("", InstanceRequirements=needs), known={}).minima
        assert [chip.count for chip in found.gpus] == gpus
        assert [chip.count for chip in found.neurons] == neurons

    def test_the_node_groups_types_and_then_the_running_ones_fill_in(self):
        group = a_group(managed=True)
        assert types(group, None, a_nodegroup(instanceTypes=["m5.large", "t3.medium"])) == ["m5.large", "t3.medium"]
        assert types(group, None, None, running=["t3.medium", "m5.large"]) == ["m5.large", "t3.medium"]

    def test_there_is_a_node_for_each_type(self):
        policy = a_mixed_policy({"InstanceType": "t3.medium"}, {"InstanceType": "m5.large"})
        group, launch = a_group(MixedInstancesPolicy=policy), a_launch("")
        found = choices(group, launch, known=TYPES)
        nodes = list(expected_nodes(Sources(group=group, choices=found, launch=launch, types=TYPES)))
        assert [node.labels[INSTANCE_TYPE_LABEL] for node in nodes] == ["t3.medium", "m5.large"]
        assert [node.capacity[PODS] for node in nodes] == [17, 29]

    def test_an_override_may_bring_its_own_launch_template(self):
        arm = {"InstanceType": "m6g.xlarge", "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-arm"}}
        group = a_group(MixedInstancesPolicy=a_mixed_policy({"InstanceType": "m5.large"}, arm))
        own = choices(group, a_launch(), known=TYPES).own
        assert as_launched(group, own.get("m5.large")) is group
        assert as_launched(group, own["m6g.xlarge"]).launch.template.id == "lt-arm"

    def test_an_override_may_bring_its_own_image(self):
        group = a_group(MixedInstancesPolicy=a_mixed_policy({"InstanceType": "m5.large", "ImageId": "ami-2"}))
        own = choices(group, a_launch(), known=TYPES).own
        launch = with_image(a_launch(), own["m5.large"])
        assert (launch.image, launch.overridden) == ("ami-2", True)

    def test_what_is_asked_for_comes_first_and_nothing_is_lost(self):
        policy = a_mixed_policy({"InstanceType": "t3.medium"}, {"InstanceType": "m5.large"})
        found = choices(a_group(MixedInstancesPolicy=policy), a_launch(""), known=TYPES)
        assert found.zones == ZONES
        asked = narrowed(found, zone="us-east-1b", instance_type="m5.large")
        assert (asked.types, asked.zones) == (("m5.large", "t3.medium"), ("us-east-1b", "us-east-1a"))


class TestCapacity:
    def capacity(self, group, launch=None, nodegroup=None):
        return choices(group, launch or a_launch(), nodegroup, known=TYPES).capacity

    def mixed(self, percentage, base=0, instances=0):
        policy = a_mixed_policy({"InstanceType": "m5.large"})
        policy["InstancesDistribution"] = {
            "OnDemandPercentageAboveBaseCapacity": percentage,
            "OnDemandBaseCapacity": base,
        }
        members = [{"InstanceId": f"i-{number}"} for number in range(instances)]
        return a_group(MixedInstancesPolicy=policy, Instances=members)

    def test_a_plain_group_is_on_demand_unless_its_template_says_spot(self):
        assert self.capacity(a_group()) is CapacityType.ON_DEMAND
        spot = a_launch(InstanceMarketOptions={"MarketType": "spot"})
        assert self.capacity(a_group(), spot) is CapacityType.SPOT

    def test_the_percentage_decides_and_the_base_first(self):
        assert self.capacity(self.mixed(0)) is CapacityType.SPOT
        assert self.capacity(self.mixed(100)) is CapacityType.ON_DEMAND
        assert self.capacity(self.mixed(50)) is None
        assert self.capacity(self.mixed(0, base=2, instances=1)) is None
        assert self.capacity(self.mixed(0, base=2, instances=2)) is CapacityType.SPOT

    def test_eks_word_counts_for_a_managed_group(self):
        group = a_group(managed=True)
        assert self.capacity(group, nodegroup=a_nodegroup(capacityType="SPOT")) is CapacityType.SPOT
        assert self.capacity(group, nodegroup=a_nodegroup(capacityType="ON_DEMAND")) is CapacityType.ON_DEMAND


class TestVersions:
    VERSIONS = tuple(LaunchSettings(version=number, default=number == 2) for number in (1, 2, 3))

    @pytest.mark.parametrize(("wanted", "number"), [("$Latest", 3), ("$Default", 2), ("1", 1)])
    def test_the_version_that_is_meant(self, wanted, number):
        assert chosen(self.VERSIONS, wanted).version == number

    def test_a_version_that_is_not_there_is_none(self):
        assert chosen(self.VERSIONS, "9") is None
        assert chosen((), "$Latest") is None


def test_memory_and_cores_of_an_accelerator_are_read():
    raw = {
        "InstanceType": "x",
        "NeuronInfo": {
            "NeuronDevices": [{"Name": "n", "Count": 2, "CoreInfo": {"Count": 4}, "MemoryInfo": {"SizeInMiB": 7}}]
        },
    }
    (chip,) = InstanceType.from_json(raw).neurons
    assert (chip.count, chip.cores, chip.memory_mib) == (2, 4, 7)
