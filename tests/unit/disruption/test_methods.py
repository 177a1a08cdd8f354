"""Expiration, drift and emptiness: rows K1, K6, K7, K15 and K16 of docs/features.md."""

from datetime import timedelta

import pytest

from leeward.disruption.annotations import annotation_changes
from leeward.disruption.command import CommandDecision, MethodName
from leeward.disruption.methods import ORDER
from leeward.disruption.plan import plan_disruption
from leeward.model.launch import LaunchSettings
from leeward.policy.document import NO_DISRUPTION
from tests.fakes.builders import pausing
from tests.unit.disruption.fleet import NOON, ZONES, a_budget, a_fleet, a_policy, rules

EMPTINESS, EXPIRATION, DRIFT = MethodName.EMPTINESS, MethodName.EXPIRATION, MethodName.DRIFT
SINCE = {"leeward.dev/empty-since": "2026-05-01T11:00:00Z"}
WEEK = a_policy(disruption=rules(expire_after=timedelta(days=7)))
NEW_IMAGE = LaunchSettings(image="ami-2")
OLD = {"image": "ami-1"}


def plan(fleet, only=None):
    return plan_disruption(fleet.snapshot(), only=only)


def reason(fleet, node, method):
    return plan(fleet).verdicts[node][method].reason


def nodes_of(fleet, method=None):
    return [command.nodes for command in plan(fleet, method).commands]


# emptiness


def test_all_empty_nodes_are_removed_in_one_command():
    fleet = a_fleet().node("n1").node("n2").node("n3").pod("a", "n3", cpu="1").daemon("logs")
    found = plan(fleet)
    assert (found.method, found.commands[0].nodes, found.commands[0].decision) == (
        EMPTINESS,
        ("n1", "n2"),
        CommandDecision.DELETE,
    )
    assert found.commands[0].savings == pytest.approx(0.12)
    assert found.commands[0].cost == 0


@pytest.mark.parametrize(
    ("pod", "empty"),
    [
        ({"phase": "Succeeded"}, True),
        ({"leaving": True}, True),
        ({"leaving": True, "owner": "StatefulSet"}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}, "owner": None}, True),
        ({"owner": "DaemonSet"}, True),
        ({}, False),
        ({"phase": "Pending"}, False),
    ],
    ids=["finished", "leaving", "leaving and coming back", "static", "daemon", "ordinary", "initialising"],
)
def test_which_pods_keep_a_node_from_being_empty(pod, empty):
    fleet = a_fleet().node("n1").pod("a", "n1", **pod)
    assert bool(nodes_of(fleet, EMPTINESS)) is empty


def test_the_time_counts_from_the_annotation_and_begins_now_without_it():
    policy = a_policy(disruption=rules(consolidate_after=timedelta(hours=1)))
    assert nodes_of(a_fleet(policy).node("n1", annotations=SINCE), EMPTINESS) == [("n1",)]
    early = {"leeward.dev/empty-since": "2026-05-01T11:30:00Z"}
    assert reason(a_fleet(policy).node("n1", annotations=early), "n1", EMPTINESS) == (
        "it is empty, since 2026-05-01T11:30:00Z: 1800 s of consolidateAfter are left"
    )
    assert "since seen just now: 3600 s" in reason(a_fleet(policy).node("n1"), "n1", EMPTINESS)


def test_the_time_counts_from_the_last_pod_that_ran_since_and_from_no_daemon():
    """Between two observations a short job comes and goes, and the annotation stays."""
    job = {"phase": "Succeeded", "started": "2026-05-01T11:57:00Z", "ended": "2026-05-01T11:59:30Z", "owner": "Job"}
    fleet = a_fleet(a_policy(disruption=rules(consolidate_after=timedelta(minutes=10))))
    fleet.node("n1", annotations=SINCE).pod("job", "n1", **job).node("n2", annotations=SINCE)
    fleet.pod("logs", "n2", started="2026-05-01T11:59:00Z", owner="DaemonSet")
    assert nodes_of(fleet, EMPTINESS) == [("n2",)]
    assert reason(fleet, "n1", EMPTINESS) == (
        "it is empty, since 2026-05-01T11:59:30Z: 570 s of consolidateAfter are left"
    )


def test_a_time_that_is_yet_to_come_counts_as_now_and_keeps_no_node_for_ever():
    """A clock was ahead when it was written; the next observation writes the present time."""
    policy = a_policy(disruption=rules(consolidate_after=timedelta(minutes=10)))
    fleet = a_fleet(policy).node("n1", annotations={"leeward.dev/empty-since": "2027-01-01T00:00:00Z"})
    assert "since 2026-05-01T12:00:00Z: 600 s" in reason(fleet, "n1", EMPTINESS)
    (change,) = annotation_changes(fleet.snapshot(), NOON)
    assert change.set["leeward.dev/empty-since"] == "2026-05-01T12:00:00Z"


@pytest.mark.parametrize(
    ("ends", "left"),
    [("2026-05-01T11:55:00Z", 300), ("2026-05-01T12:00:20Z", 600), ("2026-05-01T11:00:00Z", 0)],
    ids=["grace has ended", "about to end", "ended long ago"],
)
def test_the_end_of_a_pod_that_is_being_deleted_counts(ends, left):
    fleet = a_fleet(a_policy(disruption=rules(consolidate_after=timedelta(minutes=10))))
    fleet.node("n1", annotations={"leeward.dev/empty-since": "2026-05-01T11:00:00Z"}).pod("a", "n1", leaving=True)
    fleet.pods[-1]["metadata"]["deletionTimestamp"] = ends
    if left:
        assert f": {left} s of consolidateAfter are left" in reason(fleet, "n1", EMPTINESS)
    else:
        assert nodes_of(fleet, EMPTINESS) == [("n1",)]


def test_a_node_on_which_a_pod_will_land_is_not_empty():
    fleet = a_fleet().node("n1").pod("waiting", cpu="1")
    assert nodes_of(fleet) == []
    assert "pod shop/waiting has no node and will land there" in reason(fleet, "n1", EMPTINESS)


@pytest.mark.parametrize(
    ("changes", "settings", "reported"),
    [
        ({"consolidation_policy": "Never"}, {}, "policy web says consolidationPolicy Never"),
        ({"consolidate_after": None}, {}, "policy web says consolidateAfter Never"),
        ({}, {"emptiness": False}, "emptiness is switched off for the cluster"),
    ],
)
def test_empty_nodes_stay_where_that_is_switched_off(changes, settings, reported):
    fleet = a_fleet(a_policy(disruption=rules(**changes)), **settings).node("n1")
    assert nodes_of(fleet) == []
    assert reason(fleet, "n1", EMPTINESS) == reported


def test_a_group_keeps_its_minimum_of_empty_nodes():
    fleet = a_fleet().group("web", minimum=1).node("n1").node("n2")
    assert nodes_of(fleet) == [("n1",)]
    assert reason(fleet, "n2", EMPTINESS) == "its group web is at its MinSize of 1"


def test_budgets_hold_back_empty_nodes_of_a_zone():
    policy = a_policy(disruption=rules(budgets=(a_budget(1, zone=ZONES[0]), a_budget(3))))
    fleet = a_fleet(policy)
    for number, zone in enumerate([ZONES[0], ZONES[0], ZONES[1], ZONES[1], ZONES[1]]):
        fleet.node(f"n{number}", zone=zone)
    assert nodes_of(fleet) == [("n0", "n2", "n3")]
    assert reason(fleet, "n1", EMPTINESS) == "the budgets of policy web allow no more Empty nodes in us-east-1a now"


@pytest.mark.parametrize(("policy", "goes"), [("WhenEmpty", True), ("WhenEmptyOrUnderutilized", False)])
def test_do_not_consolidate_keeps_an_empty_node_where_emptying_is_a_part_of_consolidation(policy, goes):
    kept = {"karpenter.sh/do-not-consolidate": "true"}
    fleet = a_fleet(a_policy(disruption=rules(consolidation_policy=policy))).node("n1", annotations=kept)
    assert bool(nodes_of(fleet)) is goes


# expiration


def test_expired_nodes_come_before_anything_else_the_longest_expired_first():
    fleet = a_fleet(WEEK).node("n1", created="2026-04-20T00:00:00Z").node("n2", created="2026-04-02T00:00:00Z")
    fleet.node("n3", created="2026-04-30T12:00:00Z")
    for number in (1, 2, 3):
        fleet.pod(f"p{number}", f"n{number}", cpu="1500m")
    found = plan(fleet)
    assert (found.method, [command.nodes for command in found.commands]) == (EXPIRATION, [("n2",), ("n1",)])
    assert {command.decision for command in found.commands} == {CommandDecision.REPLACE}
    assert found.verdicts["n3"][EXPIRATION].reason == "it expires in 144h"
    assert found.verdicts["n2"][EXPIRATION].reason.startswith("it expired 540h ago; a new node of web will")


def test_an_expired_node_whose_pods_fit_elsewhere_is_deleted_unless_its_group_is_at_its_minimum():
    fleet = a_fleet(WEEK).node("n1").node("n2", created="2026-05-01T00:00:00Z")
    fleet.pod("a", "n1", cpu="300m").pod("b", "n2", cpu="300m")
    assert [command.decision for command in plan(fleet, EXPIRATION).commands] == [CommandDecision.DELETE]
    fleet.groups["web"]["min"] = 2
    (command,) = plan(fleet, EXPIRATION).commands
    assert [(one.group, one.zones) for one in command.replacements] == [("web", (ZONES[0],))]


def test_budgets_pace_expiration():
    policy = a_policy(disruption=rules(expire_after=timedelta(days=7), budgets=(a_budget(2),)))
    fleet = a_fleet(policy)
    for number in range(5):
        fleet.node(f"n{number}").pod(f"p{number}", f"n{number}", cpu="1500m")
    assert len(plan(fleet).commands) == 2


def test_expiration_is_off_by_default_and_by_switch():
    assert reason(a_fleet().node("n1"), "n1", EXPIRATION) == "nodes of policy web do not expire (expireAfter Never)"
    assert "switched off" in reason(a_fleet(WEEK, expiration=False).node("n1"), "n1", EXPIRATION)


# drift


def test_a_drifted_node_is_replaced_by_its_own_group():
    fleet = a_fleet().group("web", launch=NEW_IMAGE).node("n1", instance=OLD).pod("a", "n1", cpu="1500m")
    found = plan(fleet)
    assert (found.method, found.commands[0].replacements[0].group) == (DRIFT, "web")
    assert found.verdicts["n1"][DRIFT].reason == "it has drifted in ami; a new node of web will take its place"


def test_a_group_whose_new_nodes_would_drift_as_well_is_not_rolled():
    policy = a_policy(disruption=rules(), requirements=())
    fleet = a_fleet(policy).group("web", launch=NEW_IMAGE).node("n1", instance=OLD).pod("a", "n1")
    fleet.policies = (_wanting(labels={"team": "web"}),)
    assert nodes_of(fleet, DRIFT) == []
    assert reason(fleet, "n1", DRIFT) == (
        "it has drifted in ami, labels; a new node of web would drift as well in label team=web: change policy web, or "
        "what web launches; drift or leeward upgrade start web then replaces its nodes"
    )


def _wanting(**node):
    from leeward.policy.document import DesiredNode

    return a_policy(disruption=rules(), node=DesiredNode(**node))


def test_the_oldest_drift_comes_first():
    fleet = a_fleet(a_policy(disruption=rules(budgets=(a_budget(1),)))).group("web", launch=NEW_IMAGE)
    for name, since in (("n1", "2026-05-01T11:00:00Z"), ("n2", "2026-04-30T11:00:00Z")):
        fleet.node(name, instance=OLD, annotations={"leeward.dev/drifted-since": since})
        fleet.pod(f"p{name}", name, cpu="1500m")
    assert nodes_of(fleet) == [("n2",)]


@pytest.mark.parametrize("off", ["policy", "cluster"])
def test_drift_can_be_switched_off(off):
    policy = a_policy(disruption=rules(drift=off != "policy"))
    fleet = a_fleet(policy, drift=off != "cluster").group("web", launch=NEW_IMAGE).node("n1", instance=OLD)
    assert nodes_of(fleet.pod("a", "n1"), DRIFT) == []


# all


def test_every_node_has_a_verdict_of_every_method_in_their_order():
    fleet = a_fleet().node("n1").node("n2", group="web", lifecycle="Terminating:Wait").pod("a", "n1")
    for verdicts in plan(fleet).verdicts.values():
        assert list(verdicts) == [method.name for method in ORDER]
        assert all(verdict.reason for verdict in verdicts.values())


def test_a_paused_cluster_does_nothing():
    fleet = a_fleet(WEEK).having(policies=pausing(a_fleet(WEEK).snapshot().policies)).node("n1")
    assert nodes_of(fleet) == []
    reasons = {verdict.reason for verdict in plan(fleet).verdicts["n1"].values()}
    assert reasons == {"cluster blue is paused: game day"}


def test_a_pause_of_another_group_stops_nothing():
    written = a_fleet(WEEK).snapshot().policies
    fleet = a_fleet(WEEK).having(policies=pausing(written, group="other")).node("n1")
    assert nodes_of(fleet) == nodes_of(a_fleet(WEEK).node("n1")) != []


# without a disruption section


def test_nothing_is_planned_for_a_policy_without_a_disruption_section():
    """Nodes that are empty, drifted and years old stay, and each method says why."""
    fleet = a_fleet(a_policy(disruption=NO_DISRUPTION)).node("n1", annotations=SINCE).node("n2", annotations=SINCE)
    found = plan(fleet)
    assert found.commands == ()
    reasons = {verdict.reason for verdicts in found.verdicts.values() for verdict in verdicts.values()}
    assert reasons == {"policy web has no disruption section"}
