"""Nodes that pods have kept for longer than a day although their policy wants them gone: by namespace, and a metric."""

import json
from datetime import timedelta

import pytest

from leeward.disruption import telemetry
from leeward.disruption.blocked_nodes import long_blocked
from leeward.disruption.controller import PlannerResult
from leeward.disruption.planning_state import PlanningState
from leeward.model.times import format_instant
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules

OPT_OUT = {"karpenter.sh/do-not-disrupt": "true"}
DAYS = timedelta(days=1)


def at(before):
    return format_instant(NOON - before)


def blocked(fleet):
    return long_blocked(PlanningState(fleet.snapshot()))


def expiring(expired_for, **pod):
    """A node that expired so long ago, with one pod."""
    fleet = a_fleet(a_policy(disruption=rules(expire_after=10 * DAYS)))
    return fleet.node("n1", created=at(10 * DAYS + expired_for)).pod("a", "n1", **pod)


def test_an_opt_out_that_has_kept_an_expired_node_for_longer_than_a_day():
    assert blocked(expiring(2 * DAYS, annotations=OPT_OUT)) == {"shop": ("n1",)}


@pytest.mark.parametrize(("expired_for", "counts"), [(DAYS, True), (DAYS - timedelta(minutes=1), False)])
def test_the_day_begins_when_the_node_expires(expired_for, counts):
    assert bool(blocked(expiring(expired_for, annotations=OPT_OUT))) == counts


@pytest.mark.parametrize(
    ("window", "counts"), [("0 14 * * 6/3h", False), ("0 0 1 1 */1h", True), ("on Saturdays", True)]
)
def test_a_window_that_opens_within_a_week_is_no_obstacle(window, counts):
    assert bool(blocked(expiring(2 * DAYS, annotations={"leeward.dev/disruption-window": window}))) == counts


def test_it_begins_later_for_a_pod_that_came_later():
    fleet = expiring(9 * DAYS, annotations=OPT_OUT, started=at(timedelta(hours=3)))
    assert blocked(fleet) == {}


def test_a_pod_without_an_opt_out_keeps_no_node():
    assert blocked(expiring(9 * DAYS)) == {}


def test_a_node_that_no_policy_wants_gone_is_not_kept():
    assert blocked(a_fleet().node("n1").pod("a", "n1", annotations=OPT_OUT)) == {}


def test_a_list_beyond_the_limits_counts_like_an_opt_out():
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(65)]
    assert blocked(expiring(2 * DAYS, tolerations=many)) == {"shop": ("n1",)}


@pytest.mark.parametrize(("over_for", "counts"), [(2 * DAYS, True), (timedelta(hours=20), False)])
def test_a_finalizer_that_holds_a_pod_past_its_grace_counts_on_any_node(over_for, counts):
    fleet = a_fleet().node("n1").pod("a", "n1")
    fleet.pods[0]["metadata"] |= {"deletionTimestamp": at(over_for), "finalizers": ["example.com/hold"]}
    assert bool(blocked(fleet)) == counts


def test_log_and_metric_are_by_cluster(capsys):
    nodes = tuple(f"n{number}" for number in range(12))
    telemetry.decided(PlannerResult(blocked={"blue": {"shop": nodes, "web": ("n1",)}, "green": {}}))
    line, point = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["blocked"] == {
        "blue": {"shop": {"nodes": 12, "names": list(nodes[:10])}, "web": {"nodes": 1, "names": ["n1"]}}
    }
    assert (point["cluster"], point["service"], point["NodesBlockedByPods"]) == ("blue", "disruption", [12])
    assert point["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service", "cluster"]]
