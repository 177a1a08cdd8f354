"""New nodes that do not come as they should: what is said of them, and how the next start goes on (U6, U8)."""

import base64
from dataclasses import replace

import pytest

from simulation.aws.network import SimLaunchSources
from tests.simulation.upgrade_stand_in import BEGIN, Upgraded, a_fleet
from tests.simulation.upgrade_story import an_upgrade, template_denied

HOUR = 3600.0


def test_a_template_that_the_function_may_not_use_ends_the_upgrade_with_the_right_and_the_fix(monkeypatch):
    """Auto Scaling tries the launch with the function's rights; its answer names no right."""
    world = template_denied(monkeypatch, an_upgrade(), until=BEGIN + 2 * HOUR).run()
    assert world.ended() == "NodeCreationFailure"
    assert "Auto Scaling does not let app use launch template" in world.why()
    for said in ("ec2:RunInstances", "ec2:CreateFleet", "iam:PassRole", "nodeRoles", "docs/deploy.md"):
        assert said in world.why()
    assert "tag the template kubernetes.io/cluster/blue: owned" in world.why()
    assert (world.group.suspended, world.group.maximum, launched(world)) == ((), 6, [])


def launched(world):
    return [instance for _, instance in world.world.launches]


def test_started_again_what_never_joined_is_ended_and_others_are_launched():
    world = Upgraded().start(launchTemplateVersion="2")
    world.template.bad.add("2")
    world.at(BEGIN + HOUR, world.template.bad.clear).start("again", at=BEGIN + HOUR + 60).run(2)
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("NodeCreationFailure", "Upgraded", True)
    assert len(launched(world)) == 12
    assert any("never joined the cluster and were ended" in warning for warning in world.record.warnings)


def test_started_again_with_another_version_it_does_the_same():
    world = Upgraded().start(launchTemplateVersion="2")
    world.template.bad.add("2")
    world.template.add("ami-00000000000000003")
    world.start("again", at=BEGIN + HOUR, launchTemplateVersion="3").run(2)
    assert (world.ended(), world.ended("again")) == ("NodeCreationFailure", "Upgraded")
    assert world.at_rest(versions=("3",))


def test_a_member_of_the_target_that_never_joined_before_the_start_is_ended_and_replaced():
    """Its group had launched it before: the gate waits for every member of the target."""
    world = Upgraded(a_fleet(maximum=8))
    world.template.bad.add("2")
    app = world.world.fleet.groups["app"]
    world.at(60, lambda: app.point_at("2")).at(61, lambda: world.world.fleet.resize(app, 7))
    world.at(120, world.template.bad.clear).start(at=BEGIN + HOUR).run(2)
    assert (world.ended(), world.versions) == ("Upgraded", ["2"])


def test_with_minimal_the_group_replaces_what_never_joined():
    world = Upgraded(a_fleet(strategy="MINIMAL")).start(launchTemplateVersion="2")
    world.template.bad.add("2")
    world.at(BEGIN + HOUR, world.template.bad.clear).start("again", at=BEGIN + HOUR + 60).run(2)
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("NodeCreationFailure", "Upgraded", True)


def test_started_again_too_early_it_waits_for_what_still_boots():
    world = Upgraded().start(launchTemplateVersion="2")
    world.at(BEGIN + 20, lambda: world.machine.stop("first")).start("again", at=BEGIN + 30).run()
    assert (world.ended("again"), world.at_rest(), len(launched(world))) == ("Upgraded", True, 6)


def test_a_node_that_joins_and_is_not_ready_is_reported_with_its_condition():
    world = Upgraded().start(launchTemplateVersion="2")
    cluster = world.world.cluster

    def unready():
        joined = {node["metadata"]["name"] for node in cluster.store.each("nodes")}
        for name in {f"node-{one}" for one in launched(world)[:1]} & joined:
            cluster.set_node_ready(name, "False")

    for second in range(30, 1100):
        world.at(BEGIN + second, unready)
    world.run(1)
    assert world.ended() == "NodeCreationFailure"
    assert f"node-{launched(world)[0]}: not Ready for" in world.why()
    assert "Ready=False (" in world.why()


@pytest.mark.parametrize("strategy", ["DEFAULT", "INCREMENTAL"])
def test_a_zone_without_capacity_is_searched_for_a_while_and_then_named(strategy):
    world = Upgraded(a_fleet(strategy=strategy)).start(launchTemplateVersion="2")
    world.world.injector.lacks = lambda zone: zone == "us-east-1c"
    world.run()
    assert world.ended() == "NodeCreationFailure"
    assert "us-east-1c: no new node could be launched: InsufficientInstanceCapacity" in world.why()
    assert world.record.finished == 0


def test_started_again_it_searches_for_capacity_from_then_on():
    world = Upgraded().start(launchTemplateVersion="2").start("again", at=BEGIN + HOUR)
    back = world.world.timeline.now() + BEGIN + HOUR + 120
    world.world.injector.lacks = lambda zone: zone == "us-east-1c" and world.world.timeline.now() < back
    world.run(2)
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("NodeCreationFailure", "Upgraded", True)


def refused(size=6, zones="abc", **update):
    """An upgrade of a group that LaunchInstances does not serve."""
    fleet, named = a_fleet(**update), tuple(f"us-east-1{letter}" for letter in zones)
    plan = replace(fleet.groups[0], size=size, maximum=size, zones=named, refuses="AccessDenied: not authorized")
    world = Upgraded(replace(fleet, groups=(plan, *fleet.groups[1:])))
    return world.start(launchTemplateVersion="2", override=["ZoneWithoutAddresses"])


def test_where_launches_are_refused_a_second_start_searches_for_capacity_too():
    """The first has launched twice the zones elsewhere: a raise each five minutes reaches the zone later."""
    world = refused().start("again", at=BEGIN + HOUR / 2)
    back = world.world.timeline.now() + BEGIN + HOUR / 2 + 120
    world.world.injector.lacks = lambda zone: zone == "us-east-1c" and world.world.timeline.now() < back
    world.run()
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("NodeCreationFailure", "Upgraded", True)


@pytest.mark.parametrize("most", [{}, {"max_surge": 3}], ids=["auto", "maxSurge"])
def test_where_launches_are_refused_a_zone_that_its_owner_took_from_the_group_is_not_waited_for(most):
    world = refused(**most)
    app = world.world.fleet.groups["app"]
    world.at(60, lambda: setattr(app, "plan", replace(app.plan, zones=("us-east-1a", "us-east-1b")))).run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert set(world.zones) == {"us-east-1a", "us-east-1b"}


@pytest.mark.parametrize("size", [5, 2])
def test_where_launches_are_refused_the_group_grows_until_it_chooses_the_zones_of_old_nodes(size):
    """A group balances over all its zones; its size grows by twice these at the most."""
    world = refused(size, "abcdef").run()
    assert world.ended() == "Upgraded"
    assert (world.group.desired, world.group.maximum, world.versions) == (size, size, ["2"])


def with_user_data(world, monkeypatch, labels):
    script = f"#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args '--node-labels={labels}'\n"
    real = SimLaunchSources.settings

    def settings(sources, group):
        return replace(real(sources, group), user_data=base64.b64encode(script.encode()).decode())

    monkeypatch.setattr(SimLaunchSources, "settings", settings)
    return world


def test_a_node_without_the_labels_of_its_user_data_is_reported_with_them(monkeypatch):
    world = with_user_data(Upgraded(), monkeypatch, "team=web,pool=app").start(launchTemplateVersion="2")
    world.world.labels = losing_team
    world.run()
    assert world.ended() == "NodeCreationFailure"
    assert "joined without the labels team=web: custom user data overwrites --node-labels" in world.why()
    assert "or start again with --override LabelsMissing" in world.why()
    assert world.record.finished == 0


def losing_team(member):
    """Labels of nodes, of which only those of the first version carry `team`."""
    return {"pool": "app", **({"team": "web"} if member.version == "1" else {})}


def test_with_an_override_the_upgrade_goes_on_without_the_labels(monkeypatch):
    world = with_user_data(Upgraded(), monkeypatch, "team=web,pool=app").start(launchTemplateVersion="2")
    world.world.labels = losing_team
    world.start("second", BEGIN + 3600, override=["LabelsMissing"]).run(2.5)
    assert (world.ended(), world.ended("second"), world.at_rest()) == ("NodeCreationFailure", "Upgraded", True)


def test_a_rollback_waits_for_no_label(monkeypatch):
    world = with_user_data(Upgraded(), monkeypatch, "team=web").start(launchTemplateVersion="2")
    world.world.labels = lambda member: {"team": "web"} if member.version == "2" or member.launched < BEGIN else {}
    world.start("back", at=BEGIN + 300, action="rollback").run(2)
    assert (world.ended("back"), world.at_rest(versions=("1",))) == ("RolledBack", True)


def test_a_label_of_a_script_that_no_old_node_carries_is_not_waited_for(monkeypatch):
    world = with_user_data(Upgraded(), monkeypatch, "team=web").start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)


def test_with_the_labels_of_its_user_data_the_gate_opens(monkeypatch):
    world = with_user_data(Upgraded(), monkeypatch, "team=web").start(launchTemplateVersion="2")
    world.world.labels = lambda member: {"team": "web"}
    world.run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert world.record.target.node_labels == {"team": "web"}
