"""What fn sync writes down of the nodes that groups would launch, and what stays when one cannot be read."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model import well_known
from leeward.model.facts import ClusterFacts
from leeward.model.launch import LaunchSettings, LaunchSource, LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.sync.controller import sync_once
from tests.fakes.builders import CLUSTER, GROUP, a_group
from tests.fakes.network import M5_LARGE
from tests.fakes.system import FakeSystem

MANY = {f"example.com/label-{number}": str(number) for number in range(80)}
TEMPLATE = LaunchSource(template=LaunchTemplateRef(id="lt-1"))


def a_managed_group():
    group = a_group(GROUP)
    tags = {**group.tags, "eks:cluster-name": CLUSTER, well_known.NODEGROUP_TAG: "web"}
    return replace(group, tags=tags, launch=TEMPLATE, zones=("us-east-1a", "us-east-1b"))


def a_system(*groups):
    system = FakeSystem(groups=groups or [a_managed_group()])
    nodegroup = Nodegroup(name="web", cluster=CLUSTER, labels=MANY, capacity_type="SPOT", instance_types=("m5.large",))
    system.nodegroups.known[CLUSTER, "web"] = nodegroup
    system.launches.by_group[GROUP] = LaunchSettings(version=3, instance_type="")
    return system


def facts_of(system):
    return ClusterFacts.from_sheets(system.catalog.read(CLUSTER))


def template_of(system, group=GROUP):
    return facts_of(system).templates[group]


def test_a_group_at_zero_has_the_node_that_its_node_group_describes():
    system = a_system()
    assert sync_once(system.ports).warnings == []
    template = template_of(system)
    assert (template.types, template.zones) == (("m5.large",), ("us-east-1a", "us-east-1b"))
    assert template.capacity == "spot"
    assert MANY.items() <= template.node["metadata"]["labels"].items()
    assert template.node["status"]["allocatable"]["cpu"] == "1930m"
    assert system.said == []


def test_types_that_only_the_node_group_names_have_limits_and_prices_too():
    system = a_system()
    sync_once(system.ports)
    assert facts_of(system).types == {"m5.large": M5_LARGE}
    assert facts_of(system).prices.on_demand == {"m5.large": 0.096}


def test_with_the_permission_denied_the_tags_alone_are_used_and_it_is_said_once_not_each_run():
    system = a_system()
    system.nodegroups.fail("describe", AccessDeniedError("eks:DescribeNodegroup on blue/web"))
    for _ in range(3):
        assert sync_once(system.ports).errors == []
        system.clock.advance(minutes=5)
    labels = template_of(system).node["metadata"]["labels"]
    assert labels["nodegroup-name"] == "web"
    assert not MANY.keys() & labels.keys()
    assert len(system.said) == 1
    assert "eks:DescribeNodegroup on blue/web" in system.said[0]


def test_a_group_whose_template_cannot_be_read_keeps_what_was_known_and_does_not_age_the_others():
    system = a_system(a_managed_group(), replace(a_group("web-b"), launch=TEMPLATE))
    system.launches.by_group["web-b"] = LaunchSettings(version=1, instance_type="m5.large")
    sync_once(system.ports)
    before = template_of(system)
    system.clock.advance(minutes=20)
    system.launches.fail("settings", AwsUnavailableError("ec2:DescribeLaunchTemplateVersions"), times=1)
    synced = sync_once(system.ports)
    assert synced.warnings == [f"blue: templates: {GROUP}: ec2:DescribeLaunchTemplateVersions"]
    assert template_of(system) == before
    assert facts_of(system).stale(system.clock.now()) == ()


def test_when_none_can_be_read_the_sheet_grows_old_and_says_so():
    system = a_system()
    sync_once(system.ports)
    system.clock.advance(minutes=20)
    system.launches.fail("settings", AwsUnavailableError("ec2:DescribeLaunchTemplateVersions"))
    sync_once(system.ports)
    assert [kind.value for kind in facts_of(system).stale(system.clock.now())] == ["templates"]


def test_a_group_that_no_policy_selects_is_not_described():
    system = a_system(replace(a_managed_group(), name="other"))
    sync_once(system.ports)
    assert facts_of(system).templates == {}
    assert system.nodegroups.asked["describe"] == 0


def test_the_policys_time_to_live_decides_when_a_node_group_is_described_again():
    system = a_system()
    for _ in range(4):
        sync_once(system.ports)
        system.clock.advance(seconds=timedelta(seconds=59).seconds)
    assert system.nodegroups.asked["describe"] == 2
