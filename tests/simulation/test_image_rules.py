"""Each rule about images of nodes finds what breaks it, and excuses what a function could not know."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from leeward.disruption.command import Command, CommandDecision, MethodName
from leeward.model import well_known
from leeward.model.group import GroupInstance
from leeward.policy.document import DisruptionPolicy
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRecord, UpgradeRequest
from leeward.upgrade.surge.sizes import Strategy
from simulation.image_rules import LONGEST_RUN, LOOKS_EVERY
from simulation.invariants import Checker, Rule
from simulation.ordered import Ordered
from tests.fakes.builders import GROUP, ZONE
from tests.fakes.disruptions import a_disruption
from tests.simulation.view_stand_in import INSTANCE, NODE, TAINT, World

MINE = {Rule.DRIFT, Rule.DRIFT_SEEN, Rule.PARAMETER}
OLD, NEW, NEWER = "ami-1", "ami-2", "ami-3"
PARAMETER = "/aws/service/eks/image"


class Watched:
    """A world of one node that runs OLD, as its group launches, and the checker that has seen it so."""

    def __init__(self):
        self.world, self.checker = World(), Checker()
        self.world.images, self.world.launched_images = {INSTANCE: OLD}, {GROUP: OLD}
        self.world.parameters = {PARAMETER: OLD}
        drifts = tuple(replace(one, disruption=DisruptionPolicy()) for one in self.world.policies.policies)
        self.world.policies = replace(self.world.policies, policies=drifts)
        self.broken()
        self.later(LONGEST_RUN * 3)

    def broken(self):
        return sorted({one.rule for one in self.checker.after_event(self.world)} & MINE)

    def later(self, seconds=60):
        self.world.clock.advance(seconds=seconds)
        return self.broken()

    def launches(self, image):
        self.world.launched_images = {GROUP: image}
        self.later(LOOKS_EVERY)
        return self

    def names(self, image):
        self.world.parameters = {PARAMETER: image}
        self.later(LOOKS_EVERY)

    def tell(self, reasons="tags,ami"):
        self.world.cluster.patch("nodes", NODE, {"metadata": {"annotations": {well_known.DRIFT_REASONS: reasons}}})
        return self.broken()

    def decide(self):
        """A run of fn disruption-planner without an error, of ten seconds."""
        self.world.decided.append((self.world.now - 10, self.world.now))
        return self.broken()


def test_drift_in_an_image_that_the_group_launches_is_found():
    assert Watched().tell() == [Rule.DRIFT]


def test_drift_in_another_field_is_none_of_these_rules():
    assert Watched().tell("tags") == []


def test_drift_is_reported_rightly_where_the_image_has_moved_and_where_it_moved_back_a_moment_ago():
    watched = Watched().launches(NEW)
    assert watched.later() == []
    watched.launches(OLD).later()
    assert watched.tell() == []


def test_drift_reported_long_after_the_image_has_moved_back_is_found():
    watched = Watched().launches(NEW)
    watched.later()
    watched.launches(OLD).later()
    watched.later(LONGEST_RUN)
    assert watched.tell() == [Rule.DRIFT]


@pytest.mark.parametrize(("method", "found"), [(MethodName.DRIFT, [Rule.DRIFT]), (MethodName.EXPIRATION, [])])
def test_a_node_that_is_replaced_for_drift_without_any_is_found(method, found):
    watched = Watched()
    began = datetime.fromtimestamp(watched.world.now, UTC)
    gone = Command(decision=CommandDecision.DELETE, nodes=(NODE,), reason="it has drifted")
    given = {"commands": (gone,), "nodes": {NODE: INSTANCE}, "members": {NODE: GROUP}, "dropped": {}, "began": began}
    watched.world.disruptions = {"blue": a_disruption(method=method, requested=True, **given)}
    assert watched.broken() == found


def test_drift_that_a_run_without_an_error_does_not_show_is_found():
    watched = Watched().launches(NEW)
    assert watched.later() == []
    assert watched.decide() == [Rule.DRIFT_SEEN]


def test_drift_that_is_reported_is_not_missed():
    watched = Watched().launches(NEW)
    watched.later()
    assert (watched.tell(), watched.decide()) == ([], [])


@pytest.mark.parametrize(
    "excuse",
    [
        lambda watched: setattr(watched.world, "readable", False),
        lambda watched: setattr(watched.world, "api_in_trouble", True),
        lambda watched: setattr(watched.world, "rewritten", watched.world.now),
        lambda watched: watched.launches(NEWER),
        lambda watched: watched.world.launched_images.update({GROUP: OLD}),
        lambda watched: watched.world.ended.add(INSTANCE),
        lambda watched: watched.world.api.taint(watched.world.api.node(NODE), TAINT),
    ],
    ids=[
        "not readable",
        "API in trouble",
        "policies written",
        "moved in between",
        "moved back a second ago",
        "ended",
        "terminating",
    ],
)
def test_drift_that_a_run_could_not_see_or_need_not_show_is_excused(excuse):
    watched = Watched().launches(NEW)
    watched.later()
    excuse(watched)
    assert Rule.DRIFT_SEEN not in watched.decide()


def upgraded(watched, image, moves_to=None, **record):
    """An upgrade that was asked for by the parameter ends, which moves in between; its member runs the image."""
    began = datetime.fromtimestamp(watched.world.now, UTC)
    watched.world.ordered.append(Ordered(at=watched.world.now, group=GROUP, asked={"ami": PARAMETER}))
    if moves_to:
        watched.names(moves_to)
    watched.world.images = {INSTANCE: image}
    member = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="InService")
    watched.world.groups = {GROUP: replace(watched.world.groups[GROUP], instances=(member,))}
    given = {"desired": 1, "maximum": 10, "strategy": Strategy.DEFAULT, "target": UpgradeTarget(), "version": 1}
    given["request"] = UpgradeRequest(image=PARAMETER)
    watched.world.upgrades = {GROUP: UpgradeRecord(group=GROUP, began=began, ended=began, **{**given, **record})}
    return watched.broken()


def test_a_member_on_an_image_that_the_parameter_named_before_the_upgrade_is_found():
    watched = Watched()
    watched.names(NEW)
    watched.later(600)
    assert upgraded(watched, OLD) == [Rule.PARAMETER]


@pytest.mark.parametrize("image", [OLD, NEW])
def test_any_image_that_the_parameter_named_since_the_upgrade_was_asked_for_will_do(image):
    watched = Watched()
    assert upgraded(watched, image, moves_to=NEW) == []


@pytest.mark.parametrize(
    "more", [{"error": "NodeCreationFailure"}, {"rolling_back": True}, {"control": ControlRequest.ABORT}]
)
def test_an_upgrade_that_does_not_say_that_it_is_done_is_not_judged(more):
    assert upgraded(Watched(), NEWER, **more) == []


def test_an_upgrade_for_which_no_operator_has_named_the_parameter_is_not_judged():
    assert upgraded(Watched(), NEWER, request=UpgradeRequest(image=NEWER)) == []
    assert upgraded(Watched(), NEWER, request=UpgradeRequest(image="/aws/service/eks/another")) == []
