"""What runs remember: a command whose new node did not serve is not proposed again while its inputs are the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.controller import claim, remember
from leeward.disruption.observation import with_records
from leeward.disruption.plan import plan_disruption, revalidated
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.record import LONGEST_COOLDOWN, MOST_FAILED, DisruptionOutcome, LaunchedNode
from leeward.model.instance import LaunchAttributes
from leeward.model.launch import LaunchSettings
from tests.fakes.clock import FakeClock
from tests.fakes.disruptions import FakeDisruptions, a_disruption
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules
from tests.unit.drift.test_evidence import launching, member

TAINT = {"key": "dedicated", "effect": "NoSchedule"}


class NoUpgrades:
    """The table has none."""

    def read(self, group):
        del group


def wasteful(cpu="400m", launch="", **small):
    """An expensive node, whose pod fits a small one. `launch`: the user data of the small group."""
    fleet = a_fleet(now=small.pop("now", NOON)).group("web", "large")
    fleet.group("batch", "small", launch=LaunchSettings(user_data=launch), **small)
    return fleet.node("n1").pod("a", "n1", cpu=cpu)


def seen(fleet, record):
    return with_records(fleet.snapshot(), NoUpgrades(), record)


def claimed(fleet, last=None):
    snapshot = seen(fleet, last)
    return claim(plan_disruption(snapshot), snapshot, last, FakeDisruptions(), FakeClock(fleet.now))


def failed(record, fleet, **node):
    """The record after the second validation, with a new node that has joined."""
    place = LaunchedNode(command=0, replacement=0, group="batch", zone="us-east-1a", subnet="subnet-us-east-1a")
    fleet.node("new", group="batch", **node)
    record = replace(record, launched={"i-new": place})
    return revalidated(record, seen(fleet, record), "leeward")


def ended(record):
    return replace(record.closed(DisruptionOutcome.GIVEN_UP, "", NOON), cooldowns={})


@pytest.fixture
def misread():
    """The record of a run whose new node has a taint that its template does not show."""
    fleet = wasteful()
    record = claimed(fleet)
    return ended(failed(record, fleet, taints=[TAINT]))


def test_a_command_whose_new_node_does_not_take_the_pods_is_not_proposed_again(misread):
    assert list(misread.dropped) == ["0"]
    plan = plan_disruption(seen(wasteful(), misread))
    assert plan.commands == ()
    assert (
        "a new node of batch is not tried again: run 1 launched it"
        in plan.verdicts["n1"][MethodName.CONSOLIDATION].reason
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"cpu": "300m"},
        {"launch": "eA=="},
        {"labels": {"team": "a"}},
        {"now": NOON + LONGEST_COOLDOWN},
    ],
    ids=["other pods", "another template", "another label", "a week later"],
)
def test_it_is_proposed_again_when_its_inputs_change_or_after_a_week(misread, changed):
    assert plan_disruption(seen(wasteful(**changed), misread)).commands


def test_it_outlives_the_runs_after_it(misread):
    other = wasteful()
    other.group("team", "medium").node("n2", group="team")
    later = claimed(other, last=misread)
    assert (later.number, later.commands[0].nodes, later.failed) == (2, ("n2",), misread.failed)


def test_a_new_node_that_serves_leaves_nothing_to_remember():
    fleet = wasteful()
    record = failed(claimed(fleet), fleet)
    assert (record.dropped, record.failed) == ({}, {})


def test_what_passes_by_itself_is_not_remembered():
    """An opt-out, a budget, a window: the same command may hold in an hour."""
    fleet = wasteful()
    record = claimed(fleet)
    fleet.pod("b", "n1", cpu="1m", annotations={"karpenter.sh/do-not-disrupt": "true"})
    record = failed(record, fleet)
    assert (list(record.dropped), record.failed) == (["0"], {})


def test_what_failed_before_anything_was_launched_is_not_remembered():
    fleet = wasteful()
    record = claimed(fleet)
    fleet.pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    record = revalidated(record, seen(fleet, record), "leeward")
    assert (list(record.dropped), record.failed) == (["0"], {})


def test_an_expired_node_is_not_replaced_again_and_again_either():
    policy = a_policy(disruption=rules(expire_after=timedelta(days=7)))
    fleet = a_fleet(policy).group("batch", "medium").node("n1", group="batch").pod("a", "n1", cpu="400m")
    record = ended(failed(claimed(fleet), fleet, taints=[TAINT], created="2026-05-01T11:59:00Z"))
    again = a_fleet(policy).group("batch", "medium").node("n1", group="batch").pod("a", "n1", cpu="400m")
    plan = plan_disruption(seen(again, record))
    assert (plan.commands, "is not tried again" in plan.verdicts["n1"][MethodName.EXPIRATION].reason) == ((), True)


def test_failed_commands_are_bounded_and_the_oldest_go_first():
    record = a_disruption(launched={"i-9": LaunchedNode(command=0, replacement=0, group="web-b")})
    for number in range(MOST_FAILED + 3):
        command = replace(record.commands[0], inputs=f"inputs-{number}")
        record = replace(record, commands=(command, *record.commands[1:])).remember_failed({0: "why"}, NOON)
    assert (len(record.failed), "inputs-0" in record.failed, f"inputs-{MOST_FAILED + 2}" in record.failed) == (
        MOST_FAILED,
        False,
        True,
    )


def test_a_drifted_node_stays_where_its_replacement_drifts_in_the_same_field():
    """The template names an image, and an override launches another."""
    fleet = member(launching(alias="resolve:ssm:/golden", look=LaunchAttributes(tags={"a": "b"})), "n1")
    fleet.instances["i-n1"]["fields"]["look"] = LaunchAttributes(tags={"a": "c"})
    fleet.groups["web"]["fields"] = {"tags": {"a": "b"}, "propagated": frozenset({"a"})}
    fleet.pod("p", "n1", cpu="1500m")
    record = claimed(fleet)
    assert (record.method, record.wanted["web"].since) == (MethodName.DRIFT, NOON)
    fleet.now = NOON + timedelta(minutes=3)
    shown = {"look": LaunchAttributes(tags={"a": "c"}), "launched": NOON + timedelta(minutes=1)}
    member(fleet, "new", instance=shown)
    place = LaunchedNode(command=0, replacement=0, group="web", zone="us-east-1a", subnet="subnet-us-east-1a")
    record = replace(record, launched={"i-new": place})
    record = revalidated(record, seen(fleet, record), "leeward")
    assert "new was launched after this was wanted" in record.dropped["0"]
    assert len(record.wanted["web"].proofs) == 1
    fleet.nodes.pop()
    fleet.instances.pop("i-new")
    assert plan_disruption(seen(fleet, ended(record)), only=MethodName.DRIFT).commands == ()


def test_the_planner_writes_what_groups_launch_now_into_the_record_of_the_last_run():
    fleet, table = member(launching(), "n1"), FakeDisruptions()
    state = PlanningState(fleet.snapshot())
    for record in (None, a_disruption()):
        remember(state, record, table)
    assert table.records == {}, "no run yet, and an open one"
    table.records["blue"] = last = ended(a_disruption(version=1))
    remember(state, last, table)
    assert table.records["blue"].wanted["web"].since == NOON
    remember(PlanningState(seen(fleet, table.records["blue"])), table.records["blue"], table)
    assert table.records["blue"].version == 2, "nothing has changed"
