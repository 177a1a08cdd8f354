"""New nodes of a run that are kept from Cluster Autoscaler, once it is no longer open."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from leeward.disruption.command import Command, CommandDecision, MethodName, PlannedReplacement
from leeward.disruption.completion import end, give_up
from leeward.disruption.record import DisruptionOutcome, DisruptionRecord, LaunchedNode
from leeward.disruption.replacements import protect_launched
from leeward.disruption.run import DisruptionNext, DisruptionRun
from leeward.model.instance import CapacityType
from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem

OLD, NEW, THEIRS, OTHER = "i-0abc", "i-0def", "i-0aaa", "i-0bbb"
HELD = {SCALE_DOWN_DISABLED: "true"}
KEPT = {**HELD, KEPT_FOR: "disruption:3"}
RUN = DisruptionRun(cluster=CLUSTER, number=3, next=DisruptionNext.END, execution="blue-3-1")
FIRST = LaunchedNode(command=0, replacement=0, group=GROUP, zone="us-east-1a", subnet="subnet-a")


def a_record(**given):
    new = PlannedReplacement(group=GROUP, types=("m5.large",), zones=("us-east-1a",), capacity=CapacityType.ON_DEMAND)
    replaced = Command(decision=CommandDecision.REPLACE, nodes=(f"node-{OLD}",), reason="drifted", replacements=(new,))
    fields = {
        "cluster": CLUSTER,
        "number": 3,
        "method": MethodName.DRIFT,
        "began": datetime(2026, 3, 2, 10, tzinfo=UTC),
        "execution": RUN.execution,
        "commands": (replaced,),
        "nodes": {f"node-{OLD}": OLD},
        "members": {f"node-{OLD}": GROUP},
        "groups": (GROUP,),
        "launched": {NEW: FIRST},
    }
    return DisruptionRecord(**{**fields, **given})


@pytest.fixture
def system():
    """An old node, a new one, one that others keep, and one of another group's upgrade that runs."""
    ids = (OLD, NEW, THEIRS, OTHER)
    found = FakeSystem(
        instances=map(an_instance, ids), groups=[a_group(GROUP, *ids)], nodes=[a_node(name) for name in ids]
    )
    put(found, THEIRS, HELD)
    return found


def put(system, instance, annotations):
    name = f"node-{instance}"
    system.kubernetes.by_name[name] = replace(system.kubernetes.by_name[name], annotations=annotations)


def notes(system, instance):
    return system.kubernetes.by_name[f"node-{instance}"].annotations


def all_notes(system):
    return [notes(system, name) for name in (OLD, NEW, THEIRS)]


def test_only_new_nodes_of_active_commands_are_protected_and_protection_by_others_stays(system):
    protect_launched(a_record(launched={NEW: FIRST, THEIRS: FIRST}), system.kubernetes.nodes(), system.ports.clusters)
    assert all_notes(system) == [{}, KEPT, HELD]
    put(system, NEW, {})
    protect_launched(a_record(dropped={"0": "too expensive"}), system.kubernetes.nodes(), system.ports.clusters)
    assert all_notes(system) == [{}, {}, HELD]


@pytest.mark.parametrize("ending", [end, give_up])
def test_the_end_of_a_run_unprotects_its_nodes_and_no_others(system, ending):
    put(system, NEW, KEPT)
    put(system, OTHER, {**HELD, KEPT_FOR: "disruption:4"})
    reported = ending is end
    system.disruptions.write(a_record(requested=reported, ends={OLD: "gone"} if reported else {}))
    after = ending(RUN, {}, system.ports)
    assert after.next is (DisruptionNext.DONE if reported else DisruptionNext.GIVEN_UP)
    assert all_notes(system) == [{}, {}, HELD]
    assert notes(system, OTHER)[KEPT_FOR] == "disruption:4"


def test_the_reconciler_leaves_those_of_the_open_run(system):
    put(system, NEW, KEPT)
    system.disruptions.write(a_record())
    system.disruption_executions.open.add(RUN.execution)
    assert reconcile_once(system.ports).restored == []
    assert notes(system, NEW) == KEPT


@pytest.mark.parametrize("left", ["ended", "the next one", "nothing"])
def test_the_reconciler_unprotects_those_of_any_other_run_and_nothing_else(system, left):
    put(system, NEW, KEPT)
    record = a_record(number=4 if left == "the next one" else 3)
    if left != "nothing":
        system.disruptions.write(
            record.closed(DisruptionOutcome.DONE, "done", system.clock.now()) if left == "ended" else record
        )
        system.disruption_executions.open.add(RUN.execution)
    assert reconcile_once(system.ports).restored == [f"node-{NEW}"]
    assert all_notes(system) == [{}, {}, HELD]
    assert reconcile_once(system.ports).restored == []


def test_a_cluster_that_does_not_answer_keeps_no_end_from_coming_and_the_sweep_comes_after_it(system):
    put(system, NEW, KEPT)
    system.disruptions.write(a_record(requested=True, ends={OLD: "gone"}))
    system.kubernetes.down = True
    assert end(RUN, {}, system.ports).next is DisruptionNext.DONE
    system.kubernetes.down = False
    assert reconcile_once(system.ports).restored == [f"node-{NEW}"]
    assert notes(system, NEW) == {}
