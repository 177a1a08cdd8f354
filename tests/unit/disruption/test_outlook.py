"""Runs of voluntary disruption until nothing is left to do: the end state, and how time passes until then."""

from datetime import timedelta

import pytest

from leeward.disruption.command import CommandDecision, MethodName
from leeward.disruption.outlook import until_done
from leeward.model.instance import LaunchAttributes
from leeward.model.launch import LaunchSettings
from leeward.model.times import parse_instant
from leeward.policy.document import Window
from tests.unit.disruption.fleet import NOON, a_budget, a_fleet, a_policy, rules

NEW, OLD = LaunchSettings(image="ami-2", look=LaunchAttributes(profile="nodes")), {"image": "ami-1"}
NINE_TO_FIVE = Window(schedule="0 9 * * *", duration=timedelta(hours=8))


def half_empty(nodes, policy=None, **group):
    fleet = a_fleet(*([policy] if policy else ())).group("web", "large", **group)
    for number in range(nodes):
        fleet.node(f"n{number}", type="large").pod(f"p{number}", f"n{number}", cpu="900m")
    return fleet


def in_turns(**more):
    return a_policy(disruption=rules(budgets=(a_budget(1),), cooldown=timedelta(minutes=10), **more))


def price(snapshot):
    return sum(snapshot.price_of(node) for node in snapshot.nodes)


def test_budgets_let_one_node_go_at_a_time_and_the_end_is_the_same_as_without_them():
    outlook = until_done(half_empty(8, in_turns()).snapshot())
    assert outlook.finished
    assert [len(run.after.nodes) for run in outlook.runs] == [7, 6, 5, 4, 3, 2]
    assert len(until_done(half_empty(8).snapshot()).end.nodes) == 2
    assert all(not verdict.stays or verdict.reason for by in outlook.last.verdicts.values() for verdict in by.values())


def test_the_price_of_the_end_is_that_of_now_less_what_the_commands_save():
    fleet = half_empty(5, in_turns()).group("small", "medium").pod("more", "n0", cpu="500m")
    snapshot = fleet.snapshot()
    outlook = until_done(snapshot)
    saved = sum(command.savings for run in outlook.runs for command in run.plan.commands)
    assert price(outlook.end) == pytest.approx(price(snapshot) - saved)
    assert any(command.replacements for run in outlook.runs for command in run.plan.commands)


def test_every_pod_is_somewhere_and_no_node_is_asked_for_more_than_it_has():
    outlook = until_done(half_empty(9, in_turns()).daemon("logs", cpu="100m").group("small", "medium").snapshot())
    end = outlook.end
    names = {node.name for node in end.nodes}
    pods = {pod.key: pod.node for pod in end.pods if not pod.of_daemon_set}
    assert len(pods) == 9
    assert set(pods.values()) <= names
    specs = {spec.name: spec for spec in end.node_specs}
    assert set(specs) == names
    for name, spec in specs.items():
        assert sum(pod.needs.asked("cpu") for pod in end.pod_specs if pod.node == name) <= spec.allocatable["cpu"]


def test_a_node_that_comes_has_the_daemon_pods_of_one_and_is_counted_in_its_group():
    fleet = a_fleet(a_policy(disruption=rules())).group("web", "huge").group("small", "small")
    fleet.node("n1", type="huge").pod("p", "n1", cpu="500m").daemon("logs", cpu="100m")
    (run,) = until_done(fleet.snapshot()).runs
    assert [command.decision for command in run.plan.commands] == [CommandDecision.REPLACE]
    (node,) = run.after.nodes
    assert (node.name, run.after.type_of(node), run.after.group_of(node).name) == ("new-small-1", "small", "small")
    assert sorted(pod.key for pod in run.after.pod_specs if pod.node == node.name) == [
        "shop/logs-new-small-1",
        "shop/p",
    ]
    assert {name: (group.desired, len(group.instances)) for name, group in run.after.groups.items()} == {
        "web": (0, 0),
        "small": (1, 1),
    }


def test_drifted_nodes_are_replaced_once_each_and_their_replacements_are_in_order():
    policy = in_turns(drift=True, consolidation_policy="Never")
    fleet = a_fleet(policy).group("web", "medium", launch=NEW, minimum=3)
    for number in range(3):
        fleet.node(f"n{number}", instance=OLD).pod(f"p{number}", f"n{number}", cpu="1500m")
    outlook = until_done(fleet.snapshot())
    assert outlook.finished
    assert [run.plan.method for run in outlook.runs] == [MethodName.DRIFT] * 3
    assert sorted(node.name for node in outlook.end.nodes) == ["new-web-1", "new-web-2", "new-web-3"]
    assert outlook.end.groups["web"].desired == 3


def test_a_group_ends_at_its_minimum():
    assert len(until_done(half_empty(6, minimum=4).snapshot()).end.nodes) == 4


def test_a_node_that_is_empty_goes_after_it_was_so_for_long_enough():
    policy = a_policy(disruption=rules(consolidate_after=timedelta(hours=2)))
    kept = {"leeward.dev/do-not-disrupt": "true"}
    fleet = a_fleet(policy).node("n1").node("n2").pod("a", "n2", cpu="1500m", annotations=kept)
    outlook = until_done(fleet.snapshot())
    assert [(run.plan.method, run.before.now) for run in outlook.runs] == [
        (MethodName.EMPTINESS, NOON + timedelta(hours=2))
    ]


@pytest.mark.parametrize(
    ("closed", "runs", "at"),
    [
        (NINE_TO_FIVE, [1], [NOON + timedelta(hours=5)]),
        (Window(schedule="0 0 1 1 *", duration=timedelta(days=300)), [], []),
    ],
    ids=["until the evening", "for months"],
)
def test_a_window_that_is_closed_is_awaited_for_a_week_at_most(closed, runs, at):
    budgets = (a_budget(0, window=closed),)
    outlook = until_done(half_empty(2, a_policy(disruption=rules(budgets=budgets))).snapshot())
    assert [len(run.after.nodes) for run in outlook.runs] == runs
    assert [run.before.now for run in outlook.runs] == at


def test_the_window_of_a_pod_is_awaited():
    fleet = half_empty(1).node("n9", type="large")
    fleet.pod("late", "n9", cpu="900m", annotations={"leeward.dev/disruption-window": "0 20 * * */2h"})
    fleet.pod("never", "n0", cpu="100m", annotations={"leeward.dev/do-not-disrupt": "true"})
    (run,) = until_done(fleet.snapshot()).runs
    assert (run.plan.commands[0].nodes, run.before.now) == (("n9",), parse_instant("2026-05-01T20:00:00Z"))


def test_the_runs_are_bounded_and_what_is_left_is_said():
    outlook = until_done(half_empty(8, in_turns()).snapshot(), most=2)
    assert (outlook.finished, len(outlook.runs), len(outlook.end.nodes)) == (False, 2, 6)
    assert outlook.last.commands


def test_one_method_alone_acts_where_it_was_asked_for():
    outlook = until_done(half_empty(4).snapshot(), only=MethodName.DRIFT)
    assert (outlook.runs, outlook.finished) == ((), True)
