"""The rule about maxSurge counts instances at each launch of an upgrade, and those that still end."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from leeward.policy.document import UpdatePolicy
from leeward.upgrade.members import Target
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP, a_group
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, World

NEW = ("i-new1", "i-new2")
RECORD = {"group": GROUP, "cluster": "blue", "target": Target(), "desired": 1, "maximum": 4, "began": START}
RECORD |= {"strategy": Strategy.DEFAULT}


@pytest.mark.parametrize(("most", "broken"), [(1, [Rule.MAX_SURGE]), (2, [])])
def test_more_instances_beyond_the_size_than_max_surge_are_found_when_one_is_launched(most, broken):
    world = World(groups={GROUP: replace(a_group(GROUP, INSTANCE, *NEW), desired=3)})
    update = UpdatePolicy(max_surge=most)
    chain = tuple(replace(policy, update=update) for policy in world.policies.policies)
    world.policies, world.rewritten = replace(world.policies, policies=chain), -1e9
    world.books[GROUP] = SimpleNamespace(least=2, overpaid=0)
    world.upgrades[GROUP] = UpgradeRecord(**RECORD)
    checker = Checker()
    checker.after_event(world)
    world.launches = [(f"leeward-upgrade-1-{number}", name) for number, name in enumerate(NEW)]
    assert [one.rule for one in checker.after_event(world) if one.rule is Rule.MAX_SURGE] == broken


@pytest.mark.parametrize(
    ("causes", "broken"),
    [(("upgrade#1",), [Rule.MAX_SURGE]), (("upgrade#1", "scheduled_change#1"), []), (("surplus#1",), [])],
)
def test_an_old_node_that_still_ends_counts_where_the_upgrade_alone_ends_it(causes, broken):
    leaving = replace(a_group(GROUP, INSTANCE).instances[0], lifecycle="Terminating:Proceed")
    new = a_group(GROUP, "i-new1")
    world = World(groups={GROUP: replace(new, desired=1, instances=(*new.instances, leaving))})
    chain = tuple(replace(policy, update=UpdatePolicy(max_surge=1)) for policy in world.policies.policies)
    world.policies, world.rewritten = replace(world.policies, policies=chain), -1e9
    world.books[GROUP] = SimpleNamespace(least=1, overpaid=0)
    world.upgrades[GROUP] = UpgradeRecord(**{**RECORD, "desired": 0})
    checker = Checker()
    checker.after_event(world)
    world.decrements, world.known_causes = [INSTANCE], lambda _: causes
    world.launches = [("leeward-upgrade-1-0", "i-new1")]
    assert [one.rule for one in checker.after_event(world) if one.rule is Rule.MAX_SURGE] == broken
