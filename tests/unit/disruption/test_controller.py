"""fn disruption-planner over fakes: one run at a time, dead runs taken up again, clusters apart from each other."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.completion import reconcile_disruption
from leeward.disruption.controller import decide_once
from leeward.disruption.record import DisruptionOutcome
from leeward.errors import AccessDeniedError, ClusterUnreachableError, ThrottledError
from leeward.ports.kubernetes import Listed
from leeward.scheduling.world import World
from tests.cli.snapshots.disruption import a_node as a_raw_node
from tests.cli.snapshots.disruption import a_pod as a_raw_pod
from tests.fakes.builders import a_group, a_policy, an_instance, pausing, policies
from tests.fakes.disruptions import a_disruption
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.test_capacity_ledger import RECORD as OPEN_UPGRADE


@pytest.fixture
def system():
    """Two nodes of which one would do."""
    group = a_group("web-a", "i-n1", "i-n2")
    members = tuple(replace(one, type="m5.large") for one in group.instances)
    system = FakeSystem(
        instances=[replace(an_instance(one.id, spot=False), image="ami-1") for one in members],
        groups=[replace(group, instances=members, minimum=0)],
        written=policies(a_policy("web")),
    )
    system.kubernetes.raw = {
        Listed.NODES: [a_raw_node("n1"), a_raw_node("n2")],
        Listed.PODS: [a_raw_pod("p1", "n1"), a_raw_pod("p2", "n2")],
    }
    return system


def test_a_plan_becomes_a_run_and_its_execution_is_named_after_it(system):
    found = decide_once(system.ports)
    assert (found.disruptions, found.errors) == (["blue-1-1"], [])
    record = system.disruptions.records["blue"]
    assert (record.number, record.method.value, len(record.nodes)) == (1, "consolidation", 1)
    assert system.disruption_executions.running("blue-1-1")


def test_the_world_is_built_once_for_annotations_and_plan(system, monkeypatch):
    built = []

    class Counted(World):
        def __init__(self, *given, **named):
            built.append(1)
            super().__init__(*given, **named)

    monkeypatch.setattr("leeward.disruption.planning_state.World", Counted)
    assert decide_once(system.ports).disruptions == ["blue-1-1"]
    assert built == [1]


def test_while_a_run_is_open_no_other_is_planned(system):
    decide_once(system.ports)
    again = decide_once(system.ports)
    assert (again.disruptions, again.restarted) == ([], [])
    assert system.disruptions.records["blue"].number == 1


def test_who_is_second_to_write_starts_nothing(system):
    write = system.disruptions.write

    def beaten(record):
        write(replace(record, why="the other one"))
        return write(record)

    system.disruptions.write = beaten
    assert decide_once(system.ports).disruptions == []
    assert system.disruptions.records["blue"].why == "the other one"


def test_a_run_whose_execution_was_never_started_is_started(system):
    system.disruptions.write(a_disruption(cluster="blue", retry=None))
    assert decide_once(system.ports).restarted == ["blue-3-1"]


def test_a_run_whose_execution_is_closed_gets_the_next_one_from_the_first_starter(system):
    system.disruptions.write(a_disruption(cluster="blue", retry=None, execution="blue-3-1", attempt=1))
    system.disruption_executions.closed.add("blue-3-1")
    held, started = reconcile_disruption("blue", system.ports)
    assert (held, started) == (frozenset({"i-1", "i-2", "i-3"}), "blue-3-2")


def test_a_run_is_not_restarted_before_the_retry_time_of_its_failure(system):
    now = system.clock.now()
    system.disruptions.write(
        a_disruption(cluster="blue", execution="blue-3-1", attempt=1, retry=now + timedelta(minutes=2))
    )
    system.disruption_executions.closed.add("blue-3-1")
    assert reconcile_disruption("blue", system.ports)[1] is None
    system.clock.advance(seconds=121)
    assert reconcile_disruption("blue", system.ports)[1] == "blue-3-2"


def test_what_could_not_be_returned_is_returned_by_the_sweeper(system):
    record = a_disruption(cluster="blue", groups=("web-a",), suspended=("web-a",))
    system.disruptions.write(record.closed(DisruptionOutcome.DONE, "done", system.clock.now()))
    system.group_changes.suspend("web-a", "AZRebalance")
    assert reconcile_disruption("blue", system.ports) == (frozenset(), None)
    after = system.disruptions.records["blue"]
    assert after.suspended == ()
    assert system.groups.by_name["web-a"].suspended == ()


def test_azrebalance_stays_suspended_while_a_zonal_shift_lasts_and_is_resumed_afterwards(system):
    record = a_disruption(cluster="blue", groups=("web-a",), suspended=("web-a",))
    system.disruptions.write(record.closed(DisruptionOutcome.DONE, "done", system.clock.now()))
    system.group_changes.suspend("web-a", "AZRebalance")
    system.shift("us-east-1b")
    reconcile_disruption("blue", system.ports)
    assert system.disruptions.records["blue"].suspended == ("web-a",)
    assert system.groups.by_name["web-a"].suspended == ("AZRebalance",)
    system.shift()
    reconcile_disruption("blue", system.ports)
    assert system.disruptions.records["blue"].suspended == ()
    assert system.groups.by_name["web-a"].suspended == ()


def test_a_group_that_is_being_upgraded_keeps_no_other_group_waiting(system):
    """An upgrade may wait for days; each of the two has changed the sizes of its own groups."""
    system.groups.by_name["web-b"] = replace(system.groups.by_name["web-a"], name="web-b")
    record = a_disruption(cluster="blue", suspended=("web-a", "web-b"))
    system.disruptions.write(record.closed(DisruptionOutcome.DONE, "done", system.clock.now()))
    for name in ("web-a", "web-b"):
        system.group_changes.suspend(name, "AZRebalance")
    system.upgrades.write(replace(OPEN_UPGRADE, group="web-b", execution="web-b-1", version=0))
    reconcile_disruption("blue", system.ports)
    after = system.disruptions.records["blue"]
    assert after.suspended == ("web-b",)
    assert [system.groups.by_name[name].suspended for name in ("web-a", "web-b")] == [(), ("AZRebalance",)]


def test_a_paused_cluster_is_not_looked_at(system):
    system.clusters.policies_of["blue"] = pausing(system.clusters.policies("blue"))
    assert decide_once(system.ports).paused == ["blue"]


@pytest.mark.parametrize("error", [ClusterUnreachableError("no answer"), AccessDeniedError("list nodes: forbidden")])
def test_a_cluster_that_cannot_be_read_is_named_and_gets_no_run(system, error):
    system.kubernetes.fail("budgets", error)
    found = decide_once(system.ports)
    assert found.errors == [f"blue: {type(error).__name__}: {error}"]
    assert system.disruptions.records == {}


def test_one_throttled_call_is_no_reason_to_wait_for_the_next_schedule(system):
    system.kubernetes.fail("budgets", ThrottledError("too many requests"), times=2)
    found = decide_once(system.ports)
    assert (found.disruptions, found.errors) == (["blue-1-1"], [])
