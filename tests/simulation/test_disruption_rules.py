"""Each rule about disruption runs finds what breaks it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.disruption.command import Command, CommandDecision
from leeward.disruption.record import GONE, STAYED, DisruptionOutcome, LaunchedNode
from leeward.policy.document import Budget, DisruptionPolicy
from local.cluster.nodes import NodeSpec
from simulation.aws.books import Book
from simulation.aws.disruption_books import DisruptionBooks
from simulation.disruption_rules import STUCK
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP, ZONE, a_group
from tests.fakes.disruptions import a_disruption
from tests.simulation.view_stand_in import INSTANCE, NODE, World

MINE = {Rule.SPENT, Rule.DISRUPTION, Rule.RESTORED, Rule.STALE_TAINT}
GOES = (Command(decision=CommandDecision.DELETE, nodes=(NODE,), reason="empty"),)


def a_world(nodes=1, **record):
    """With a run that has begun now, and a budget of so many nodes."""
    world = World()
    rules = DisruptionPolicy(budgets=(Budget(nodes=nodes, percent=False),))
    chain = tuple(replace(one, disruption=rules) for one in world.policies.policies)
    world.policies = replace(world.policies, policies=chain)
    given = {
        "commands": GOES,
        "nodes": {NODE: INSTANCE},
        "members": {NODE: GROUP},
        "groups": (GROUP,),
        "began": datetime.fromtimestamp(world.now, UTC),
        "execution": "blue-3-1",
        "retry": None,
        "ends": {},
        "launched": {},
        "orders": {},
        "cooldowns": {},
    }
    world.disruptions, world.disrupting = {"blue": a_disruption(**{**given, **record})}, {"blue-3-1"}
    return world


def broken(world, checker=None):
    """Of the rules about runs, each once."""
    found = (checker or Checker()).at_the_end(world)
    return sorted({violation.rule for violation in found} & MINE)


def test_a_round_that_runs_within_its_budget_breaks_nothing():
    assert broken(a_world(requested=True)) == []


def test_more_nodes_than_the_budget_allows_are_found_when_their_terminations_are_requested():
    world = a_world(nodes=0)
    checker = Checker()
    assert broken(world, checker) == []
    world.disruptions["blue"] = replace(world.disruptions["blue"], requested=True)
    assert broken(world, checker) == [Rule.SPENT]
    assert broken(world, checker) == []  # reported once


@pytest.mark.parametrize(("zone", "found"), [(ZONE, [Rule.SPENT]), ("us-east-1f", [])])
def test_a_budget_of_a_zone_limits_the_nodes_there_and_no_others(zone, found):
    world = a_world(requested=True)
    budgets = (Budget(nodes=100), Budget(nodes=0, percent=False, zone=zone))
    chain = tuple(replace(one, disruption=DisruptionPolicy(budgets=budgets)) for one in world.policies.policies)
    world.policies = replace(world.policies, policies=chain)
    assert broken(world) == found


@pytest.mark.parametrize(("lifecycle", "found"), [("Terminating:Wait", []), ("Standby", [Rule.SPENT])])
def test_a_node_that_leaves_after_the_validation_takes_none_of_the_budget_away(lifecycle, found):
    """Half of three nodes are two; the third begins to leave while the two are tainted."""
    world = a_world(requested=True, members={NODE: GROUP, "node-b": GROUP})
    both = replace(GOES[0], nodes=(NODE, "node-b"))
    nodes = {NODE: INSTANCE, "node-b": "i-b"}
    world.disruptions["blue"] = replace(world.disruptions["blue"], commands=(both,), nodes=nodes)
    for name in ("b", "c"):
        world.cluster.add_node(NodeSpec(name=f"node-{name}", instance_id=f"i-{name}"))
    group = a_group(GROUP, INSTANCE, "i-b", "i-c")
    last = replace(group.instances[-1], lifecycle=lifecycle)
    world.groups = {GROUP: replace(group, instances=(*group.instances[:-1], last))}
    chain = tuple(
        replace(one, disruption=DisruptionPolicy(budgets=(Budget(nodes=50),))) for one in world.policies.policies
    )
    world.policies = replace(world.policies, policies=chain)
    assert broken(world) == found


def test_a_node_that_is_unavailable_already_counts_and_one_that_is_cordoned_does_not():
    world = a_world(requested=False)
    world.cluster.patch("nodes", NODE, {"spec": {"unschedulable": True}})
    world.disruptions["blue"] = replace(world.disruptions["blue"], requested=True)
    assert broken(world) == []


def test_a_run_without_an_execution_is_found_unless_it_cools_down_after_a_failure():
    world = a_world()
    world.disrupting = set()
    assert broken(world) == [Rule.DISRUPTION]
    soon = datetime.fromtimestamp(world.now, UTC) + timedelta(minutes=1)
    world.disruptions["blue"] = replace(world.disruptions["blue"], retry=soon)
    assert broken(world) == []


def test_a_round_that_does_not_come_to_its_end_is_found():
    world = a_world()
    world.clock.advance(seconds=STUCK + 1)
    assert broken(world) == [Rule.DISRUPTION]


def test_what_an_ended_round_has_not_returned_is_found():
    world = a_world()
    group = world.groups[GROUP]
    world.groups[GROUP] = replace(group, suspended=("AZRebalance",))
    assert broken(world) == []  # it holds the group
    ended = world.disruptions["blue"].closed(DisruptionOutcome.DONE, "done", datetime.fromtimestamp(world.now, UTC))
    world.disruptions["blue"] = ended
    assert broken(world) == [Rule.RESTORED]
    world.groups[GROUP] = replace(group, maximum=group.maximum + 1)
    assert broken(world) == [Rule.RESTORED]


def test_a_mark_is_the_rounds_as_long_as_it_is_open():
    world = a_world()
    world.taint()
    assert broken(world) == []
    world.disruptions["blue"] = world.disruptions["blue"].closed(
        DisruptionOutcome.DONE, "", datetime.fromtimestamp(world.now, UTC)
    )
    assert broken(world) == [Rule.STALE_TAINT]


def test_a_round_may_shrink_a_group_by_the_nodes_it_shows_and_no_further():
    book = Book()
    record = a_world().disruptions["blue"]
    books = DisruptionBooks({GROUP: book})
    books.wrote(record, replace(record, requested=True))
    book.paid()
    assert (book.least, book.most, book.overpaid) == (0, 0, 0)
    book.paid()
    assert book.overpaid == 1


@pytest.mark.parametrize(("end", "owed"), [(GONE, 0), (STAYED, 1)])
def test_a_launch_is_meant_to_stay_when_a_node_went_for_it_and_owed_when_none_did(end, owed):
    other, own = Book(), Book()
    record = a_world(launched={"i-9": LaunchedNode(command=0, replacement=0, group="web-b")}).disruptions["blue"]
    books = DisruptionBooks({GROUP: own, "web-b": other})
    other.launched()
    requested = replace(record, requested=True)
    books.wrote(record, requested)
    if end == GONE:
        own.paid()
    done = replace(requested, ends={INSTANCE: end})
    books.wrote(done, done.closed(DisruptionOutcome.DONE, "", record.began))
    assert (other.least, own.overpaid, own.most) == (owed, 0, 0)


@pytest.mark.parametrize(("end", "left"), [(GONE, 0), (STAYED, 2)])
def test_one_command_shrinks_the_group_whatever_becomes_of_the_launches_of_another(end, left):
    """One node is deleted, another one replaced by two. Where that one stays, its launches have to be offset, and the
    deletion has offset none of them.
    """
    commands = (*GOES, Command(decision=CommandDecision.REPLACE, nodes=("node-b",), reason="expired"))
    nodes = {NODE: INSTANCE, "node-b": "i-0b"}
    launched = {f"i-9{number}": LaunchedNode(command=1, replacement=number, group=GROUP) for number in range(2)}
    record = a_world(commands=commands, members=dict.fromkeys(nodes, GROUP), launched=launched).disruptions["blue"]
    record = replace(record, nodes=nodes)
    book = Book()
    books = DisruptionBooks({GROUP: book})
    for _ in launched:
        book.launched()
    requested = replace(record, requested=True)
    books.wrote(record, requested)
    for _ in range(2 if end == GONE else 1):
        book.paid()
    done = replace(requested, ends={INSTANCE: GONE, "i-0b": end})
    books.wrote(done, done.closed(DisruptionOutcome.DONE, "", record.began))
    for _ in range(left):
        book.paid()
    assert (book.least, book.most, book.overpaid) == (0, 0, 0)
    book.paid()
    assert book.overpaid == 1
