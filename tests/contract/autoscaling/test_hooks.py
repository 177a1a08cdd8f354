"""Lifecycle hooks hold instances: answers, heartbeats, time-outs, ABANDON, and what is reported of them."""

from leeward.model.group import HookResult
from tests.contract.worlds.groups import desired, members, newcomer, put_hook, reaches, went

CONTINUE, ABANDON = HookResult.CONTINUE, HookResult.ABANDON
HELD = ("Pending", "InService", "Terminating:Wait")
LET_GO = (*HELD, "Terminating:Proceed", "Terminated")


def held(world, *hooks, **more):
    """A group of one whose only instance its terminate hooks hold."""
    group = world.group()
    for hook in hooks or ("drain",):
        put_hook(world, group, hook, **more)
    (instance,) = members(world, group)
    world.groups.terminate(instance=instance, decrement=True)
    reaches(world, instance, "Terminating:Wait")
    return group, instance


def test_an_answer_lets_the_instance_go(world):
    group, instance = held(world)
    assert world.groups.lifecycle_of(instance) == (group, "Terminating:Wait")
    assert world.groups.complete(group=group, hook="drain", instance=instance, result=CONTINUE)
    went(world, instance, *LET_GO)
    assert world.groups.lifecycle_of(instance) is None


def test_a_hook_is_answered_once(world):
    group, instance = held(world)
    assert world.groups.complete(group=group, hook="drain", instance=instance, result=CONTINUE)
    assert not world.groups.complete(group=group, hook="drain", instance=instance, result=CONTINUE)
    assert not world.groups.heartbeat(group=group, hook="drain", instance=instance)


def test_a_heartbeat_is_taken_only_for_an_instance_that_waits(world):
    group, instance = held(world)
    assert world.groups.heartbeat(group=group, hook="drain", instance=instance)
    assert not world.groups.heartbeat(group=group, hook="another", instance=instance)
    assert not world.groups.heartbeat(group=group, hook="drain", instance="i-0123456789abcdef0")
    went(world, instance, *HELD)


def test_an_unanswered_hook_times_out(world):
    _, instance = held(world, seconds=world.short)
    went(world, instance, *LET_GO)


def test_a_default_result_of_abandon_ends_the_instance_as_well(world):
    _, instance = held(world, seconds=world.short, default=ABANDON)
    went(world, instance, *LET_GO)


def test_continue_waits_for_the_other_hook(world):
    group, instance = held(world, "first", "second")
    assert world.groups.complete(group=group, hook="first", instance=instance, result=CONTINUE)
    assert world.groups.lifecycle_of(instance) == (group, "Terminating:Wait")
    assert world.groups.complete(group=group, hook="second", instance=instance, result=CONTINUE)
    went(world, instance, *LET_GO)


def test_abandon_ends_the_wait_of_the_other_hook(world):
    group, instance = held(world, "first", "second")
    assert world.groups.complete(group=group, hook="first", instance=instance, result=ABANDON)
    went(world, instance, *LET_GO)
    assert not world.groups.complete(group=group, hook="second", instance=instance, result=CONTINUE)


def test_a_hook_that_is_taken_off_lets_go_of_what_it_holds_and_holds_nothing_more(world):
    group, instance = held(world)
    for _ in range(2):
        world.groups.delete_hook(group=group, hook="drain")
    assert world.groups.hooks(group) == ()
    went(world, instance, *LET_GO)


def test_the_replacement_comes_while_a_hook_holds_the_old_one(world):
    group = world.group()
    put_hook(world, group)
    (old,) = members(world, group)
    world.groups.terminate(instance=old, decrement=False)
    went(world, newcomer(world, group, old), "Pending", "InService")
    went(world, old, *HELD)


def launching(world, **more):
    """A group of one whose launch hook holds a second instance."""
    group = world.group()
    put_hook(world, group, "prepare", launching=True, **more)
    (old,) = members(world, group)
    world.resize(group, 2)
    fresh = newcomer(world, group, old)
    reaches(world, fresh, "Pending:Wait")
    return group, old, fresh


def test_a_launch_hook_holds_the_instance_until_it_is_answered(world):
    group, _, fresh = launching(world)
    assert world.groups.complete(group=group, hook="prepare", instance=fresh, result=CONTINUE)
    went(world, fresh, "Pending:Wait", "Pending:Proceed", "InService")


def test_an_abandoned_launch_is_ended_and_replaced(world):
    group, old, fresh = launching(world)
    put_hook(world, group)
    assert world.groups.complete(group=group, hook="prepare", instance=fresh, result=ABANDON)
    another = newcomer(world, group, old, fresh)
    reaches(world, another, "Pending:Wait")
    went(world, fresh, "Pending:Wait", "Terminating", "Terminated")
    assert desired(world, group) == 2


def test_a_launch_that_times_out_with_abandon_is_ended_and_replaced(world):
    group, old, fresh = launching(world, seconds=world.short, default=ABANDON)
    assert newcomer(world, group, old, fresh)
    went(world, fresh, "Pending:Wait", "Terminating", "Terminated")


def test_an_instance_ended_while_a_launch_hook_holds_it_waits_for_its_terminate_hook_alone(world):
    group, _, fresh = launching(world)
    put_hook(world, group)
    assert world.groups.terminate(instance=fresh, decrement=True)
    reaches(world, fresh, "Terminating:Wait")
    assert not world.groups.complete(group=group, hook="prepare", instance=fresh, result=CONTINUE)
    assert world.groups.complete(group=group, hook="drain", instance=fresh, result=CONTINUE)
    went(world, fresh, "Pending:Wait", "Terminating:Wait", "Terminating:Proceed", "Terminated")
