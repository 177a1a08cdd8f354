"""Cordons, budgets of maintenance, drains, deadlines: each rule is broken once, and kept in the next test."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model import well_known
from leeward.model.times import format_instant
from leeward.policy.document import Budget, DisruptionPolicy, DrainPolicy
from local.cluster.nodes import NodeSpec
from simulation.asked import HANDLED_WITHIN, Asked, Kind
from simulation.aws import events
from simulation.aws.books import Book
from simulation.foreign_taints import OTHER_DEPLOYMENT
from simulation.invariants import Rule
from simulation.maintenance_budget_rules import SETTLED
from simulation.node_rules import CLAIMED_WITHIN, IN_GOOD_TIME, NOTICE, TAINTED_AGAIN, UNTAINTED, WRITE_TAKES
from tests.fakes.builders import GROUP, ZONE, a_group, a_policy, policies
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, NODE, TAINT, a_record, rules

HOOK = "leeward-terminate"
DAYS_AHEAD = START + timedelta(days=9)


def with_policy(world, **drain):
    world.policies = policies(replace(a_policy(), drain=DrainPolicy(**drain)))


def answer(world):
    world.completed_hooks.append((GROUP, HOOK, INSTANCE, True))


def maintained(world, nodes):
    """So many nodes in the group; the first is to be maintained in nine days."""
    names = [INSTANCE, *(f"i-{number}" for number in range(1, nodes))]
    for name in names[1:]:
        world.cluster.add_node(NodeSpec(name=f"node-{name}", instance_id=name))
    world.groups[GROUP] = a_group(GROUP, *names)
    world.ask(Kind.MAINTENANCE, takes=DAYS_AHEAD.timestamp())


def a_while(world, checker, seconds):
    world.clock.sleep(seconds)
    return checker.after_event(world)


@pytest.mark.parametrize(("works", "found"), [(True, [Rule.FOREIGN_TAINT]), (False, [])])
def test_the_mark_of_another_deployment_stays_while_that_works_on_the_node(world, checker, works, found):
    taint = {"key": well_known.DISRUPTED_TAINT, "value": OTHER_DEPLOYMENT, "effect": "NoSchedule"}
    world.cluster.patch("nodes", NODE, {"spec": {"taints": [taint]}})
    world.tainted_by_others = {NODE} if works else set()
    assert checker.after_event(world) == []
    world.cluster.patch("nodes", NODE, {"spec": {"taints": []}})
    assert rules(checker.after_event(world)) == found


def test_a_cordon_that_came_with_our_mark_goes_with_it(world, checker):
    world.taint()
    world.cluster.patch("nodes", NODE, {"spec": {"taints": []}})  # and forgets to uncordon
    assert rules(checker.after_event(world)) == [Rule.CORDON]


def test_the_cordon_of_an_operator_may_stay(world, checker):
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": True}})
    world.taint()
    assert world.api.untaint(world.api.node(NODE), TAINT).unschedulable
    assert checker.after_event(world) == []


def test_the_cordon_of_an_operator_is_not_lifted(world, checker):
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": True}})
    world.taint()
    world.cluster.patch("nodes", NODE, {"spec": {"taints": [], "unschedulable": False}})
    assert rules(checker.after_event(world)) == [Rule.FOREIGN_CORDON]


def test_a_cordon_of_ours_that_an_operator_lifted_and_a_drain_set_again_is_not_the_operator_s(world, checker):
    world.taint()
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": None}})
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": True}})  # by the drain
    world.asked.append(Asked(at=world.now, instance=INSTANCE, kind=Kind.LIFTED))
    world.cluster.patch("nodes", NODE, {"spec": {"taints": []}})
    checker.after_event(world)
    world.asked.clear()
    world.taint()
    world.cluster.patch("nodes", NODE, {"spec": {"taints": [], "unschedulable": None}})
    assert checker.after_event(world) == []


def test_an_operator_may_lift_the_cordon_himself(world, checker):
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": True}})
    world.taint()
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": False}})
    world.cluster.patch("nodes", NODE, {"spec": {"taints": []}})
    assert checker.after_event(world) == []


@pytest.mark.parametrize(("owed", "found"), [(0, [Rule.UNAVAILABLE]), (1, [])])
def test_maintenance_far_ahead_may_take_one_node_of_ten_but_not_a_second_unless_it_pays_for_a_launch(
    world, checker, owed, found
):
    maintained(world, 10)
    world.books[GROUP] = Book(most=owed)
    world.taint()
    assert checker.after_event(world) == []
    assert a_while(world, checker, HANDLED_WITHIN + 1) == []
    world.api.untaint(world.api.node(NODE), TAINT)
    world.cluster.set_node_ready("node-i-1", "Unknown")
    assert a_while(world, checker, SETTLED + 1) == []
    world.taint()
    assert checker.after_event(world) == []
    assert rules(a_while(world, checker, HANDLED_WITHIN + 1)) == found


@pytest.mark.parametrize(("zone", "found"), [(ZONE, [Rule.UNAVAILABLE]), ("us-east-1f", [])])
def test_maintenance_far_ahead_waits_for_the_budget_of_its_zone_and_of_no_other(world, checker, zone, found):
    budgets = (Budget(nodes=100), Budget(nodes=1, percent=False, zone=zone))
    world.policies = policies(replace(a_policy(), disruption=DisruptionPolicy(budgets=budgets)))
    maintained(world, 10)
    world.cluster.set_node_ready("node-i-1", "Unknown")
    assert a_while(world, checker, SETTLED + 1) == []
    world.taint()
    assert checker.after_event(world) == []
    assert rules(a_while(world, checker, HANDLED_WITHIN + 1)) == found


@pytest.mark.parametrize(("seconds", "reported"), [(-5, []), (300, [Rule.UNAVAILABLE])])
def test_a_node_that_another_message_asks_for_waits_for_no_budget(world, checker, seconds, reported):
    """It is tainted before that is written down; a message that comes minutes later is no excuse."""
    maintained(world, 10)
    world.cluster.set_node_ready("node-i-1", "Unknown")
    assert a_while(world, checker, SETTLED + 1) == []
    world.taint()
    assert checker.after_event(world) == []
    world.ask(Kind.REBALANCE, at=world.now + seconds)
    assert rules(a_while(world, checker, HANDLED_WITHIN + 1)) == reported


def test_maintenance_that_has_been_moved_near_waits_for_no_budget(world, checker):
    maintained(world, 10)
    world.cluster.set_node_ready("node-i-1", "Unknown")
    assert a_while(world, checker, SETTLED + 1) == []
    world.taint()
    assert checker.after_event(world) == []
    now = world.clock.now()
    world.records[INSTANCE] = a_record(at=now)
    nearer = events.maintenance("event", INSTANCE, now, now + timedelta(hours=5))
    nearer["detail"]["eventArn"] = "event-1"
    world.acknowledged.append(("m-1", json.dumps(nearer)))
    assert checker.after_event(world) == []
    assert a_while(world, checker, HANDLED_WITHIN + 1) == []


def test_an_instance_that_is_let_go_with_pods_is_reported(world, checker):
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.pods("web-1")
    answer(world)
    (found,) = checker.after_event(world)
    assert (found.rule, found.text) == (Rule.DRAINED, f"{INSTANCE} with default/web-1")


@pytest.mark.parametrize(
    ("status", "seconds", "reported"),
    [("True", 5, [Rule.DRAINED]), ("True", 65, []), ("Unknown", 5, []), ("Unknown", -5, [Rule.DRAINED])],
)
def test_a_pod_whose_grace_is_over_is_ended_by_no_kubelet_that_is_silent(world, checker, status, seconds, reported):
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.pods("web-1")
    (pod,) = world.cluster.store.each("pods")
    pod["metadata"]["deletionTimestamp"] = format_instant(world.clock.now() - timedelta(seconds=seconds))
    world.cluster.set_node_ready(NODE, status)
    answer(world)
    assert rules(checker.after_event(world)) == reported


def test_asking_the_group_lets_go_where_no_hook_of_ours_holds(world, checker):
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.pods("web-1")
    world.waiting.add((GROUP, HOOK, INSTANCE))
    world.terminations.append(INSTANCE)
    assert checker.after_event(world) == []
    world.waiting.clear()
    world.terminations.append(INSTANCE)
    assert rules(checker.after_event(world)) == [Rule.DRAINED]


def test_an_empty_node_may_be_let_go_and_so_may_an_ended_instance(world, checker):
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    answer(world)
    assert checker.after_event(world) == []
    world.pods("web-1")
    world.ended.add(INSTANCE)
    answer(world)
    assert checker.after_event(world) == []


@pytest.mark.parametrize(
    ("force", "minutes", "reported"), [(False, 14, [Rule.DRAINED]), (False, 16, []), (True, 16, [Rule.DRAINED])]
)
def test_a_drain_whose_time_is_over_lets_go_what_is_left_unless_it_forces(world, checker, force, minutes, reported):
    with_policy(world, timeout=timedelta(minutes=15), force=force)
    world.pods("web-1")
    world.clock.advance(minutes=minutes)
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.work(seconds_ago=60 * minutes)
    answer(world)
    assert rules(checker.after_event(world)) == reported


@pytest.mark.parametrize(
    ("silent", "evicted", "reported"),
    [(True, True, []), (False, True, [Rule.DRAINED]), (True, False, [Rule.DRAINED])],
)
def test_after_the_drain_s_time_no_grace_is_waited_for_that_a_silent_kubelet_would_end(
    world, checker, silent, evicted, reported
):
    with_policy(world, timeout=timedelta(minutes=15))
    world.pods("web-1")
    world.ask(Kind.ILL)
    if silent:
        world.cluster.set_node_ready(NODE, "Unknown")
    world.clock.advance(minutes=35)  # longer than repair.notReadyAfter
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.work(seconds_ago=16 * 60)
    world.asked_by_us = {INSTANCE}
    if evicted:
        world.cluster.evict("web-1")
    answer(world)
    assert rules(checker.after_event(world)) == reported


@pytest.mark.parametrize(("refuses", "reported"), [(True, []), (False, [Rule.DRAINED])])
def test_force_deletes_no_pod_that_the_flags_of_a_drain_refuse(world, checker, refuses, reported):
    with_policy(world, timeout=timedelta(minutes=15), force=True)
    world.pods("web-1")
    world.cluster.patch("pods", "web-1", {"metadata": {"ownerReferences": None}}, "default")
    world.clock.advance(minutes=16)
    opened = START + timedelta(hours=1)
    world.records[INSTANCE] = a_record(at=opened)
    world.work(seconds_ago=60 * 16)
    world.asked.append(Asked(at=opened.timestamp(), instance=INSTANCE, kind=Kind.MANUAL, refuses_unmanaged=refuses))
    answer(world)
    assert rules(checker.after_event(world)) == reported


@pytest.mark.parametrize(("by_us", "found"), [(False, []), (True, [Rule.DRAINED])])
def test_an_instance_that_we_have_asked_to_end_is_held_past_the_drains_time(world, checker, by_us, found):
    with_policy(world, timeout=timedelta(minutes=15))
    world.pods("web-1")
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.work(seconds_ago=16 * 60)
    world.asked_by_us = {INSTANCE} if by_us else set()
    answer(world)
    assert rules(checker.after_event(world)) == found


def test_a_spot_instance_is_let_go_as_it_is_shortly_before_its_deadline(world, checker):
    world.pods("web-1")
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.ask(Kind.SPOT, takes=world.now + NOTICE)
    world.clock.sleep(111)
    answer(world)
    assert checker.after_event(world) == []


def test_a_spot_instance_is_not_let_go_earlier_whatever_deadline_the_product_believes_in(world, checker):
    world.pods("web-1")
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1), deadline=START)
    world.ask(Kind.SPOT, takes=world.now + NOTICE)
    world.clock.sleep(60)
    answer(world)
    (found,) = checker.after_event(world)
    assert rules([found]) == [Rule.NOTICE]
    assert found.text == f"{INSTANCE} is released 60 s before EC2 takes it, with default/web-1"


def test_a_warning_that_was_handled_keeps_a_blocked_node_past_its_time_out(world, checker):
    with_policy(world, timeout=timedelta(seconds=10))
    world.pods("web-1")
    world.records[INSTANCE] = a_record(at=START + timedelta(hours=1))
    world.work(seconds_ago=60)
    world.ask(Kind.SPOT, takes=world.now + NOTICE)
    warning = events.spot_warning("event", INSTANCE, world.clock.now())
    world.acknowledged.append(("m-1", json.dumps(warning)))
    world.ended.add(INSTANCE)
    assert checker.after_event(world) == []
    world.ended.clear()
    world.clock.sleep(61)
    answer(world)
    assert rules(checker.after_event(world)) == [Rule.NOTICE]


def test_a_termination_grace_period_longer_than_the_time_out_extends_the_drain(world, checker):
    with_policy(world, timeout=timedelta(minutes=2), termination_grace_period=timedelta(minutes=10))
    world.pods("web-1")
    world.clock.advance(minutes=5)
    world.records[INSTANCE] = a_record(at=world.clock.now() - timedelta(minutes=3))
    world.work(seconds_ago=180)
    answer(world)
    assert rules(checker.after_event(world)) == [Rule.DRAINED]
    world.clock.advance(minutes=8)
    answer(world)
    assert checker.after_event(world) == []


@pytest.mark.parametrize(("seconds", "found"), [(480, []), (470, [Rule.DRAINED])])
def test_a_later_attempt_has_what_is_left_of_the_termination_grace_period(world, checker, seconds, found):
    with_policy(world, timeout=timedelta(minutes=2), termination_grace_period=timedelta(minutes=10))
    world.pods("web-1")
    world.clock.advance(minutes=20)
    world.records[INSTANCE] = a_record(at=world.clock.now() - timedelta(seconds=seconds + 120))
    world.work(seconds_ago=seconds)
    answer(world)
    assert rules(checker.after_event(world)) == found


def test_a_later_attempt_has_the_whole_time_out_also_after_the_termination_grace_period(world, checker):
    with_policy(world, timeout=timedelta(minutes=2), termination_grace_period=timedelta(minutes=10))
    world.pods("web-1")
    world.clock.advance(minutes=30)
    world.records[INSTANCE] = a_record(at=world.clock.now() - timedelta(minutes=20))
    world.work(seconds_ago=60)
    answer(world)
    assert rules(checker.after_event(world)) == [Rule.DRAINED]


@pytest.mark.parametrize(("state", "found"), [("ReturnNodeToService", []), ("DrainNode", [Rule.UNTAINTED])])
def test_a_mark_stays_while_a_termination_is_open_unless_it_gives_the_node_back(world, checker, state, found):
    world.records[INSTANCE] = a_record()
    world.taint()
    world.states[INSTANCE] = [state]
    world.clock.sleep(WRITE_TAKES + 1)
    world.api.untaint(world.api.node(NODE), TAINT)
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize(
    ("trouble", "seconds", "found"),
    [(True, 19, []), (True, 21, [Rule.UNTAINTED]), (False, 4, []), (False, 6, [Rule.UNTAINTED])],
)
def test_a_write_that_is_older_than_the_claim_takes_the_mark_for_seconds_and_longer_while_the_api_is_in_trouble(
    world, checker, trouble, seconds, found
):
    """Two slow calls may lie between the read of the record and the write of the node; a hanging API server may apply
    it for as long as its client waits.
    """
    world.api_in_trouble = trouble
    world.taint()
    world.records[INSTANCE] = a_record()
    world.states[INSTANCE] = ["Drain"]
    world.clock.sleep(seconds)
    world.api.untaint(world.api.node(NODE), TAINT)
    assert rules(checker.after_event(world)) == found


@pytest.mark.parametrize("again", [True, False])
def test_a_mark_that_an_older_write_has_taken_is_repeated_by_the_drain(world, checker, again):
    world.api_in_trouble = True
    world.taint()
    world.records[INSTANCE] = a_record()
    world.work()
    world.api.untaint(world.api.node(NODE), TAINT)
    assert checker.after_event(world) == []
    assert a_while(world, checker, TAINTED_AGAIN + 1) == []
    world.api_in_trouble = False
    if again:
        world.taint()
    assert rules(checker.after_event(world)) == ([] if again else [Rule.UNTAINTED])
    assert checker.after_event(world) == []


def test_a_mark_that_comes_off_without_a_termination_breaks_nothing(world, checker):
    world.taint()
    world.api.untaint(world.api.node(NODE), TAINT)
    assert checker.after_event(world) == []


def test_a_warning_is_claimed_within_half_a_minute_where_only_kubernetes_has_trouble(world, checker):
    world.faultless = False
    world.only_kubernetes_fails = True
    world.warned.append((INSTANCE, world.now))
    assert a_while(world, checker, CLAIMED_WITHIN) == []
    assert rules(a_while(world, checker, 1)) == [Rule.CLAIM]
    assert a_while(world, checker, 60) == []


def test_a_warning_that_was_claimed_in_time_is_no_finding(world, checker):
    world.faultless = False
    world.only_kubernetes_fails = True
    world.warned.append((INSTANCE, world.now))
    world.records[INSTANCE] = a_record()
    assert a_while(world, checker, CLAIMED_WITHIN + 1) == []


def test_a_node_that_registered_after_the_claim_may_have_pods(world, checker):
    world.records[INSTANCE] = a_record(at=START - timedelta(minutes=1))
    world.pods("web-1")
    answer(world)
    assert checker.after_event(world) == []


def warned(world, checker, *, tainted=True):
    if tainted:
        world.taint()
    world.warned.append((INSTANCE, world.now))
    assert checker.after_event(world) == []


def test_a_spot_instance_is_taken_before_its_pods_are_evicted(world, checker):
    world.pods("web-1")
    warned(world, checker)
    (found,) = a_while(world, checker, NOTICE)
    assert (found.rule, found.text) == (Rule.DEADLINE, f"{INSTANCE} is taken before eviction of default/web-1")


@pytest.mark.parametrize(("keeps", "found"), [(True, []), (False, [Rule.DEADLINE])])
def test_a_pod_that_the_policy_keeps_may_end_with_its_spot_instance(world, checker, keeps, found):
    with_policy(world, evict_unmanaged=not keeps)
    world.pods("web-1")
    world.cluster.patch("pods", "web-1", {"metadata": {"ownerReferences": None}}, "default")
    warned(world, checker)
    assert rules(a_while(world, checker, NOTICE)) == found


def test_the_node_of_a_warned_instance_is_tainted_at_once_and_stays_so(world, checker):
    warned(world, checker, tainted=False)
    assert a_while(world, checker, UNTAINTED) == []
    assert rules(a_while(world, checker, 1)) == [Rule.DEADLINE]
    assert a_while(world, checker, UNTAINTED) == []
    world.taint()
    assert checker.after_event(world) == []
    world.api.untaint(world.api.node(NODE), TAINT)
    assert checker.after_event(world) == []
    assert rules(a_while(world, checker, UNTAINTED + 1)) == [Rule.DEADLINE]


def test_a_spot_instance_is_taken_while_our_hook_waits(world, checker):
    warned(world, checker)
    world.waiting.add((GROUP, HOOK, INSTANCE))
    assert checker.after_event(world) == []
    assert rules(a_while(world, checker, NOTICE)) == [Rule.DEADLINE]


def test_pods_that_a_budget_selects_may_stay_and_a_hook_may_have_come_late(world, checker):
    world.pods("web-1", minAvailable=1)
    warned(world, checker)
    assert a_while(world, checker, NOTICE - IN_GOOD_TIME) == []
    world.waiting.add((GROUP, HOOK, INSTANCE))
    assert checker.after_event(world) == []
    assert a_while(world, checker, IN_GOOD_TIME) == []


@pytest.mark.parametrize("excuse", ["faults", "no policy", "ended before", "forced hook"])
def test_a_deadline_is_missed_for_a_reason(world, checker, excuse):
    if excuse == "forced hook":
        with_policy(world, force=True)
        world.waiting.add((GROUP, HOOK, INSTANCE))
    else:
        world.pods("web-1")
    world.faultless = excuse != "faults"
    if excuse == "no policy":
        world.policies = policies()
        world.policies = replace(world.policies, policies=())
    warned(world, checker)
    if excuse == "ended before":
        world.ended.add(INSTANCE)
        assert a_while(world, checker, 60) == []
    assert a_while(world, checker, NOTICE) == []
