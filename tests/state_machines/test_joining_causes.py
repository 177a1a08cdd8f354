"""A cause that calls for a replacement joins a termination that had none: one launch and one offset, in any order."""

from datetime import timedelta

import pytest

from leeward.model.termination import Cause, CauseKind
from tests.fakes.builders import GROUP, a_subject, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system
from tests.state_machines.walker import Walker

TAKEN = [CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION]


def join(system, kind, *, id, minutes=None, **more):
    now = system.clock.now()
    deadline = now + timedelta(minutes=minutes) if minutes else None
    return system.claims.claim(a_subject(I), Cause(id=id, kind=kind, at=now, deadline=deadline, **more), now)


class Joins:
    """Causes that join at their moment, each delivered twice; `budget` opens the PDB at that moment."""

    def __init__(self, system, *causes, budget=None):
        self.system, self.causes, self.budget = system, dict(causes), budget

    def __call__(self, _state, _data):
        passed = self.system.clock.now() - START
        for after in [after for after in self.causes if passed >= after]:
            kind, minutes = self.causes.pop(after)
            for _ in range(2):
                join(self.system, kind, id=f"{kind.value}#{I}", minutes=minutes)
        if self.budget is not None and passed >= self.budget:
            self.system.kubernetes.set_allowed("shop/web", 1)


def at(minutes, kind, deadline=2):
    return timedelta(minutes=minutes), (kind, deadline)


@pytest.mark.parametrize("kind", TAKEN)
def test_a_warning_that_joins_a_manual_drain_is_replaced_and_offset_once(kind):
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL, id="manual")
    walk = Walker(system, before=Joins(system, at(3, kind), budget=timedelta(minutes=4))).run(I)
    assert walk.ended == "Terminated"
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]


def test_a_warning_that_joins_a_rebalance_recommendation_launches_no_second_instance():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.REBALANCE_RECOMMENDATION, id="rebalance")
    Walker(system, before=Joins(system, at(3, CauseKind.SPOT_INTERRUPTION))).run(I)
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]


def test_several_causes_that_call_for_a_replacement_share_one():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL, id="manual")
    joins = Joins(
        system,
        at(1, CauseKind.REBALANCE_RECOMMENDATION, None),
        at(2, CauseKind.SCHEDULED_CHANGE, 600),
        at(3, CauseKind.SPOT_INTERRUPTION),
    )
    assert Walker(system, before=joins).run(I).ended == "Terminated"
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]


@pytest.mark.parametrize("killed", [["replace"], ["replace", "replace", "drain"], ["terminate", "replace", "finish"]])
def test_a_step_that_is_killed_after_the_join_launches_and_offsets_once(killed):
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL, id="manual")
    joins = Joins(system, at(3, CauseKind.SPOT_INTERRUPTION), budget=timedelta(minutes=4))
    walk = Walker(system, before=joins, killed=killed).run(I)
    assert walk.ended == "Terminated"
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]


def test_a_launch_whose_answer_was_lost_is_followed_up():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL, id="manual")
    replaced, lost = system.claims.replaced, []

    def losing(instance, *progress):
        if not lost:
            lost.append(instance)
            raise TimeoutError("the function was killed before it wrote what it had launched")
        return replaced(instance, *progress)

    system.claims.replaced = losing
    joins = Joins(system, at(3, CauseKind.SPOT_INTERRUPTION), budget=timedelta(minutes=4))
    assert Walker(system, before=joins).run(I).ended == "Terminated"
    assert lost
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]


def test_where_a_hook_guards_the_group_the_joined_warning_lets_the_hook_hold_the_instance():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL, id="manual")
    walk = Walker(system, before=Joins(system, at(3, CauseKind.SPOT_INTERRUPTION), budget=timedelta(seconds=225))).run(
        I
    )
    assert walk.states.count("TerminateBeforeDrain") == 1
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_warning_for_an_instance_that_its_group_is_ending_launches_nothing():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    system.groups.begin_terminating(GROUP, I)
    join(system, CauseKind.ASG_TERMINATE, id="token", minutes=5, hook="leeward-terminate", hook_ours=True)
    Walker(system, before=Joins(system, at(1, CauseKind.SPOT_INTERRUPTION))).run(I)
    assert system.groups.launches == []
    assert system.groups.terminated == []


def test_a_launch_that_was_refused_is_not_tried_again_for_the_next_cause():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    system.groups.refuse_launch = "mixed purchase options"
    join(system, CauseKind.REBALANCE_RECOMMENDATION, id="rebalance")
    walk = Walker(system, before=Joins(system, at(2, CauseKind.SPOT_INTERRUPTION))).run(I)
    assert walk.states.count("AskForReplacement") == 1
    assert system.groups.terminated == [(I, False)]
