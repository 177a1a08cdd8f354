"""The first state of node-group-upgrade finds what `leeward upgrade plan` finds: blockers end it before any change."""

import pytest

from simulation.image_aliases import PUBLIC
from tests.simulation.fleet_stand_in import deployment
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet


def bound(name, label):
    """Pods that run only on nodes with the label."""
    found = deployment(name, 2)
    found["spec"]["template"]["spec"]["nodeSelector"] = {label: "yes"}
    return found


def unchanged(world):
    changes = world.world.system.changes
    return world.at_rest(versions=("1",)) and not (changes.pointed or changes.raised or changes.switched)


def labelled(world, label):
    """Label a node of each zone: a label that every node of a zone carries may come from a controller."""
    for member in list(world.world.fleet.groups[GROUP].members.values())[:3]:
        world.world.cluster.patch("nodes", member.node, {"metadata": {"labels": {label: "yes"}}})


def test_pods_that_nothing_can_host_on_the_new_template_stop_it():
    world = Upgraded(a_fleet(workloads=(bound("web", "manual"),)))
    world.at(30, lambda: labelled(world, "manual")).start(launchTemplateVersion="2").run()
    assert (world.ended(), unchanged(world)) == ("PreflightBlocked", True)
    assert "PodsFitNowhere (pod default/web-" in world.why()


def test_a_zone_without_addresses_for_the_surge_stops_it():
    world = Upgraded().start(launchTemplateVersion="2")
    world.world.fleet.subnet_size = 61  # three nodes of two interfaces in each zone leave one address
    world.run()
    assert (world.ended(), unchanged(world)) == ("PreflightBlocked", True)
    assert "ZoneWithoutAddresses (zone us-east-1a)" in world.why()


@pytest.mark.parametrize(
    ("say", "code"),
    [
        (lambda account: account.left.update({False: 1}), "InstanceQuota"),
        (lambda account: account.running.update({GROUP: ("refresh-1",)}), "InstanceRefreshRunning"),
        (lambda account: account.versions.update({"blue": "1.20"}), "KubeletNewer"),
    ],
)
def test_quota_refreshes_and_versions_stop_it_and_pass_when_overridden_by_name(say, code):
    world = Upgraded()
    say(world.world.system.service_limits)
    world.world.system.templates.parameters.update(dict.fromkeys(PUBLIC.values(), "ami-00000000000000002"))
    asked = {"kubernetesVersion": "1.33"} if code == "KubeletNewer" else {"launchTemplateVersion": "2"}
    world.start(**asked)
    if code != "KubeletNewer":
        world.start("again", at=BEGIN + 300, override=[code], **asked)
    world.run()
    assert world.ended() == "PreflightBlocked"
    assert code in world.why()
    if code != "KubeletNewer":
        assert (world.ended("again"), world.at_rest()) == ("Upgraded", True)


def test_the_plan_that_was_made_stays_to_be_read_with_time_cost_and_warnings():
    world = Upgraded()
    world.world.system.service_limits.actions[GROUP] = ("nightly",)
    world.start(launchTemplateVersion="2").run()
    kept = world.world.system.upgrades.plan(GROUP)
    assert (kept["execution"], kept["overridden"]) == ("first", [])
    assert sum(map(len, kept["plan"]["waves"])) == 6
    assert kept["plan"]["durationSeconds"] > 0
    assert kept["plan"]["surgeCost"] > 0
    assert {one["code"] for one in kept["plan"]["findings"]} == {"MaxSizeRaised", "ScheduledActions"}
    assert "about 6 waves" in next(line for line in world.world.story if "upgrade check" in line)
