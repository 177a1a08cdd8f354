"""When time runs out the plan is what was best until then, whatever the moment."""

import random
from datetime import timedelta

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption, validate
from tests.properties.test_consolidation_search import half_empty_fleet
from tests.unit.disruption.fleet import a_fleet, a_policy, rules


class Tries:
    """`more()` for so many tries. `left` is below zero once one was refused."""

    def __init__(self, count):
        self.left = count

    def __call__(self):
        self.left -= 1
        return self.left >= 0


def plans(snapshot, method):
    """With no try at all, with one, with two, until nothing was refused any more."""
    count, refused = 0, True
    while refused:
        tries = Tries(count)
        yield plan_disruption(snapshot, only=method, more=tries)
        count, refused = count + 1 + count // 2, tries.left < 0


def savings(plan):
    return sum(command.savings for command in plan.commands)


@pytest.mark.parametrize("seed", range(4))
def test_a_consolidation_never_saves_less_when_it_has_more_time(seed):
    snapshot = half_empty_fleet(seed).snapshot()
    found = list(plans(snapshot, MethodName.CONSOLIDATION))
    saved = [savings(plan) for plan in found]
    assert saved == sorted(saved)
    assert saved[0] == 0
    assert saved[-1] == savings(plan_disruption(snapshot, only=MethodName.CONSOLIDATION))
    for plan in found:
        assert len(validate(snapshot, plan.method, plan.commands).commands) == len(plan.commands)


@pytest.mark.parametrize("seed", range(3))
def test_with_little_time_expired_nodes_go_in_the_same_order_as_with_much(seed):
    chance, policy = random.Random(seed), a_policy(disruption=rules(expire_after=timedelta(days=1)))
    fleet = a_fleet(policy)
    for number in range(5):
        fleet.node(f"n{number}", created=f"2026-04-{chance.randint(10, 28)}T00:00:00Z")
        fleet.pod(f"p{number}", f"n{number}", cpu=f"{chance.choice([300, 900, 1500])}m")
    *partial, whole = plans(fleet.snapshot(), MethodName.EXPIRATION)
    assert len(whole.commands) == 5
    for plan in partial:
        assert plan.commands == whole.commands[: len(plan.commands)]
        waiting = [one[MethodName.EXPIRATION].reason for one in plan.verdicts.values()]
        assert sum("no time left" in why for why in waiting) == 5 - len(plan.commands)
