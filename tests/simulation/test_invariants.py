"""Each rule is broken once and reported, and what looks like a breach but is none is not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leeward.model.group import HookResult
from leeward.model.termination import LaunchOption, LaunchPlan, Outcome, Replacement
from leeward.policy.document import DrainPolicy
from leeward.ports.kubernetes import EvictionRefusedError
from local.cluster.deletion import DeleteOptions
from local.cluster.history import Cause as Loss
from simulation.asked import Asked, Kind
from simulation.aws.books import Book
from simulation.convergence import COOLDOWN
from simulation.faults import Crowd
from simulation.hook_rules import NEVER_JOINS
from simulation.invariants import HANDING_OVER, Rule, Violation, check
from simulation.journal import Journal
from simulation.removed_objects import Deletion, Removal
from tests.fakes.builders import GROUP, a_group, a_policy, policies
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, NODE, TAINT, a_record, closed, rules


def lost(world, cause):
    """As if the model itself had let it pass."""
    world.cluster.history.add_violation(pdb="default/web", pod="default/web-1", cause=cause, healthy=0, desired=1)


def test_a_world_at_rest_breaks_nothing(world, checker):
    assert checker.at_the_end(world) == []


def test_requests_that_the_world_has_forgotten_still_count_at_the_end(world, checker):
    """A maintenance far ahead excuses its open record, however many requests have come since."""
    world.asked = Journal(kept=2)
    world.records[INSTANCE] = a_record(at=START - timedelta(days=2))
    later = world.now + timedelta(days=5).total_seconds()
    world.asked.append(Asked(at=world.now, instance=INSTANCE, kind=Kind.MAINTENANCE, takes=later))
    checker.after_event(world)
    for number in range(5):
        world.asked.append(Asked(at=world.now, instance=f"i-{number}", kind=Kind.MANUAL))
        checker.after_event(world)
    assert Rule.RECORD not in rules(checker.at_the_end(world))


def test_a_violation_says_how_to_repeat_it_when_it_was_and_what_it_is(world, checker):
    world.completed_hooks.append((GROUP, "theirs", INSTANCE, True))
    (found,) = checker.after_event(world)
    assert found == Violation(
        seed=7, at=world.now, rule=Rule.FOREIGN_HOOK, text=f"theirs of {GROUP} completed for {INSTANCE}"
    )
    assert str(found).startswith("seed 7 at 02 10:00:00: no foreign hook")


def test_what_was_reported_once_is_not_reported_again(world, checker):
    world.completed_hooks.append((GROUP, "theirs", INSTANCE, True))
    assert len(checker.after_event(world)) == 1
    assert checker.after_event(world) == []
    assert checker.checks == 3


def test_an_eviction_against_a_budget_is_reported(world, checker):
    world.pods("web-1", minAvailable=1)
    lost(world, Loss.EVICTION)
    assert rules(checker.after_event(world)) == [Rule.EVICTION]


def test_an_eviction_that_the_budget_allows_and_one_that_it_refuses_are_no_breach(world, checker):
    first, second = world.pods("web-1", "web-2", minAvailable=1)
    world.api.evict(first)
    with pytest.raises(EvictionRefusedError):
        world.api.evict(second)
    assert checker.after_event(world) == []


def test_a_node_that_dies_may_break_a_budget(world, checker):
    lost(world, Loss.NODE_LOSS)
    assert checker.after_event(world) == []


@pytest.mark.parametrize(
    ("drain", "allowed"),
    [
        (DrainPolicy(), False),
        (DrainPolicy(force=True), True),
        (DrainPolicy(termination_grace_period=timedelta(hours=1)), True),
    ],
)
def test_a_pod_is_deleted_only_where_the_policy_forces(world, checker, drain, allowed):
    world.policies = policies(replace(a_policy(), drain=drain))
    world.records[INSTANCE] = a_record(at=START - timedelta(hours=1))
    world.work(seconds_ago=3600)
    world.api.delete_pod(world.pods("web-1")[0])
    assert rules(checker.after_event(world)) == ([] if allowed else [Rule.DELETION])


@pytest.mark.parametrize(
    ("drain", "minutes"),
    [
        (DrainPolicy(force=True, timeout=timedelta(minutes=10)), 10),
        (DrainPolicy(termination_grace_period=timedelta(minutes=30)), 29.5),
    ],
)
def test_a_pod_is_deleted_no_earlier_than_force_or_the_grace_period_allow(world, checker, drain, minutes):
    world.policies = policies(replace(a_policy(), drain=drain))
    world.records[INSTANCE] = a_record()
    world.work()
    first, second = world.pods("web-1", "web-2")
    world.clock.sleep(60 * minutes - 10)
    world.api.delete_pod(first)
    assert rules(checker.after_event(world)) == [Rule.DELETION]
    world.clock.sleep(10)
    world.api.delete_pod(second)
    assert checker.after_event(world) == []


@pytest.mark.parametrize(
    ("forced", "held", "minutes", "allowed"),
    [(True, True, 15, True), (True, True, 14, False), (True, False, 15, False), (False, True, 15, False)],
)
def test_without_a_policy_only_a_forced_upgrade_of_the_group_deletes_after_the_default_time_out(
    world, checker, forced, held, minutes, allowed
):
    """`NotSelected` is overridden then, and the defaults are taken. A detached instance is in no upgrade any more."""
    world.policies = policies(a_policy("other", "other-*"))
    world.records[INSTANCE] = a_record()
    world.work()
    world.forced_ones = {INSTANCE} if forced else set()
    world.groups = world.groups if held else {GROUP: a_group(GROUP)}
    world.clock.sleep(60 * minutes)
    world.api.delete_pod(world.pods("web-1")[0])
    assert rules(checker.after_event(world)) == ([] if allowed else [Rule.DELETION])


@pytest.mark.parametrize(
    ("ahead", "minutes", "found"), [(True, 29, [Rule.DELETION]), (True, 30, []), (False, 30, [Rule.DELETION])]
)
def test_a_drain_that_goes_on_for_maintenance_after_a_detachment_deletes_as_the_policy_of_its_group_says(
    world, checker, ahead, minutes, found
):
    if ahead:
        world.ask(Kind.MAINTENANCE, takes=world.now + 9 * 86400)
    drain = DrainPolicy(termination_grace_period=timedelta(minutes=30))
    world.policies = policies(replace(a_policy(), drain=drain))
    world.groups[GROUP] = replace(world.groups[GROUP], instances=())
    world.records[INSTANCE] = a_record()
    world.work()
    (pod,) = world.pods("web-1")
    world.clock.sleep(60 * minutes)
    world.api.delete_pod(pod)
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(("default", "found"), [("CONTINUE", [Rule.DELETION]), ("ABANDON", [])])
def test_another_teams_hook_is_a_deadline_only_where_it_ends_the_instance(world, checker, default, found):
    drain = DrainPolicy(termination_grace_period=timedelta(minutes=10))
    world.policies = policies(replace(a_policy(), drain=drain))
    world.records[INSTANCE] = a_record()
    world.work()
    world.hold()
    world.hold("theirs", timeout=60, default=HookResult(default))
    world.clock.sleep(31)
    world.api.delete_pod(world.pods("web-1")[0])
    assert rules(checker.after_event(world)) == found


def test_a_manual_drain_deletes_for_the_termination_that_it_began_and_for_no_later_one(world, checker):
    world.ask(Kind.MANUAL, deletes=True)
    world.records[INSTANCE] = a_record()
    first, second = world.pods("web-1", "web-2")
    world.api.delete_pod(first)
    assert checker.after_event(world) == []
    world.clock.advance(hours=48)
    world.records[INSTANCE] = a_record(at=world.clock.now())
    world.api.delete_pod(second)
    assert rules(checker.after_event(world)) == [Rule.DELETION]


def test_a_heartbeat_for_a_hook_that_never_held_the_instance_is_reported(world, checker):
    world.misdirected.append((GROUP, "leeward-second", INSTANCE))
    assert rules(checker.after_event(world)) == [Rule.HEARTBEAT]


@pytest.mark.parametrize(
    ("joined", "trouble", "found"), [(False, False, [Rule.LAUNCH_HOOK]), (False, True, []), (True, False, [])]
)
def test_the_launch_hook_of_an_instance_that_does_not_join_may_give_up(world, checker, joined, trouble, found):
    world.api_in_trouble = trouble
    world.unjoined = set() if joined else {INSTANCE}
    world.hold("leeward-terminate", launching=True, timeout=300)
    world.clock.sleep(300 + NEVER_JOINS)
    world.heartbeats.append((GROUP, "leeward-terminate", INSTANCE, True))
    assert checker.after_event(world) == []
    world.clock.sleep(1)
    world.heartbeats.append((GROUP, "leeward-terminate", INSTANCE, True))
    assert rules(checker.after_event(world)) == found


def test_a_pod_is_never_deleted_on_a_node_without_a_termination(world, checker):
    world.policies = policies(replace(a_policy(), drain=DrainPolicy(force=True)))
    world.deletions.append(Deletion(at=START, pod="default/web-1", instance=INSTANCE))
    assert rules(checker.after_event(world)) == [Rule.DELETION]


@pytest.mark.parametrize("calls", ["completed_hooks", "heartbeats"])
def test_only_our_own_hooks_are_answered_and_heartbeaten_by_us(world, checker, calls):
    ours, by_its_owner = (GROUP, "leeward-terminate", INSTANCE, True), (GROUP, "theirs", INSTANCE, False)
    getattr(world, calls).extend([ours, by_its_owner])
    assert checker.after_event(world) == []
    getattr(world, calls).append((GROUP, "theirs", INSTANCE, True))
    assert rules(checker.after_event(world)) == [Rule.FOREIGN_HOOK]


def test_a_hook_of_ours_that_times_out_is_reported(world, checker):
    world.timed_out.append((GROUP, "theirs", INSTANCE))
    assert checker.after_event(world) == []
    world.timed_out.append((GROUP, "leeward-terminate", INSTANCE))
    assert rules(checker.after_event(world)) == [Rule.ANSWER]


@pytest.mark.parametrize("token", ["leeward-i-a", "leeward-i-a-2", "leeward-7-i-a"])
def test_an_instance_for_which_two_are_launched_is_reported_whatever_the_tokens(world, checker, token):
    world.launches.append(("leeward-i-a", "i-b"))
    assert checker.after_event(world) == []
    world.launches.append((token, "i-c"))
    assert rules(checker.after_event(world)) == [Rule.LAUNCH]


@pytest.mark.parametrize(("seconds", "found"), [(50, []), (70, [Rule.LAUNCH])])
def test_a_step_of_a_stopped_execution_may_launch_beside_the_next_one(world, checker, seconds, found):
    world.launches.append(("leeward-i-a-0ab", "i-b"))
    world.rested["i-a"] = world.now - seconds
    assert checker.after_event(world) == []
    world.launches.append(("leeward-i-a-0cd", "i-c"))
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(("days", "found"), [(6, [Rule.LAUNCH]), (8, [])])
def test_an_instance_whose_record_was_forgotten_meanwhile_is_replaced_again(world, checker, days, found):
    world.launches.append((f"leeward-{INSTANCE}", "i-b"))
    assert checker.after_event(world) == []
    world.clock.advance(days=days)
    world.records[INSTANCE] = a_record(at=START + timedelta(days=days))
    world.launches.append((f"leeward-{INSTANCE}", "i-c"))
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(
    ("left", "minutes", "reported"), [(9, 16, True), (0, 16, True), (9, 14, False), (10, 16, False), (9, 61, False)]
)
def test_a_launch_planned_where_addresses_have_long_been_lacking_is_reported(world, checker, left, minutes, reported):
    world.crowded["us-east-1a"] = Crowd(since=world.now, until=world.now + 3600, left=left)
    world.clock.advance(minutes=minutes)
    here, there = (LaunchOption(subnet=f"subnet-{z}", zone=f"us-east-1{z}", why="") for z in "ab")
    world.plans.append((INSTANCE, LaunchPlan(options=(there, here))))
    assert checker.after_event(world) == []
    world.plans.append((INSTANCE, LaunchPlan(options=(here, there))))
    assert rules(checker.after_event(world)) == ([Rule.PLACEMENT] if reported else [])


def test_a_plan_without_a_place_breaks_nothing(world, checker):
    world.plans.append((INSTANCE, LaunchPlan(nowhere="no zone is left")))
    assert checker.after_event(world) == []


def test_an_instance_that_has_to_go_again_in_a_later_period_is_replaced_again_once(world, checker):
    """The group's book judges whether each was paid for."""
    world.launches += [("leeward-i-a-0ab", "i-b"), ("leeward-i-a-2-0ab", "i-c")]
    assert checker.after_event(world) == []
    world.launches.append(("leeward-i-a-2-0cd", "i-d"))
    assert rules(checker.after_event(world)) == [Rule.LAUNCH]


def test_the_desired_size_is_lowered_once_for_each_launch(world, checker):
    world.launches.append(("leeward-i-a", "i-b"))
    world.decrements.append("i-a")
    assert checker.after_event(world) == []
    world.decrements.append("i-a")
    assert rules(checker.after_event(world)) == [Rule.DECREMENT]


def test_the_desired_size_is_not_lowered_for_an_instance_that_nothing_was_launched_for(world, checker):
    book = Book()
    book.paid()
    world.books[GROUP] = book
    assert rules(checker.after_event(world)) == [Rule.DECREMENT]


def test_a_launch_paid_twice_by_an_owner_and_by_us_is_brought_back_by_a_later_launch():
    """Whether the owner meant a smaller group or took our surge node cannot be known: neither is held against us."""
    book = Book()
    for _ in range(3):
        book.launched()
    for _ in range(2):
        book.taken_by_owner()
    for _ in range(3):
        book.paid()
    book.launched()
    assert (book.least, book.most, book.overpaid) == (-1, 1, 0)
    for _ in range(2):
        book.launched()
    assert (book.least, book.most) == (1, 3), "what the owner took brings back two at most"


def test_a_decrement_that_pays_for_nothing_brings_nothing_back():
    book = Book()
    book.paid()
    book.launched()
    assert (book.least, book.most, book.overpaid) == (1, 1, 1)


def test_two_executions_of_one_instance_may_overlap_only_while_one_hands_over(world, checker):
    world.open_executions |= {"i-a-1", "i-a-2", "i-b-1", "manual"}
    assert checker.after_event(world) == []
    world.clock.sleep(HANDING_OVER + 1)
    assert rules(checker.after_event(world)) == [Rule.EXECUTION]
    world.clock.sleep(1)
    assert checker.after_event(world) == []


def test_an_overlap_that_ended_in_time_starts_anew_with_the_next(world, checker):
    for _ in range(2):
        world.open_executions |= {"i-a-1", "i-a-2"}
        assert checker.after_event(world) == []
        world.clock.sleep(HANDING_OVER - 1)
        world.open_executions.discard("i-a-1")
        assert checker.after_event(world) == []


def test_the_node_of_a_running_instance_is_not_removed(world, checker):
    world.removals.append(Removal(at=START, node="node-b", instance="i-b"))
    assert rules(checker.after_event(world)) == [Rule.REMOVAL]
    world.ended.add(INSTANCE)
    world.api.delete_node(world.api.node(NODE))
    assert checker.after_event(world) == []


def test_a_node_that_is_returned_whole_breaks_nothing(world, checker):
    world.taint()
    world.api.untaint(world.api.node(NODE), TAINT)
    assert checker.at_the_end(world) == []


def test_a_mark_needs_an_open_record_at_the_end(world, checker):
    world.taint()
    assert checker.after_event(world) == []
    assert rules(checker.at_the_end(world)) == [Rule.STALE_TAINT]
    world.records[INSTANCE] = closed(Outcome.RETURNED_TO_SERVICE)
    assert rules(checker.at_the_end(world)) == [Rule.STALE_TAINT]


def test_an_open_record_whose_instance_is_gone_is_reported_at_the_end(world, checker):
    world.records[INSTANCE] = a_record()
    assert checker.at_the_end(world) == []
    world.ended.add(INSTANCE)
    assert rules(checker.at_the_end(world)) == [Rule.GONE]


@pytest.mark.parametrize(("seconds", "found"), [(299, []), (300, [Rule.GONE])])
def test_a_step_notices_within_five_minutes_that_its_instance_is_gone(world, checker, seconds, found):
    """An upgrade may still run when the world ends, in a group whose messages no policy lets in."""
    world.records[INSTANCE] = a_record()
    world.ended.add(INSTANCE)
    world.ended_times[INSTANCE] = world.now - seconds
    assert rules(checker.at_the_end(world)) == found


def test_a_hook_of_ours_that_waits_needs_an_open_record_at_the_end(world, checker):
    world.waiting |= {(GROUP, "leeward-terminate", INSTANCE), (GROUP, "theirs", INSTANCE)}
    assert checker.after_event(world) == []
    assert rules(checker.at_the_end(world)) == [Rule.HOOK]


@pytest.mark.parametrize("left", ["queue_depth", "in_flight"])
def test_no_message_is_left_at_the_end(world, checker, left):
    setattr(world, left, 1)
    assert checker.after_event(world) == []
    assert rules(checker.at_the_end(world)) == [Rule.MESSAGE]


def test_an_open_record_without_an_execution_is_reported_at_the_end(world, checker):
    world.records[INSTANCE] = a_record()
    world.clock.sleep(COOLDOWN.total_seconds())
    assert rules(checker.at_the_end(world)) == [Rule.RECORD]


def test_an_open_record_may_rest_between_two_executions(world, checker):
    world.records[INSTANCE] = a_record(at=START - timedelta(hours=5))
    world.rested[INSTANCE] = world.now - COOLDOWN.total_seconds() + 1
    assert checker.at_the_end(world) == []
    world.clock.sleep(1)
    assert rules(checker.at_the_end(world)) == [Rule.RECORD]


def test_an_open_record_may_wait_for_maintenance_far_ahead(world, checker):
    world.records[INSTANCE] = a_record(at=START - timedelta(hours=5))
    world.ask(Kind.MAINTENANCE, takes=world.now + 9 * 86400)
    assert checker.at_the_end(world) == []


def test_an_open_record_may_be_at_work_but_not_for_ever(world, checker):
    world.records[INSTANCE] = a_record(times={"claimed": START - timedelta(days=1)})
    world.open_executions.add(f"{INSTANCE}-1")
    world.clock.advance(minutes=119)
    assert checker.at_the_end(world) == []
    world.clock.advance(minutes=1)
    assert rules(checker.at_the_end(world)) == [Rule.RECORD]


def test_our_hook_holds_a_node_while_its_pods_may_not_leave_even_if_it_joined_just_before(world, checker):
    world.pods("web-1", minAvailable=1)
    world.records[INSTANCE] = a_record(times={"claimed": START - timedelta(days=1)})
    world.open_executions.add(f"{INSTANCE}-1")
    world.asked_by_us.add(INSTANCE)
    world.clock.advance(minutes=121)
    assert Rule.RECORD not in rules(checker.at_the_end(world))
    world.asked_by_us.clear()
    assert Rule.RECORD in rules(checker.at_the_end(world))


def test_a_drain_may_wait_for_the_grace_of_a_pod_and_no_longer(world, checker):
    (pod,) = world.pods("web-1")
    world.records[INSTANCE] = a_record(times={"claimed": START - timedelta(days=1)})
    world.open_executions.add(f"{INSTANCE}-1")
    world.cluster.delete("pods", pod.name, pod.namespace, options=DeleteOptions(grace=4 * 3600))
    world.clock.advance(hours=3)
    assert Rule.RECORD not in rules(checker.at_the_end(world))
    world.clock.advance(hours=1)
    assert Rule.RECORD in rules(checker.at_the_end(world))


@pytest.mark.parametrize("desired", [0, 2])
def test_groups_are_at_their_desired_size_at_the_end(world, checker, desired):
    world.groups[GROUP] = replace(world.groups[GROUP], desired=desired)
    assert rules(checker.at_the_end(world)) == [Rule.SIZE]


def test_an_instance_that_is_leaving_does_not_count_for_the_size(world, checker):
    world.groups[GROUP] = replace(a_group(GROUP, INSTANCE, lifecycle="Terminating:Wait"), desired=0)
    assert checker.at_the_end(world) == []


def test_a_launch_is_paid_for_at_the_end_unless_an_open_record_still_owes_it(world, checker):
    world.books[GROUP] = Book(least=1, most=1)
    assert checker.after_event(world) == []
    assert rules(checker.at_the_end(world)) == [Rule.DEBT]
    owes = Replacement(launched=("i-b",))
    world.records[INSTANCE] = a_record(replacement=owes)
    assert checker.at_the_end(world) == []


def test_a_group_that_we_make_smaller_than_its_owners_meant_is_reported_once(world, checker):
    world.books[GROUP] = Book(overpaid=1)
    assert rules(checker.after_event(world)) == [Rule.DECREMENT]
    assert checker.after_event(world) == []


def test_an_instance_that_no_group_holds_is_reported_at_the_end(world, checker):
    world.strays.append("i-b")
    assert checker.after_event(world) == []
    assert rules(checker.at_the_end(world)) == [Rule.LEAK]


def test_one_look_without_a_checker_sees_everything_so_far(world):
    world.heartbeats.append((GROUP, "theirs", INSTANCE, True))
    world.decrements.extend(["i-a", "i-a"])
    assert set(rules(check(world, seed=3))) == {Rule.FOREIGN_HOOK, Rule.DECREMENT}


def test_every_rule_is_broken_by_a_test():
    tests = (path.read_text() for path in sorted(Path(__file__).parent.glob("test_*.py")))
    reported = "".join(tests)
    assert [rule.name for rule in Rule if f"[Rule.{rule.name}]" not in reported] == []


def test_the_clock_of_a_violation_is_that_of_the_world(world):
    world.clock.advance(hours=5)
    world.decrements.extend(["i-a", "i-a"])
    assert datetime.fromtimestamp(check(world)[0].at, UTC) == START + timedelta(hours=5)
