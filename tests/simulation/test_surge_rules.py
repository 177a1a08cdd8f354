"""The rule about maxSurge counts instances at each launch of an upgrade, and those that still end."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import UpdatePolicy
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from simulation.asked import Kind
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP, a_group
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, World, a_record

NEW = ("i-new1", "i-new2")
RECORD = {"group": GROUP, "cluster": "blue", "target": UpgradeTarget(), "desired": 1, "maximum": 4, "began": START}
RECORD |= {"strategy": Strategy.DEFAULT}


def a_world(*old, most=1, **record):
    """A group of one node under an upgrade that is about to launch two."""
    world = World(groups={GROUP: replace(a_group(GROUP, *old, *NEW), desired=3)})
    update = UpdatePolicy(max_surge=most)
    chain = tuple(replace(policy, update=update) for policy in world.policies.policies)
    world.policies, world.rewritten = replace(world.policies, policies=chain), -1e9
    world.books[GROUP] = SimpleNamespace(least=2, overpaid=0)
    world.upgrades[GROUP] = UpgradeRecord(**RECORD, **record)
    return world


def found(world):
    """Violations of the rule at the launch of the new instances."""
    checker = Checker()
    checker.after_event(world)
    world.launches = [(f"leeward-upgrade-1-{number}", name) for number, name in enumerate(NEW)]
    return [one for one in checker.after_event(world) if one.rule is Rule.MAX_SURGE]


@pytest.mark.parametrize(("most", "broken"), [(1, [Rule.MAX_SURGE]), (2, [])])
def test_more_instances_beyond_the_size_than_max_surge_are_found_when_one_is_launched(most, broken):
    assert [violation.rule for violation in found(a_world(INSTANCE, most=most))] == broken


@pytest.mark.parametrize("lifecycle", ["InService", "Terminating:Wait"])
@pytest.mark.parametrize(
    ("kind", "broken"), [(None, True), (Kind.LIFTED, True), (Kind.MAINTENANCE, False), (Kind.SPOT, False)]
)
def test_an_old_node_counts_unless_something_else_asks_for_it_too_whose_launch_its_decrement_may_settle(
    lifecycle, kind, broken
):
    world = a_world("i-stays", INSTANCE, most=2, under_way={INSTANCE: "tag"})
    cause = Cause(id=f"upgrade#{GROUP}#tag", kind=CauseKind.UPGRADE, at=START)
    world.records[INSTANCE] = replace(a_record(), causes=(cause,))
    members = (
        replace(one, lifecycle=lifecycle) if one.id == INSTANCE else one for one in world.groups[GROUP].instances
    )
    world.groups[GROUP] = replace(world.groups[GROUP], instances=tuple(members))
    world.decrements = [INSTANCE]
    if kind is not None:
        world.ask(kind)
    texts = [violation.text for violation in found(world)]
    assert texts == ([f"{GROUP}: 3 instances beyond its size, maxSurge is 2"] if broken else [])
