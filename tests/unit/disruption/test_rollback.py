"""Launches of a dropped command are terminated: one node for each launch, whatever step dies on the way."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from leeward.disruption.command import Command, CommandDecision, MethodName, PlannedReplacement
from leeward.disruption.completion import roll_back
from leeward.disruption.record import DisruptionRecord, LaunchedNode
from leeward.disruption.run import written
from leeward.model.capacity import Offset
from leeward.model.instance import CapacityType
from leeward.model.node import disruption_taint
from leeward.model.termination import Cause, CauseKind
from leeward.model.termination import Replacement as Launched
from leeward.termination import capacity_ledger, requests
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_subject, an_instance
from tests.fakes.system import FakeSystem

OLD, NEW, SECOND, OTHER = "i-0abc", "i-0def", "i-0dee", "i-0aaa"
FIRST = LaunchedNode(command=0, replacement=0, group=GROUP, zone="us-east-1a", subnet="subnet-a")


MEMBERS = (f"node-{OLD}", f"node-{OTHER}")
TAINT = disruption_taint("leeward")


class DiedError(Exception):
    """The function is killed."""


@pytest.fixture
def system():
    """An old node that stays, two new ones for it, and a neighbour."""
    ids = (OLD, NEW, SECOND, OTHER)
    return FakeSystem(
        instances=map(an_instance, ids), groups=[a_group(GROUP, *ids)], nodes=[a_node(name) for name in ids]
    )


def a_record(system, **given):
    new = PlannedReplacement(group=GROUP, types=("m5.large",), zones=("us-east-1a",), capacity=CapacityType.ON_DEMAND)
    replaced = Command(decision=CommandDecision.REPLACE, nodes=(f"node-{OLD}",), reason="drifted", replacements=(new,))
    record = DisruptionRecord(
        cluster=CLUSTER,
        number=3,
        method=MethodName.DRIFT,
        began=datetime(2026, 3, 2, 10, tzinfo=UTC),
        execution="blue-3-1",
        commands=(replaced,),
        nodes={f"node-{OLD}": OLD},
        members={f"node-{OLD}": GROUP},
        groups=(GROUP,),
        launched={NEW: FIRST},
        dropped={"0": "the world moved"},
    )
    return written(replace(record, **given), system.ports.disruptions)


def ended(system, instance):
    system.instances.known[instance] = replace(system.instances.known[instance], state="terminated")


def offsets(record):
    return [node.offset_by for node in record.launched.values()]


def asked(system):
    return sorted(
        name
        for name, record in system.claims.records.items()
        if any(c.kind is CauseKind.SURPLUS for c in record.causes)
    )


def test_the_termination_of_the_new_node_itself_is_requested(system):
    record = roll_back(a_record(system), system.ports)
    assert (offsets(record), asked(system)) == ([NEW], [NEW])


def test_where_the_new_node_is_gone_a_member_that_stays_is_asked_one_for_each_launch(system):
    for name in (NEW, SECOND):
        ended(system, name)
    record = roll_back(a_record(system, launched={NEW: FIRST, SECOND: FIRST}), system.ports)
    assert sorted(offsets(record)) == sorted([OLD, OTHER]) == asked(system)


def test_no_node_offsets_a_new_node_that_left_its_group_with_decrement(system):
    """Cluster Autoscaler terminates a node so that does not register: the group is as large as it was."""
    system.groups.terminate(instance=NEW, decrement=True)
    ended(system, NEW)
    record = roll_back(a_record(system), system.ports)
    assert (record.launched[NEW].undone, offsets(record), record.surplus(), asked(system)) == (True, [None], (), [])


@pytest.mark.parametrize("settled", [True, False])
def test_a_decrement_that_offsets_the_new_node_s_own_replacement_undoes_no_launch_of_the_run(system, settled):
    """A spot warning for the new node: its termination has launched another and shrunk the group by one."""
    now = system.clock.now()
    warning = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=now)
    system.claims.claim(a_subject(NEW), warning, now)
    system.claims.replaced(NEW, Launched(launched=(SECOND,)), now)
    if settled:
        system.claims.note(NEW, offsets={capacity_ledger.ahead(SECOND): Offset(instance=NEW)})
    system.groups.terminate(instance=NEW, decrement=True)
    ended(system, NEW)
    record = roll_back(a_record(system), system.ports)
    assert not record.launched[NEW].undone
    assert offsets(record)[0] in {OLD, OTHER, SECOND}


def test_a_member_offsets_a_new_node_that_its_group_has_replaced(system):
    system.groups.begin_terminating(GROUP, NEW)
    ended(system, NEW)
    record = roll_back(a_record(system), system.ports)
    assert record.launched[NEW].offset_by in {OLD, OTHER, SECOND}
    assert asked(system) == offsets(record)


def test_a_node_of_the_run_that_offsets_a_launch_keeps_the_taint_and_the_others_return_to_service(system):
    ended(system, NEW)
    ended(system, SECOND)
    untainted = []
    system.kubernetes.untaint = lambda node, _: untainted.append(node.instance_id)
    for name in (OLD, OTHER):
        system.kubernetes.taint(system.kubernetes.by_name[f"node-{name}"], TAINT)
    both = {"nodes": {f"node-{OLD}": OLD, f"node-{OTHER}": OTHER}, "members": dict.fromkeys(MEMBERS, GROUP)}
    record = roll_back(a_record(system, **both), system.ports)
    (payer,) = offsets(record)
    assert untainted == [({OLD, OTHER} - {payer}).pop()]


def test_killed_after_a_request_it_requests_no_other_termination(system, monkeypatch):
    """The node has gone by the time the step is taken again: it has paid."""

    def dies(*_):
        raise DiedError

    record = a_record(system)
    with monkeypatch.context() as context:
        context.setattr(requests, "start", dies)
        with pytest.raises(DiedError):
            roll_back(record, system.ports)
    ended(system, NEW)
    roll_back(system.disruptions.read(CLUSTER), system.ports)
    assert asked(system) == [NEW]
