"""Several groups, one after the other: in their order, not past the first that fails, and on when it is mended."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, Upgraded, updating

NAMES = ("app", "other", "third")


def several(**update):
    plans = tuple(GroupPlan(name=name, spot=False, size=3, maximum=3) for name in NAMES)
    world = Upgraded(Fleet(groups=plans, workloads=(deployment("web", 4), budget("web")), policies=updating(**update)))
    for name in NAMES[1:]:
        world.world.fleet.groups[name].template.add("ami-00000000000000002")
    return world


def on(version):
    return {name: {version} for name in NAMES}


def begun(world, at=BEGIN, name="first", **asked):
    document = {"launchTemplateVersion": "2", **asked}
    return world.at(at, lambda: world.machine.start(name, document))


def versions(world):
    groups = world.world.groups
    return {name: {member.template.version for member in groups[name].instances} for name in NAMES}


def test_each_begins_when_the_one_before_has_ended():
    world = begun(several(), groups=list(NAMES)).run(2)
    assert versions(world) == on("2")
    records = [world.world.upgrades[name] for name in NAMES]
    for before, after in pairwise(records):
        assert abs(after.began - before.ended) < timedelta(seconds=10)


def test_it_stops_at_the_first_that_fails_and_goes_on_when_that_is_started_again():
    world = begun(several(), groups=list(NAMES))
    other = world.world.fleet.groups["other"].template
    other.bad.add("2")
    seen = []
    world.at(BEGIN + 3600, lambda: seen.append(versions(world))).at(BEGIN + 3600, other.bad.clear)
    begun(world, at=BEGIN + 3700, name="again", group="other").run(3)
    assert seen[0]["app"] == {"2"}
    assert seen[0]["third"] == {"1"}, "nothing was begun there"
    assert versions(world) == on("2")


@pytest.mark.parametrize("after", [30, 130, 200, 260, 420])
def test_stopped_anywhere_it_goes_on_from_the_group_whose_turn_it_was(after):
    world = begun(several(), groups=list(NAMES))

    def stop():
        for name in list(world.machine.executions):
            world.machine.stop(name)

    def again():
        left = [name for name in NAMES if name not in world.world.upgrades or world.world.upgrades[name].ended is None]
        for name in left[:1]:
            world.machine.start("again", {"group": name})

    world.at(BEGIN + after, stop).at(BEGIN + after + 120, again).run(2)
    assert versions(world) == on("2")


def test_an_abort_ends_the_list():
    world = begun(several(), groups=list(NAMES))
    world.start("abort", at=BEGIN + 60, action="abort").run(1)
    assert versions(world) == on("1")
    assert (world.ended(), world.record.then) == ("Aborted", ())


def test_a_group_that_is_upgraded_already_takes_the_list_over():
    world = begun(several(), group="app")
    begun(world, at=BEGIN + 60, name="second", groups=["app", "third"]).run(1.5)
    assert (world.ended("second"), versions(world)) == ("Delegated", {"app": {"2"}, "other": {"1"}, "third": {"2"}})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"groups": ["app", "app"]}, "each of them once"),
        ({"groups": ["app", "absent"]}, "'absent', unknown to Auto Scaling"),
        ({"groups": "app"}, "group: found none"),
        ({"groups": ["app", 7]}, "expected names such as"),
        ({"groups": ["app", "other"], "action": "pause"}, "expected alone"),
    ],
)
def test_a_list_that_cannot_be_is_refused_before_anything_is_touched(asked, said):
    world = begun(several(), **asked).run(0.5)
    assert world.ended() == "InvalidInput"
    assert said in world.why()
    assert not world.world.upgrades
