"""What a group launches against the target of its upgrade: by number, by `$Latest`, and for types of their own."""

from dataclasses import replace

import pytest

from leeward.model.launch import LaunchSource, LaunchTemplateRef, Override
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRequest
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from leeward.upgrade.targets import as_launched, launched_instead, points_at
from tests.fakes.builders import GROUP
from tests.unit.upgrade.test_waits import RUN, V1, V2, a_rolling_group, draining

OWN = replace(V1, id="", name="web-own", version="7")


def instead(launch, *, resolve=True, **given):
    system = a_rolling_group()
    system.templates.version_for(V1, "ami-00000000000000002", token="two")
    draining(system, **{"pointed": True, "target": UpgradeTarget(template=V2), **given})
    group = replace(system.groups.by_name[GROUP], launch=launch)
    return launched_instead(system.upgrades.records[GROUP], group, system.templates, resolve=resolve)


def of(version, *overrides):
    return LaunchSource(template=replace(V2, version=version), overrides=overrides)


@pytest.mark.parametrize(
    ("launch", "given", "moved"),
    [
        (of("2"), {}, False),
        (of("1"), {}, True),
        (of("1"), {"pointed": False}, False),
        (of("$Latest"), {}, False),
        (of("$Default"), {}, True),
        (LaunchSource(template=LaunchTemplateRef(name="another", version="2")), {}, True),
        (LaunchSource(template=LaunchTemplateRef(name="gone", version="$Latest")), {}, False),
        (LaunchSource(configuration="lc-1"), {}, False),
        (of("2", Override(instance_type="m5.large", template=OWN)), {}, True),
        (of("2"), {"target": UpgradeTarget(template=V2, overrides={"m5.large": OWN})}, True),
        (
            of("2", Override(instance_type="m5.large", template=OWN)),
            {"target": UpgradeTarget(template=V2, overrides={"m5.large": OWN})},
            False,
        ),
        (
            of("2", Override(requirements={}, template=OWN)),
            {"target": UpgradeTarget(template=V2, by_requirements=(OWN,))},
            False,
        ),
        (
            of("2", Override(requirements={}, template=replace(OWN, version="8"))),
            {"target": UpgradeTarget(template=V2, by_requirements=(OWN,))},
            True,
        ),
    ],
)
def test_it_is_named_where_it_is_not_the_target(launch, given, moved):
    assert bool(instead(launch, **given)) is moved


def test_a_symbolic_version_is_resolved_only_where_it_is_asked_for():
    assert instead(of("$Default"), resolve=False) == ""


def test_the_next_start_takes_what_the_group_launches():
    system = a_rolling_group()
    draining(system, pointed=True, prepared=True, checked=True)
    record = as_launched(system.upgrades.records[GROUP])
    assert (record.prepared, record.pointed, record.checked, record.request.names_a_target) == (False,) * 4


@pytest.mark.parametrize("step", ["gate", "drain"])
def test_nothing_starts_and_it_ends_where_the_group_is_not_pointed_back(step):
    system = a_rolling_group()
    group = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(group, launch=of("3"))
    draining(system, pointed=True, target=UpgradeTarget(template=V2))
    assert STEPS[step](RUN, {}, system.ports).next is UpgradeNext.WAIT
    system.clock.advance(minutes=3)
    run = STEPS[step](RUN, {}, system.ports)
    assert run.next is UpgradeNext.CREATION_FAILURE
    assert "launches lt-web-a version 3 and not lt-web-a version 2" in run.why
    assert "--launch-template-version 2" in run.why
    assert not system.claims.records


def launching(version):
    system = a_rolling_group()
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], launch=of(version))
    return system


def test_a_start_without_a_target_takes_what_the_group_launches_where_its_own_version_was_deleted():
    system = launching("1")
    gone = replace(V2, version="9")
    error, ended = "UpgradeFailure: VersionNotFound", system.clock.now()
    draining(system, prepared=True, target=UpgradeTarget(template=gone), rolling_back=True, error=error, ended=ended)
    call = {"run": {"group": GROUP}, "execution": "again"}
    STEPS["take-lease"](replace(RUN, execution="again"), call, system.ports)
    STEPS["prepare"](replace(RUN, execution="again"), {}, system.ports)
    record = system.upgrades.records[GROUP]
    assert record.target.template == V1
    assert not record.rolling_back


def test_an_abort_ends_where_the_version_before_was_deleted():
    system = launching("2")
    before = UpgradeTarget(template=replace(V1, version="9"))
    draining(system, pointed=True, previous=before, control=ControlRequest.ABORT)
    assert STEPS["undo"](RUN, {}, system.ports).next is not UpgradeNext.CREATION_FAILURE
    assert "the version before was deleted" in system.upgrades.records[GROUP].warnings[-1]


V3 = replace(V1, version="3")


def aborted(launched, **given):
    """An abort, twice, of a group that launches this version."""
    system = launching(launched)
    for number in "234":
        system.templates.version_for(V1, f"ami-{number:0>17}", token=number)
    draining(system, previous=UpgradeTarget(template=V1), control=ControlRequest.ABORT, **given)
    for _ in range(2):
        STEPS["undo"](RUN, {}, system.ports)
    return system.groups.by_name[GROUP].launch.template.version, system.upgrades.records[GROUP].warnings


@pytest.mark.parametrize("prepared", [True, False])
def test_an_abort_leaves_a_version_that_others_have_set_since(prepared):
    launched, warnings = aborted("3", pointed=prepared, prepared=prepared, pointed_at=(V2,))
    assert launched == "3"
    assert warnings == ("web-a launches lt-web-a version 3, which others have set: the abort leaves it",)


def test_an_abort_returns_to_what_the_group_launched_before_the_upgrade():
    assert aborted("2", pointed=True, pointed_at=(V2,), own=V3) == ("3", ())


@pytest.mark.parametrize(("launched", "left"), [("2", "1"), ("1", "1"), ("4", "1")])
def test_an_abort_points_back_from_each_version_at_which_the_upgrade_has_pointed_the_group(launched, left):
    """Version 4 was the target of an earlier start, from which the group was not pointed away yet."""
    assert aborted(launched, pointed_at=(replace(V1, version="4"), V2)) == (left, ())


def test_an_abort_of_a_rollback_ignores_what_the_group_launched_before_the_upgrade():
    turned = {"target": UpgradeTarget(template=V2), "rolling_back": True, "pointed": True}
    launched, _ = aborted("2", pointed_at=(V1, V2), own=V3, **turned)
    assert launched == "1"


@pytest.mark.parametrize(
    ("launched", "given", "own"),
    [
        ("3", {}, V3),
        ("2", {}, None),  # the target already
        ("4", {"pointed_at": (replace(V1, version="4"),)}, None),  # the target of an earlier start
        ("$Latest", {}, replace(V1, version="4")),
        ("3", {"pointed": True}, None),
        ("3", {"request": UpgradeRequest(automatic="ami-2")}, None),  # whose parameter has the new image already
    ],
)
def test_what_the_group_launched_before_is_recorded_before_it_is_pointed_elsewhere(launched, given, own):
    system = launching(launched)
    for number in "234":
        system.templates.version_for(V1, f"ami-{number:0>17}", token=number)
    draining(system, **{"pointed": False, "prepared": True, **given})
    STEPS["point"](RUN, {}, system.ports)
    STEPS["point"](RUN, {}, system.ports)
    record = system.upgrades.records[GROUP]
    assert (record.own, V2 in record.pointed_at) == (own, "pointed" not in given)


def test_a_group_whose_own_version_was_deleted_is_pointed_at_the_target():
    system = a_rolling_group()
    group = replace(system.groups.by_name[GROUP], launch=of("9"))
    assert not points_at(group, UpgradeTarget(template=V1), system.ports.templates)


def test_a_start_makes_its_own_version_where_an_owner_deleted_the_one_of_the_start_before():
    """EC2 answers a client token that it knows with the version made then, or refuses it for another source."""
    system = launching("1")
    draining(system, request=UpgradeRequest(image="ami-00000000000000009"))
    first = prepared(system)
    system.templates._model.template(first.id or first.name).gone.add(first.version)
    record = system.upgrades.records[GROUP]
    system.upgrades.records[GROUP] = replace(record, attempt=record.attempt + 1, prepared=False)
    second = prepared(system)
    assert second.version != first.version
    assert system.ports.templates.numbered(second) == second


def prepared(system):
    assert STEPS["prepare"](RUN, {"step": "prepare"}, system.ports).next is UpgradeNext.POINT
    template = system.upgrades.records[GROUP].target.template
    assert template is not None
    return template


def test_a_group_whose_launch_template_was_deleted_is_stopped_before_anything_is_begun():
    system = a_rolling_group()
    draining(system, checked=False, prepared=False, pointed=False)
    gone = LaunchSource(template=LaunchTemplateRef(name="gone", version="1"))
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], launch=gone)
    run = STEPS["check"](RUN, {"step": "check"}, system.ports)
    assert run.next is UpgradeNext.BLOCKED
    assert run.why.startswith(f"launch template of group {GROUP}: found one that was deleted (")
    assert run.why.endswith("expected an existing version: point the group at one, then start the upgrade again")
