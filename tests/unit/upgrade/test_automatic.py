"""`update.auto`: which image has moved, since when, and whether an upgrade to it starts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known
from leeward.disruption.annotations import annotation_changes
from leeward.errors import AccessDeniedError, InvalidInputError, LeewardError
from leeward.model.image import Image
from leeward.model.launch import LaunchSettings, LaunchSource, LaunchTemplateRef, Override
from leeward.model.nodegroup import Nodegroup
from leeward.model.times import format_instant
from leeward.policy.document import DisruptionPolicy, UpdatePolicy, Window
from leeward.policy.durations import format_duration
from leeward.upgrade.automatic import (
    failures,
    name_of,
    parameter_of,
    reason_to_wait,
    start_due,
    with_newest_images,
    write_failures,
)
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord, UpgradeRequest
from leeward.upgrade.start import parse_request
from leeward.upgrade.surge.sizes import Strategy
from leeward.upgrade.targets import prepared
from tests.fakes.builders import pausing, shifted
from tests.fakes.system import FakeSystem
from tests.truthful_events import held_against_the_truth
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy
from tests.unit.upgrade.test_waits import V1, a_rolling_group

KEY = "leeward.dev/image-moved"
NEW, OLD, NEXT = "ami-2", "ami-1", "ami-3"
ALIAS = "resolve:ssm:/golden/web"
LAUNCH = LaunchSettings(image=NEW, alias=ALIAS)
DAYS = timedelta(days=1)
AFTER = 3 * DAYS


def at(before):
    return format_instant(NOON - before)


def a_fleet_behind(launch=LAUNCH, known_for=4 * DAYS, image=NEW, group=None, noted=2, **update):
    """A group of two nodes with the old image; the first `noted` carry since when the newer one is known."""
    policy = a_policy(disruption=DisruptionPolicy(drift=False), update=UpdatePolicy(auto=AFTER, **update))
    fleet = a_fleet(policy).group("web", launch=launch, fields=group or {})
    notes = {} if known_for is None else {KEY: f"{image} {at(known_for)}"}
    for number in (1, 2):
        fleet.node(f"n{number}", instance={"image": OLD}, annotations=notes if number <= noted else {})
    return fleet


def look(fleet, system=None, **changes):
    system = system or FakeSystem()
    return with_newest_images(replace(fleet.snapshot(), **changes), system.ports.nodegroups, system.ports.templates)


def started(fleet, system=None, busy=(), **changes):
    system = system or FakeSystem()
    return start_due(look(fleet, system, **changes), busy, system.ports)


def waits(fleet, **changes):
    snapshot = look(fleet, **changes)
    group = snapshot.groups["web"]
    return reason_to_wait(snapshot, group, snapshot.policy_of(group))


# which image, and since when


def test_the_image_behind_the_parameter_of_the_launch_template_is_the_newest():
    assert look(a_fleet_behind()).newest_images == {"web": NEW}


@pytest.mark.parametrize(
    ("launch", "group"),
    [
        (LaunchSettings(image=NEW), {}),
        (LaunchSettings(image=ALIAS, alias=ALIAS), {}),
        (
            LAUNCH,
            {"launch": LaunchSource(overrides=(Override(instance_type="m5.large", template=LaunchTemplateRef()),))},
        ),
    ],
    ids=["a fixed image", "a parameter that cannot be read", "templates of single types"],
)
def test_a_group_without_a_parameter_that_can_be_read_has_none(launch, group):
    assert look(a_fleet_behind(launch, group=group)).newest_images == {}


def test_without_auto_nothing_is_read_and_nothing_is_annotated():
    fleet = a_fleet_behind()
    fleet.policies = (a_policy(update=UpdatePolicy()),)
    assert look(fleet).newest_images == {}
    assert [one.node.name for one in annotation_changes(look(fleet), NOON) if KEY in one.remove] == ["n1", "n2"]


def test_old_nodes_carry_since_when_the_image_is_known_and_keep_it():
    fleet = a_fleet_behind(noted=1)
    (change,) = [one for one in annotation_changes(look(fleet), NOON) if KEY in one.set]
    assert (change.node.name, change.set[KEY]) == ("n2", f"{NEW} {format_instant(NOON)}")


def test_a_time_that_is_yet_to_come_begins_now():
    """A clock was ahead when it was written; no upgrade waits for it."""
    fleet = a_fleet_behind(known_for=-4 * DAYS)
    changes = {one.node.name: one.set[KEY] for one in annotation_changes(look(fleet), NOON)}
    assert changes == dict.fromkeys(("n1", "n2"), f"{NEW} {format_instant(NOON)}")


def test_the_wait_begins_again_when_the_parameter_moves_again():
    fleet = a_fleet_behind(image="ami-0")
    changes = {one.node.name: one.set[KEY] for one in annotation_changes(look(fleet), NOON)}
    assert changes == dict.fromkeys(("n1", "n2"), f"{NEW} {format_instant(NOON)}")
    assert waits(fleet) == "no node has another image for a while"


def test_a_node_with_the_newest_image_carries_nothing():
    fleet = a_fleet_behind()
    fleet.instances["i-n1"]["fields"] = {"image": NEW}
    removed = [one.node.name for one in annotation_changes(look(fleet), NOON) if KEY in one.remove]
    assert removed == ["n1"]


def test_while_the_image_cannot_be_read_the_wait_goes_on():
    fleet = a_fleet_behind(LaunchSettings(image=ALIAS, alias=ALIAS))
    assert not [one for one in annotation_changes(look(fleet), NOON) if KEY in {*one.set, *one.remove}]
    assert started(fleet) == []


# when it starts


def test_an_upgrade_starts_once_the_image_is_known_for_long_enough_with_the_image_in_its_input():
    system = FakeSystem()
    assert started(a_fleet_behind(), system) == [name_of("web", NEW)]
    ((_, document),) = system.upgrade_executions.started
    assert document == {"group": "web", "cluster": "blue", "automatic": NEW}
    assert parse_request(document) == UpgradeRequest(automatic=NEW)


@pytest.mark.parametrize(("known_for", "starts"), [(AFTER, True), (AFTER - timedelta(seconds=1), False), (None, False)])
def test_the_image_has_to_be_known_for_the_whole_time(known_for, starts):
    assert bool(started(a_fleet_behind(known_for=known_for))) is starts


@pytest.mark.parametrize("claim", ["2000-01-01T00:00:00Z", at(4 * DAYS)])
def test_one_node_cannot_end_the_wait_of_the_others(claim):
    """A kubelet may write its own Node."""
    fleet = a_fleet_behind(known_for=timedelta(hours=1))
    fleet.node("n3", instance={"image": OLD}, annotations={KEY: f"{NEW} {claim}"})
    assert "is known since 2026-05-01T11:00:00Z" in waits(fleet)
    assert started(fleet) == []
    assert started(a_fleet_behind(noted=1)) == []


def test_nodes_that_come_and_go_do_not_delay_an_upgrade():
    fleet = a_fleet_behind()
    for number in range(3, 20):
        fleet.node(f"n{number}", instance={"image": OLD}, annotations={KEY: f"{NEW} {at(timedelta(hours=1))}"})
    assert started(fleet) == [name_of("web", NEW)]


@pytest.mark.parametrize(
    ("age", "starts"),
    [(AFTER, True), (AFTER - timedelta(seconds=1), False), (None, True)],
    ids=["old enough", "too young", "an age that is not known"],
)
def test_the_wait_is_never_counted_from_before_the_image_was_created(age, starts):
    """Whatever all nodes claim."""
    system = FakeSystem()
    created = None if age is None else NOON - age
    system.service_limits.model.known_images[NEW] = Image(id=NEW, created=created)
    assert bool(started(a_fleet_behind(), system)) is starts


def test_the_image_is_read_only_where_an_upgrade_would_start():
    system = FakeSystem()
    system.service_limits.fail("images", AccessDeniedError("ec2:DescribeImages"))
    assert started(a_fleet_behind(known_for=DAYS), system) == []
    assert started(a_fleet_behind(), recorded(system, automatic=NEW)) == []


@pytest.mark.parametrize(
    ("schedule", "starts"), [("0 11 * * *", True), ("0 13 * * *", False)], ids=["inside", "outside"]
)
def test_it_starts_inside_its_windows_alone(schedule, starts):
    window = Window(schedule=schedule, duration=timedelta(hours=2))
    assert bool(started(a_fleet_behind(windows=(window,)))) is starts
    if not starts:
        assert waits(a_fleet_behind(windows=(window,))) == ("outside the upgrade's windows, until 2026-05-01T13:00:00Z")


def test_nothing_starts_in_a_freeze():
    fleet = a_fleet_behind()
    fleet.settings["freeze"] = (Window(schedule="0 0 * * *", duration=timedelta(hours=24)),)
    assert started(fleet) == []


def test_nothing_starts_in_a_paused_group_or_beside_another_upgrade_or_run():
    fleet = a_fleet_behind()
    policies = pausing(fleet.snapshot().policies, group="web")
    assert started(fleet, policies=policies) == []
    assert started(fleet, blocked_groups={"web": "its group web is being upgraded"}) == []
    assert started(fleet, busy=("web",)) == []
    assert started(fleet, busy=("batch",)) == [name_of("web", NEW)]


def test_nothing_starts_while_a_zone_of_the_group_has_a_zonal_shift():
    assert started(a_fleet_behind(), shifts=Known(shifted("us-east-1c"))) == []
    assert started(a_fleet_behind(), shifts=Known(shifted("us-east-1d"))) == [name_of("web", NEW)]


# once for each image


def recorded(system, error="", **request):
    """A deployment in which the last upgrade of the group has ended."""
    last = a_record(request=UpgradeRequest(**request), ended=NOON, error=error)
    system.upgrades.records["web"] = last
    return system


def a_record(**fields):
    standing = {"group": "web", "target": UpgradeTarget(), "strategy": Strategy.DEFAULT, "desired": 2, "maximum": 10}
    return UpgradeRecord(**{**standing, "began": NOON, "cluster": "blue", **fields})


@pytest.mark.parametrize(
    ("error", "request_of", "starts"),
    [
        ("", {"automatic": NEW}, False),
        ("PodEvictionFailure", {"automatic": NEW}, False),
        ("PodEvictionFailure", {"automatic": "ami-0"}, True),
        ("", {"automatic": "ami-0"}, True),
        ("", {"image": "ami-0"}, True),
        ("PodEvictionFailure", {"image": "ami-0"}, False),
    ],
    ids=["done", "failed", "another failed", "another done", "an operator's done", "an operator's failed"],
)
def test_an_image_is_tried_once_and_an_operators_failed_upgrade_is_left_to_the_operator(error, request_of, starts):
    assert bool(started(a_fleet_behind(), recorded(FakeSystem(), error, **request_of))) is starts


def test_an_execution_that_has_ended_before_it_wrote_anything_is_not_repeated():
    system = FakeSystem()
    system.upgrade_executions.closed.add(name_of("web", NEW))
    assert started(a_fleet_behind(), system) == []


def test_a_failed_upgrade_is_said_on_an_old_node_once_an_hour(monkeypatch):
    with held_against_the_truth(monkeypatch):
        system = recorded(FakeSystem(), "PodEvictionFailure", automatic=NEW)
        snapshot = look(a_fleet_behind(), system)
        for minutes in range(0, 120, 5):
            write_failures(
                replace(snapshot, now=NOON + timedelta(minutes=minutes)), system.ports.upgrades, system.ports.clusters
            )
    events = [event for event in system.kubernetes.events if event.reason == "AutomaticUpgradeFailed"]
    assert len(events) == 2
    ((node, message),) = failures(snapshot, system.upgrades)
    assert node.name == "n1"
    assert message.startswith(
        "upgrade of web to ami-2 has failed (PodEvictionFailure) and is not tried again by itself"
    )
    assert not list(failures(look(a_fleet_behind()), FakeSystem().upgrades))


# managed node groups


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        ("AL2023_x86_64_STANDARD", "1.33/amazon-linux-2023/x86_64/standard"),
        ("AL2023_ARM_64_NVIDIA", "1.33/amazon-linux-2023/arm64/nvidia"),
        ("BOTTLEROCKET_x86_64", ""),
        ("CUSTOM", ""),
    ],
)
def test_eks_publishes_the_newest_image_of_a_kind_and_version(kind, parameter):
    found = parameter_of(Nodegroup(name="ng", cluster="blue", ami_type=kind, version="1.33"))
    assert found == (f"/aws/service/eks/optimized-ami/{parameter}/recommended/image_id" if parameter else "")


def a_managed_fleet():
    fleet = a_fleet_behind(LaunchSettings(image=OLD), group={"tags": {"eks:nodegroup-name": "ng"}})
    system = FakeSystem()
    nodegroup = Nodegroup(name="ng", cluster="blue", ami_type="AL2023_x86_64_STANDARD", version="1.33")
    system.nodegroups.known["blue", "ng"] = nodegroup
    system.templates.parameters[parameter_of(nodegroup)] = NEW
    return fleet, system


def test_a_managed_node_group_is_upgraded_by_its_own_state_machine_when_eks_has_a_newer_image():
    fleet, system = a_managed_fleet()
    assert started(fleet, system) == [name_of("web", NEW)]
    assert system.managed_upgrade_executions.running(name_of("web", NEW))
    assert not system.upgrade_executions.started


def test_a_parameter_of_eks_that_cannot_be_read_starts_nothing():
    fleet, system = a_managed_fleet()
    system.templates.fail("image_behind", AccessDeniedError("ssm:GetParameter"))
    assert started(fleet, system) == []


# what it launches


def preparing(launch, automatic=NEW):
    system = a_rolling_group()
    group = next(iter(system.groups.by_name.values()))
    template = system.templates._model.template("web-a")
    template.images[0] = ALIAS
    template.parameters["/golden/web"] = launch.image
    system.launches.by_group[group.name] = launch
    group = replace(group, launch=LaunchSource(template=V1))
    for one in group.instances:
        system.instances.put(replace(system.instances.known[one.id], image=OLD))
    record = a_record(group=group.name, request=UpgradeRequest(automatic=automatic))
    return system, group, template, record


def test_the_target_is_another_version_with_the_same_parameter_and_a_rollback_returns_to_the_old_image():
    system, group, template, record = preparing(LAUNCH)
    made = prepared(record, group, system.ports)
    assert template.written(made.target.template.version) == ALIAS
    assert made.target.template.version != group.launch.template.version
    assert template.written(made.previous.template.version) == OLD
    again = prepared(record, group, system.ports)
    assert again.target == made.target


def test_a_parameter_that_has_moved_again_is_not_rolled_out():
    system, group, _, record = preparing(replace(LAUNCH, image=NEXT))
    with pytest.raises(InvalidInputError, match=r"resolve:ssm:/golden/web: found ami-3, expected ami-2, for which"):
        prepared(record, group, system.ports)


def test_a_template_that_names_no_parameter_any_more_fails_the_upgrade():
    system, group, _, record = preparing(LaunchSettings(image=NEW))
    with pytest.raises(LeewardError, match="found an image that is no SSM parameter"):
        prepared(record, group, system.ports)


def test_durations_of_the_policy_are_said_as_they_are_written():
    assert waits(a_fleet_behind(known_for=DAYS)).endswith(f"update.auto asks for {format_duration(AFTER)}")
