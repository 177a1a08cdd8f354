"""Events on nodes that stay: which reason, which sentence, how often (rows K3 and K11 of docs/features.md)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.blocked_nodes import DISRUPTION_BLOCKED, UNCONSOLIDATABLE, blocked_event, write_blocked_events
from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption
from leeward.disruption.planning_state import always
from leeward.model.pause import Pause, Pauses
from leeward.policy.document import NO_DISRUPTION, Window
from tests.fakes.system import FakeSystem
from tests.unit.disruption.fleet import NOON, a_budget, a_fleet, a_policy, rules


def reported(fleet, now=NOON, more=always):
    """(node, reason) of the Events that one decision writes."""
    system = FakeSystem()
    snapshot = fleet.snapshot()
    object.__setattr__(snapshot, "now", now)
    object.__setattr__(snapshot, "cluster", "blue")
    count = write_blocked_events(snapshot, plan_disruption(snapshot), more, system.ports.clusters)
    found = [(event.about, event.reason) for event in system.kubernetes.events]
    assert len(found) == count
    return found


def full(count, *policies):
    """Nodes of which none can be spared."""
    fleet = a_fleet(*policies)
    for number in range(count):
        fleet.node(f"n{number:03d}").pod(f"a{number}", f"n{number:03d}", cpu="1900m")
    return fleet


def the_event(fleet, name):
    """(reason, sentence) of the Event on the node, None where it gets none."""
    snapshot = fleet.snapshot()
    return blocked_event(snapshot, plan_disruption(snapshot), snapshot.node(name))


def test_a_node_that_consolidation_has_looked_at_is_unconsolidatable():
    reason, said = the_event(full(2), "n000")
    assert reason == UNCONSOLIDATABLE
    assert "pod shop/a0 has no other place" in said


def test_a_node_that_no_method_may_touch_is_blocked_with_what_blocks_it():
    fleet = full(1).node("kept").pod("b", "kept", annotations={"karpenter.sh/do-not-disrupt": "true"})
    reason, said = the_event(fleet, "kept")
    assert reason == DISRUPTION_BLOCKED
    assert "shop/b" in said


def test_every_node_gets_one_event_within_a_quarter_of_an_hour():
    times = [NOON + timedelta(minutes=5 * turn) for turn in range(3)]
    names = [name for now in times for name, _ in reported(full(9), now)]
    assert sorted(names) == [f"n{number:03d}" for number in range(9)]


def test_in_a_large_cluster_a_decision_shows_some_of_the_nodes_only():
    assert 20 < len(reported(full(250))) < 90


def test_out_of_time_it_stops():
    assert reported(full(250), more=lambda: False) == []


def test_nodes_of_groups_without_a_policy_and_terminating_nodes_get_no_event():
    tainted = [{"key": "leeward.dev/disrupted", "effect": "NoSchedule"}]
    fleet = a_fleet().node("gone", taints=tainted)
    times = [NOON + timedelta(minutes=5 * turn) for turn in range(3)]
    assert [reported(fleet, now) for now in times] == [[], [], []]


def reported_in_a_quarter_of_an_hour(policy):
    return [event for turn in range(3) for event in reported(full(2, policy), NOON + timedelta(minutes=5 * turn))]


def test_nodes_of_a_policy_without_a_disruption_section_get_no_event():
    assert reported_in_a_quarter_of_an_hour(a_policy(disruption=NO_DISRUPTION)) == []


@pytest.mark.parametrize(
    "switched_off",
    [{"consolidation_policy": "Never"}, {"consolidation_policy": "WhenEmpty"}, {"consolidate_after": None}],
)
def test_nodes_that_their_policy_does_not_consolidate_are_not_called_unconsolidatable(switched_off):
    policy = a_policy(disruption=rules(drift=False, expire_after=timedelta(days=900), **switched_off))
    assert reported_in_a_quarter_of_an_hour(policy) == []


def test_nodes_of_a_cluster_without_consolidation_are_not_called_unconsolidatable():
    assert the_event(a_fleet(consolidation=False).node("n000").pod("a", "n000"), "n000") is None


def test_nodes_that_the_operator_excludes_get_no_event():
    excluded = a_policy(disruption=rules(do_not_disrupt=True))
    assert reported_in_a_quarter_of_an_hour(excluded) == []


def test_nodes_of_a_paused_group_get_no_event():
    pause = Pause(by="ops", why="launch day", since=NOON, announced=NOON, group="web")
    snapshot = full(1).snapshot()
    policies = replace(snapshot.policies, pauses=Pauses(cluster="blue", pauses=(pause,)))
    snapshot = full(1).having(policies=policies).snapshot()
    assert blocked_event(snapshot, plan_disruption(snapshot), snapshot.node("n000")) is None


@pytest.mark.parametrize("how", [{"lifecycle": "Terminating:Wait"}, {"state": "shutting-down"}])
def test_a_node_that_is_leaving_gets_no_event(how):
    assert the_event(full(1).node("gone", **how).pod("b", "gone"), "gone") is None


def test_a_node_that_a_later_run_can_remove_is_not_called_unconsolidatable():
    """Both halves fit on one node: one of them is removed now, the other could have been."""
    fleet = a_fleet().node("n1").pod("a", "n1", cpu="500m").node("n2").pod("b", "n2", cpu="500m")
    snapshot = fleet.snapshot()
    plan = plan_disruption(snapshot)
    (removed,) = plan.commands[0].nodes
    stays = next(name for name in ("n1", "n2") if name != removed)
    assert "could be removed" in plan.verdicts[stays][MethodName.CONSOLIDATION].reason
    assert blocked_event(snapshot, plan, snapshot.node(stays)) is None


def test_a_node_that_there_was_no_time_to_evaluate_gets_no_event():
    snapshot = full(1).snapshot()
    plan = plan_disruption(snapshot, more=lambda: False)
    assert blocked_event(snapshot, plan, snapshot.node("n000")) is None


@pytest.mark.parametrize(
    "never",
    [
        a_budget(0),
        a_budget(0, percent=True),
        a_budget(0, reasons=("Underutilized",)),
        a_budget(0, zone="us-east-1a"),
    ],
)
def test_a_node_whose_budget_never_allows_it_is_not_called_unconsolidatable(never):
    fleet = full(1, a_policy(disruption=rules(budgets=(a_budget(10), never))))
    assert the_event(fleet, "n000") is None


@pytest.mark.parametrize(
    "passing",
    [
        a_budget(0, window=Window(schedule="0 9 * * *", duration=timedelta(hours=8))),
        a_budget(0, reasons=("Drifted",)),
        a_budget(0, zone="us-east-1b"),
    ],
)
def test_a_budget_that_allows_it_at_other_times_in_other_zones_or_for_this_reason_forbids_no_event(passing):
    fleet = full(1, a_policy(disruption=rules(budgets=(passing,))))
    reason, _ = the_event(fleet, "n000")
    assert reason == UNCONSOLIDATABLE


def test_a_node_is_not_called_blocked_by_a_pod_where_no_budget_ever_allows_it_anyway():
    fleet = full(0, a_policy(disruption=rules(budgets=(a_budget(0),))))
    fleet.node("kept").pod("b", "kept", annotations={"karpenter.sh/do-not-disrupt": "true"})
    assert the_event(fleet, "kept") is None
