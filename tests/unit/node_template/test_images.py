"""Architecture and operating system of a node, where only its image tells them."""

from dataclasses import replace

import pytest

from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.node_template.choices import choices
from leeward.node_template.gathering import look_up, sources_by_type
from leeward.node_template.provenance import Attribute, Provenance
from leeward.policy.document import TemplatePolicy
from tests.fakes.network import FakeLaunchSources
from tests.unit.node_template.builders import a_group, a_launch, a_mixed_policy, a_nodegroup, an_expected_node

KINDS = {
    name: InstanceType(name=name, vcpus=2, memory_mib=8192, architectures=(architecture,))
    for name, architecture in (("m5.large", "amd64"), ("m6g.large", "arm64"), ("m7g.large", "arm64"))
}
ARM, WINDOWS = Image(id="ami-1", architecture="arm64"), Image(id="ami-1", architecture="amd64", windows=True)
BY_NEEDS = a_group(MixedInstancesPolicy=a_mixed_policy({"InstanceRequirements": {"VCpuCount": {"Min": 2, "Max": 2}}}))
CUSTOM = a_nodegroup(amiType="CUSTOM")


class Nodegroups:
    def get(self, cluster, name, lasts):
        return CUSTOM


def looked(group, launch, image=ARM):
    """What is looked up for the group, and how often its image was read."""
    launches = FakeLaunchSources(KINDS.values())
    launches.by_group[group.name], launches.images = launch, {"ami-1": image}
    found = look_up(group, "blue", TemplatePolicy(), nodegroups=Nodegroups(), launches=launches)
    return found, launches.asked["image"]


class TestArchitecture:
    def test_requirements_take_types_that_run_the_image(self):
        found, _ = looked(BY_NEEDS, a_launch(kind=""))
        assert (found.choices.types, found.choices.architecture) == (("m6g.large", "m7g.large"), Provenance.DECLARED)

    def test_without_the_image_the_running_types_give_an_estimate(self):
        found = choices(BY_NEEDS, a_launch(kind=""), known=KINDS, running=["m7g.large"])
        assert (found.types, found.architecture) == (("m6g.large", "m7g.large"), Provenance.ESTIMATED)

    def test_without_both_it_is_unknown_and_that_is_said(self):
        found = choices(BY_NEEDS, a_launch(kind=""), known=KINDS)
        assert (len(found.types), found.architecture) == (3, Provenance.UNKNOWN)
        assert "the architecture of the image of eks-web-1 is not known" in found.warnings[0]

    def test_types_of_one_architecture_leave_no_doubt(self):
        found = choices(BY_NEEDS, a_launch(kind=""), known={"m6g.large": KINDS["m6g.large"]})
        assert (found.warnings, found.architecture) == ((), Provenance.DECLARED)


class TestImagesOfOverrides:
    """Sets of requirements for different images, each with a launch template of its own, as the guide of EC2 Auto
    Scaling has them.
    """

    class Launches(FakeLaunchSources):
        def settings(self, group):
            arm = group.launch.template.id == "lt-arm"
            image, template = ("ami-arm", "lt-arm") if arm else ("ami-x86", "lt-1")
            return replace(a_launch(kind=""), image=image, template=template)

    def looked(self, **own):
        two = {"VCpuCount": {"Min": 2, "Max": 2}}
        policy = a_mixed_policy({"InstanceRequirements": two}, {"InstanceRequirements": two, **own})
        launches = self.Launches(KINDS.values())
        launches.images = {
            name: Image(id=name, architecture=architecture)
            for name, architecture in (("ami-x86", "amd64"), ("ami-arm", "arm64"))
        }
        group = a_group(MixedInstancesPolicy=policy)
        found = look_up(group, "blue", TemplatePolicy(), nodegroups=Nodegroups(), launches=launches)
        return found, sources_by_type(found, launches, {})

    @pytest.mark.parametrize(
        "own", [{"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-arm"}}, {"ImageId": "ami-arm"}]
    )
    def test_each_set_of_requirements_takes_types_that_run_its_own_image(self, own):
        found, sources = self.looked(**own)
        assert (found.choices.types, found.choices.warnings) == (("m5.large", "m6g.large", "m7g.large"), ())
        assert found.choices.architecture is Provenance.DECLARED
        assert {name: one.launch.image for name, one in sources.items()} == {
            "m5.large": "ami-x86",
            "m6g.large": "ami-arm",
            "m7g.large": "ami-arm",
        }


class TestOperatingSystem:
    @pytest.mark.parametrize("nodegroup", [None, CUSTOM])
    def test_the_image_tells_it(self, nodegroup):
        node = an_expected_node(nodegroup=nodegroup, image=WINDOWS)
        assert (node.labels["kubernetes.io/os"], node.allocatable["pods"]) == ("windows", 110)
        assert node.provenance[Attribute.OS] is Provenance.DECLARED

    def test_without_the_image_linux_is_an_estimate(self):
        node = an_expected_node()
        assert (node.labels["kubernetes.io/os"], node.provenance[Attribute.OS]) == ("linux", Provenance.ESTIMATED)

    def test_an_override_with_an_image_of_its_own_is_not_judged_by_it(self):
        node = an_expected_node(launch=a_launch(ImageId="ami-2"), image=WINDOWS)
        assert node.labels["kubernetes.io/os"] == "linux"


class TestCalls:
    def test_the_image_is_read_where_it_decides(self):
        script = "#!/bin/bash\n/etc/eks/bootstrap.sh blue\n"
        assert looked(a_group(), a_launch())[1] == 1
        assert looked(BY_NEEDS, a_launch(kind="", user_data=script))[1] == 1
        assert looked(a_group(), a_launch(user_data=script))[1] == 0
        assert looked(a_group(), a_launch(ImageId="resolve:ssm:/golden/web"))[1] == 0
