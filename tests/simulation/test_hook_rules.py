"""Answers to hooks of ours, and launches that never join: each rule is broken once, and kept in the next."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from leeward.policy.document import DrainPolicy
from simulation.hook_rules import BOOTS_WITHIN, RECONCILED
from simulation.invariants import Rule
from simulation.shown_hooks import ShownHooks
from tests.fakes.builders import GROUP, a_policy, policies
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, a_record, rules

HOOK = "leeward-terminate"
LATE = BOOTS_WITHIN - RECONCILED


@pytest.mark.parametrize(
    ("after", "joined", "found"),
    [(LATE, False, []), (LATE, True, [Rule.ANSWER]), (LATE - 1, False, [Rule.ANSWER])],
)
def test_the_launch_hook_of_an_instance_that_never_joins_may_time_out(world, checker, after, joined, found):
    world.launch_hooks.add(HOOK)
    world.launched_at[INSTANCE] = world.now - after
    if not joined:
        world.unjoined.add(INSTANCE)
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == found


def test_a_terminate_hook_may_not_time_out_however_late_it_is(world, checker):
    world.launched_at[INSTANCE] = world.now - LATE
    world.unjoined.add(INSTANCE)
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == [Rule.ANSWER]


def test_a_hook_that_was_kept_waiting_for_as_long_as_auto_scaling_allows_may_time_out(world, checker):
    world.held_long.add((GROUP, HOOK, INSTANCE))
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert checker.after_event(world) == []


@pytest.mark.parametrize(
    ("begun", "ended", "found"),
    [(200, 0, []), (230, 60, []), (140, 0, [Rule.ANSWER]), (280, 90, [Rule.ANSWER])],
    ids=["until the end", "until shortly before", "for less than half", "with time left"],
)
def test_a_hook_may_time_out_where_its_account_refused_its_role_until_the_end(world, checker, begun, ended, found):
    world.time_outs[HOOK] = 300
    world.refusals.append((world.now - begun, world.now - ended))
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(
    ("unnamed", "is_open", "found"),
    [(300, False, []), (111, False, []), (110, False, [Rule.ANSWER]), (300, True, [Rule.ANSWER])],
    ids=["all the time", "mostly", "for a part", "for a termination that is open"],
)
def test_a_hook_may_time_out_where_its_owner_has_taken_it_out_of_the_policies(world, checker, unnamed, is_open, found):
    world.time_outs[HOOK], world.unnamed = 300, unnamed
    if is_open:
        world.records[INSTANCE] = a_record()
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(
    ("at", "hook", "unnamed"),
    [(0, "named", 70), (30, "named", 60), (95, "named", 0), (0, "put", 0), (0, "other", 100)],
)
def test_a_hook_is_unnamed_while_no_policy_in_force_names_it(at, hook, unnamed):
    shown = ShownHooks()
    named, removed = policies(a_policy(hooks=("named",))), policies(a_policy("other", "batch-*"))
    shown.deployed = [(0.0, named), (20.0, removed), (90.0, named)]
    shown.timeline = SimpleNamespace(now=lambda: 100.0)
    shown.fleet = SimpleNamespace(groups={GROUP: SimpleNamespace(tags={})})
    shown.system = SimpleNamespace(groups=SimpleNamespace(put={(GROUP, "put")}))
    assert shown.unnamed_since(at, GROUP, hook) == unnamed


@pytest.mark.parametrize(("timeout", "found"), [(120, []), (1728, [Rule.ANSWER])])
def test_a_short_hook_may_time_out_while_no_function_can_heartbeat_it(world, checker, timeout, found):
    world.away, world.time_outs[HOOK] = True, timeout
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(
    ("timeout", "heard", "opened", "found"),
    [
        (120, None, None, []),
        (120, 59, None, []),
        (120, 60, None, [Rule.ANSWER]),
        (120, None, 59, []),
        (120, None, 60, [Rule.ANSWER]),
        (120, None, 121, []),
        (120, 60, 121, [Rule.ANSWER]),
        (300, None, None, [Rule.ANSWER]),
    ],
)
def test_a_short_terminate_hook_may_time_out_only_where_its_event_was_lost_or_late(
    world, checker, timeout, heard, opened, found
):
    world.time_outs[HOOK] = timeout
    world.clock.advance(minutes=5)
    if heard is not None:
        world.events_came[INSTANCE] = world.now - heard
    if opened is not None:
        world.records[INSTANCE] = a_record(at=world.clock.now() - timedelta(seconds=opened))
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == found


def test_a_short_hook_that_was_heartbeaten_is_known(world, checker):
    world.time_outs[HOOK] = 120
    world.records[INSTANCE] = a_record(at=world.clock.now())
    world.clock.advance(minutes=5)
    world.heartbeats.append((GROUP, HOOK, INSTANCE, True))
    checker.after_event(world)
    world.clock.advance(minutes=2)
    world.timed_out.append((GROUP, HOOK, INSTANCE))
    assert rules(checker.after_event(world)) == [Rule.ANSWER]


@pytest.mark.parametrize(
    ("lifecycle", "asked_by_us", "found"),
    [
        ("Terminating:Proceed", False, []),
        ("Terminating:Proceed", True, [Rule.DRAINED]),
        ("InService", False, [Rule.DRAINED]),
    ],
)
def test_a_forced_upgrade_holds_only_what_it_ends_itself(world, checker, lifecycle, asked_by_us, found):
    world.policies = policies(replace(a_policy(), drain=DrainPolicy(timeout=timedelta(minutes=2))))
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    members = [replace(one, lifecycle=lifecycle) for one in world.groups[GROUP].instances]
    world.groups[GROUP] = replace(world.groups[GROUP], instances=members)
    world.pods("web-1")
    world.work(seconds_ago=180)
    world.forced_ones.add(INSTANCE)
    if asked_by_us:
        world.asked_by_us.add(INSTANCE)
    world.completed_hooks.append((GROUP, HOOK, INSTANCE, True))
    assert rules(checker.after_event(world)) == found
