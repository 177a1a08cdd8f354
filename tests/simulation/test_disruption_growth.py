"""Disruption runs in groups that LaunchInstances does not serve: the desired size brings the replacements."""

import pytest

from leeward.errors import AwsUnavailableError
from leeward.model.launch_refusal import RefusalCause, fix_for
from simulation.owners import set_desired
from tests.fakes.refusals import REFUSALS
from tests.simulation.disruption_stand_in import DECIDED, GROUP, Disrupted, a_fleet
from tests.simulation.fleet_stand_in import GroupPlan, killed_after

DENIED = REFUSALS[RefusalCause.DENIED]
ZONE = ("us-east-1a",)


def an_unserved_fleet(refusal=DENIED, *, maximum=6, zones=ZONE):
    return a_fleet(groups=(GroupPlan(name=GROUP, spot=False, size=3, maximum=maximum, zones=zones, refuses=refusal),))


def raised(world):
    return [desired for group, desired, _ in world.world.system.changes.raised if group == GROUP]


def events(world, reason):
    return [one for one in world.world.cluster.store.each("events") if one["reason"] == reason]


@pytest.mark.parametrize(("cause", "refusal"), REFUSALS.items())
def test_the_desired_size_is_raised_by_one_for_each_replacement_and_paid_back(cause, refusal):
    world = Disrupted(an_unserved_fleet(refusal)).drifting().run()
    assert world.versions == ["2", "2", "2"]
    assert (world.launches, world.sizes(), world.most) == (0, {GROUP: (3, 3)}, 1)
    assert set(raised(world)) == {4}
    assert world.untouched()
    assert any(
        cause.value in one["message"] and fix_for(cause)[:40] in one["message"]
        for one in events(world, "LaunchRefused")
    )
    assert cause.value in world.story


def test_a_group_at_max_size_gets_its_own_back():
    world = Disrupted(an_unserved_fleet(maximum=3)).drifting().run()
    assert (world.versions, world.sizes()) == (["2", "2", "2"], {GROUP: (3, 3)})
    assert world.untouched()


def test_an_instance_in_another_zone_than_planned_is_paid_back_and_no_node_is_drained_for_it():
    """The group launches where it likes; what does not fit the plan makes the command fall."""
    world = Disrupted(an_unserved_fleet(zones=("us-east-1a", "us-east-1b", "us-east-1c"))).drifting().run(1.5)
    assert world.sizes() == {GROUP: (3, 3)}
    assert world.untouched()


def test_a_launch_that_comes_late_is_followed_and_paid_for():
    """EC2 lacks capacity beyond the time in which a replacement has to join: the nodes serve again meanwhile."""
    world = Disrupted(an_unserved_fleet()).drifting()
    dry = world.world.injector
    there, dry.no_capacity = dry.no_capacity, lambda _zone: True

    def comes():
        dry.no_capacity = there

    world.at(DECIDED + 2000, comes).run(1.5)
    assert "the raised desired size of app has brought no node" in world.story
    assert world.sizes() == {GROUP: (3, 3)}
    assert world.untouched()


def test_growth_that_an_owner_cancels_is_not_waited_for():
    world = Disrupted(an_unserved_fleet()).drifting()
    world.world.injector.no_capacity = lambda _zone: True
    world.at(DECIDED + 300, lambda: set_desired(world.world, world.world.fleet.groups[GROUP], 3, "its owner"))
    world.run(0.25)
    assert "others have made the group smaller again" in world.story
    assert raised(world).count(4) >= 1
    assert world.untouched()


@pytest.mark.parametrize("step", ["launch", "ready", "validate-again", "terminate", "follow", "end"])
def test_killed_after_any_step_the_group_grows_once(step, monkeypatch):
    killed = killed_after("disrupt", step, monkeypatch)
    world = Disrupted(an_unserved_fleet()).drifting().run()
    assert killed == [step, step]
    assert (world.versions, world.sizes(), set(raised(world))) == (["2", "2", "2"], {GROUP: (3, 3)}, {4})
    assert world.untouched()


def test_an_answer_that_is_lost_when_the_size_is_raised_raises_it_once():
    world, lost = Disrupted(an_unserved_fleet()).drifting(), []
    changes = world.world.system.changes
    real = changes.raise_to

    def raise_to(group, **sizes):
        done = real(group, **sizes)
        if sizes.get("desired") and len(lost) < 8:
            lost.append(sizes)
            raise AwsUnavailableError("autoscaling:UpdateAutoScalingGroup: the answer was lost")
        return done

    changes.raise_to = raise_to
    world.run(1.5)
    assert lost
    assert (world.sizes(), set(raised(world))) == ({GROUP: (3, 3)}, {4})
    assert world.untouched()


@pytest.mark.parametrize("desired", [2, 4])
def test_a_size_that_others_set_while_the_group_is_raised_stays_theirs(desired):
    """Their instance was taken for the replacement, and the group ended one smaller than its owner had meant."""
    world, set_by_others = Disrupted(an_unserved_fleet()).drifting(), []
    changes = world.world.system.changes
    real = changes.raise_to

    def raise_to(group, **sizes):
        if sizes.get("desired") and not set_by_others:
            set_by_others.append(set_desired(world.world, world.world.fleet.groups[GROUP], desired, "its owner"))
        return real(group, **sizes)

    changes.raise_to = raise_to
    world.run(0.5)
    assert set_by_others == [True]
    assert (raised(world)[0], world.world.fleet.groups[GROUP].book.overpaid) == (desired + 1, 0)
