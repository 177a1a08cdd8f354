"""The rules about ends find an end that nothing excuses, and a failure that names what the world does not show."""

from dataclasses import replace

import pytest

from leeward.model import well_known
from leeward.model.group import GroupInstance
from leeward.model.launch import LaunchTemplateRef
from local.cluster.nodes import NodeSpec
from simulation.endings import Ending
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP
from tests.simulation.view_stand_in import INSTANCE, NODE, World

ZONE = "us-east-1a"
LAUNCH = f"group {GROUP}, cluster blue: {ZONE}: no new node could be launched: LaunchRefused: no subnet: fix it"
STAYS = f"group {GROUP}, cluster blue: pods did not leave: {NODE}: default/pod has not left in 15m: a budget"
NEW = "group web, cluster blue: i-0123456789abcdef0 in us-east-1a: running for 15m and no node has joined"


def ended(world, state, cause="", *, machine="node-group-upgrade", status="FAILED", asked=None, began=0.0):
    asked = {"cluster": "blue"} if machine == "disruption" else {"group": GROUP, **(asked or {})}
    world.endings.append(
        Ending(
            began=world.now + began,
            at=world.now,
            name="web-1",
            machine=machine,
            status=status,
            state=state,
            cause=cause,
            asked=asked,
        )
    )
    return world


def liveness(world):
    return [violation.text for violation in Checker().after_event(world) if violation.rule is Rule.LIVENESS]


def test_a_zone_is_named_only_where_it_lacked_something():
    assert len(liveness(ended(World(), "NodeCreationFailure", LAUNCH))) == 1
    assert liveness(ended(World(short_zones={ZONE: 1e12}), "NodeCreationFailure", LAUNCH)) == []
    assert liveness(ended(World(free=29), "NodeCreationFailure", LAUNCH)) == []


def test_a_refused_launch_is_no_cause_where_the_desired_size_serves_the_group():
    cause = LAUNCH.replace("no subnet", "the mixed instances policy has mixed purchase options")
    assert len(liveness(ended(World(), "NodeCreationFailure", cause))) == 1


def test_another_template_version_is_named_only_where_the_group_launches_it():
    world = World()
    template = LaunchTemplateRef(id="lt-web", version="3")
    group = world.groups[GROUP]
    world.groups[GROUP] = replace(group, launch=replace(group.launch, template=template))
    text = "web launches lt-web version {} and not lt-web version 2, the launch template of the upgrade"
    assert liveness(ended(world, "NodeCreationFailure", text.format(3))) == []
    assert len(liveness(ended(world, "NodeCreationFailure", text.format(4)))) == 1


def test_an_instance_is_named_only_where_it_did_not_come():
    world = ended(World(), "NodeCreationFailure", NEW)
    assert liveness(world) == []
    world = World()
    world.cluster.add_node(NodeSpec(name="node-b", instance_id="i-0123456789abcdef0"))
    (text,) = liveness(ended(world, "NodeCreationFailure", NEW))
    assert text.endswith("ended with NodeCreationFailure: i-0123456789abcdef0 runs and its node is Ready")


def test_a_failure_names_an_object():
    assert len(liveness(ended(World(), "PodEvictionFailure", "group web: pods did not leave"))) == 1


def test_a_pod_is_named_only_where_its_budgets_hold_it():
    world = World()
    world.pods("pod")
    world.work()
    checker = Checker()
    checker.after_event(world)
    world.taint()
    for _ in range(7):
        world.clock.advance(seconds=61)
        checker.after_event(world)
    ended(world, "PodEvictionFailure", STAYS)
    found = [one.rule for one in checker.after_event(world) if one.rule is not Rule.NOTIFIED]
    assert found == [Rule.LIVENESS]


@pytest.mark.parametrize("machine", ["node-group-upgrade", "disruption"])
def test_a_failure_without_a_fault_is_found(machine):
    state = "UpgradeFailure" if machine == "node-group-upgrade" else "DisruptionFailure"
    assert len(liveness(ended(World(), state, "an error", machine=machine))) == 1
    assert liveness(ended(World(faultless=False), state, "an error", machine=machine)) == []


def test_an_account_that_refuses_its_role_excuses_an_upgrade_that_names_no_cluster():
    def failed(asked, until):
        world = World(refusals=[(0.0, World().now + until)])
        return len(liveness(ended(world, "LeaseNotAcquired", "sts:AssumeRole", asked=asked)))

    assert [failed(None, 1), failed(None, -1), failed({"cluster": "blue"}, 1)] == [0, 1, 1]


def test_an_upgrade_whose_image_has_moved_again_may_fail():
    wanted = "ami-00000000000000001"

    def failed(launched):
        world = World(launched_images={GROUP: launched})
        said = f"expected {wanted}, for which the upgrade was started: it has moved again"
        return liveness(ended(world, "UpgradeFailure", said))

    assert (len(failed(wanted)), failed("ami-00000000000000002")) == (1, [])


def test_what_was_started_to_undo_an_upgrade_never_upgrades():
    assert liveness(ended(World(), "Aborted", status="SUCCEEDED", asked={"action": "abort"})) == []
    assert len(liveness(ended(World(), "Upgraded", status="SUCCEEDED", asked={"action": "abort"}))) == 1


def test_a_failed_upgrade_leaves_cordons_of_old_nodes_alone():
    def left(version, *, tainted=False):
        world, checker = World(faultless=False), Checker()
        checker.after_event(world)
        wanted = LaunchTemplateRef(id="lt-1", version="2")
        member = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="InService", template=replace(wanted, version=version))
        launch = replace(world.groups[GROUP].launch, template=wanted)
        world.groups[GROUP] = replace(world.groups[GROUP], instances=(member,), launch=launch)
        ended(world, "UpgradeFailure", "an error")
        checker.after_event(world)
        if tainted:
            world.taint()
        else:
            world.cluster.patch("nodes", NODE, {"metadata": {"annotations": {well_known.CORDONED_FOR: GROUP}}})
        world.clock.advance(seconds=3600)
        return [one.rule for one in checker.after_event(world)]

    assert left("1") == []
    assert left("2") == left("1", tainted=True) == [Rule.LEFTOVER]


def test_an_upgrade_that_fails_again_after_all_troubles_is_found_unless_its_image_never_joins():
    def again(**given):
        world, checker = World(over=True, faultless=False, **given), Checker()
        checker.after_event(world)
        world.clock.advance(seconds=3600)
        ended(world, "NodeCreationFailure", NEW, began=-900)
        return [one.rule for one in checker.at_the_end(world) if one.rule is Rule.STARTED_AGAIN]

    assert again() == [Rule.STARTED_AGAIN]
    assert again(bad={GROUP}) == []
