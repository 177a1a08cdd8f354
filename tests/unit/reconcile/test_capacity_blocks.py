"""Capacity Blocks whose end fn sync has kept: claimed when the policy says so, whether or not a warning has come."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import ThrottledError
from leeward.interruption.batch import Record, process_batch
from leeward.interruption.decision import RecordOutcome
from leeward.model.capacity_block import CapacityBlock
from leeward.model.facts import FactKind, Sheet, blocks_content
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from leeward.model.times import format_instant
from leeward.policy.document import InterruptionPolicy
from leeward.reconcile.reconciler import reconcile_once
from leeward.sync.controller import sync_once
from leeward.termination import deadlines, decisions
from leeward.termination.situation import Situation
from tests.events import event
from tests.fakes.builders import CLUSTER, a_group, a_node, a_policy, a_subject, an_instance, pausing, policies
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem

RESERVATION, MINUTE = "cr-0abc", timedelta(minutes=1)
ENDS = START + timedelta(hours=2)
BLOCK = CapacityBlock(reservation=RESERVATION, ends=ENDS)


def a_system(*, kept=True, written=None, **policy):
    """One instance of a selected group, in a block that ends in two hours; `kept`: fn sync has seen that."""
    given = replace(a_policy(), interruption=InterruptionPolicy(**policy))
    system = FakeSystem(
        instances=[an_instance("i-0abc", spot=False)],
        groups=[a_group("web-a", "i-0abc")],
        nodes=[a_node("i-0abc")],
        written=written or policies(given),
    )
    system.instances.blocks[RESERVATION] = ENDS
    system.instances.reserved["i-0abc"] = RESERVATION
    if kept:
        sheet = Sheet(synced=START, content=blocks_content({"i-0abc": BLOCK}))
        system.catalog.keep(CLUSTER, FactKind.CAPACITY_BLOCKS, sheet)
    return system


def minutes_before_the_end(system, minutes):
    system.clock.advance(seconds=(ENDS - minutes * MINUTE - system.clock.now()).total_seconds())
    return system


@pytest.mark.parametrize(
    ("policy", "minutes"),
    [({}, 40), ({"drain_block_before": timedelta()}, 30), ({"drain_block_before": timedelta(hours=1)}, 90)],
    ids=["by default", "at the last moment", "long before"],
)
def test_the_drain_begins_so_long_before_ec2_terminates_the_instances(policy, minutes):
    system = minutes_before_the_end(a_system(**policy), minutes + 1)
    assert reconcile_once(system.ports).errors == []
    assert not system.claims.records
    minutes_before_the_end(system, minutes)
    reconcile_once(system.ports)
    record = system.claims.records["i-0abc"]
    assert record.has(CauseKind.CAPACITY_BLOCK)
    assert deadlines.release_at(record, system.clock.now()) == ENDS - 30 * MINUTE - deadlines.DEADLINE_MARGIN
    assert system.executions.started == ["i-0abc-1"]


def test_an_instance_of_an_ultraserver_is_terminated_an_hour_before_the_end():
    assert BLOCK.taken_at("p6e-gb200.36xlarge") == BLOCK.taken_at("trn2u.48xlarge") == ENDS - 60 * MINUTE
    assert BLOCK.taken_at("p5.48xlarge") == BLOCK.taken_at() == ENDS - 30 * MINUTE


def test_a_second_pass_and_the_warning_itself_add_nothing():
    system = minutes_before_the_end(a_system(), 40)
    reconcile_once(system.ports)
    asked = system.instances.asked["describe"]
    reconcile_once(system.ports)
    assert system.instances.asked["describe"] == asked
    warned(system)
    assert len(system.claims.records["i-0abc"].causes) == 1


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_a_termination_for_another_cause_does_not_hide_the_end_of_the_block(closed):
    """A node that was returned to service last week is drained before the end of its block as any other."""
    system = a_system()
    other = Cause(id="expired", kind=CauseKind.EXPIRED, at=START, reason="older than its policy allows")
    system.claims.claim(a_subject("i-0abc"), other, START)
    if closed:
        system.claims.close("i-0abc", version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=START)
    minutes_before_the_end(system, 40)
    assert reconcile_once(system.ports).errors == []
    record = system.claims.records["i-0abc"]
    assert (record.status, record.has(CauseKind.CAPACITY_BLOCK)) == (Status.OPEN, True)
    assert system.executions.open == {f"i-0abc-{record.attempt}"}


def a_warning(system, reservation):
    return event(
        "capacity_block",
        detail__end_x_date=format_instant(ENDS),
        detail__capacity_x_reservation_x_id=reservation,
        time=format_instant(system.clock.now()),
    )


def handled(system, bodies):
    now = system.clock.now()
    records = [Record(id=str(number), body=body, received=now) for number, body in enumerate(bodies)]
    return [result.decision for result in process_batch(records, system.ports).results]


def warned(system):
    return handled(system, [a_warning(system, RESERVATION)])[0]


def test_the_warning_drains_the_instances_that_ec2_shows_in_the_block():
    system = minutes_before_the_end(a_system(kept=False), 40)
    decision = warned(system)
    assert (decision.action.value, [node.instance for node in decision.nodes]) == ("drain", ["i-0abc"])
    (cause,) = system.claims.records["i-0abc"].causes
    assert (cause.kind, cause.deadline) == (CauseKind.CAPACITY_BLOCK, ENDS - 30 * MINUTE)
    assert cause.id == f"{BLOCK.event_id}#i-0abc"


def test_a_warning_that_comes_before_the_policy_wants_to_drain_is_left_to_the_reconciler():
    system = minutes_before_the_end(a_system(kept=False, drain_block_before=timedelta()), 40)
    decision = warned(system)
    assert decision.action.value == "none"
    assert "the minute reconciler begins its drain at" in decision.reason
    assert not system.claims.records


def test_a_warning_about_a_reservation_that_is_no_capacity_block_drains_nothing():
    system = minutes_before_the_end(a_system(kept=False), 40)
    system.instances.blocks.clear()
    assert warned(system).reason == f"EC2 lists no active Capacity Block {RESERVATION}"
    assert not system.claims.records


def test_warnings_of_a_batch_take_two_calls_of_ec2_together():
    system = minutes_before_the_end(a_system(kept=False), 40)
    bodies = [a_warning(system, RESERVATION), a_warning(system, "cr-0def")]
    first, second = handled(system, bodies)
    assert (first.action.value, second.reason) == ("drain", "EC2 lists no active Capacity Block cr-0def")
    assert (system.instances.asked["block_ends"], system.instances.asked["in_reservations"]) == (1, 1)


def test_a_warning_whose_block_ec2_does_not_describe_is_retried_and_delays_no_other_message():
    system = minutes_before_the_end(a_system(kept=False), 40)
    system.instances.fail("block_ends", ThrottledError("ec2:DescribeCapacityReservations: Throttling"))
    system.instances.put(replace(an_instance("i-0abc"), reservation=RESERVATION))
    taken_back = event("capacity_reservation", time=format_instant(system.clock.now()))
    block, other = handled(system, [a_warning(system, RESERVATION), taken_back])
    assert (block.outcome, other.action.value) == (RecordOutcome.RETRY, "drain")
    assert "i-0abc" in system.claims.records


@pytest.mark.parametrize(
    "off", [{"enabled": False}, {"written": pausing(policies(a_policy()), "all")}], ids=["policy", "pause"]
)
def test_an_instance_whose_interruption_handling_is_switched_off_is_left_alone(off):
    system = minutes_before_the_end(a_system(**off), 40)
    reconcile_once(system.ports)
    assert not system.claims.records


def test_fn_sync_keeps_the_blocks_of_selected_groups_with_their_ends():
    system = a_system(kept=False)
    system.instances.reserved["i-0fff"] = RESERVATION
    sync_once(system.ports)
    sheet = system.catalog.sheet(CLUSTER, FactKind.CAPACITY_BLOCKS)
    assert sheet.content == blocks_content({"i-0abc": BLOCK})


def test_without_a_capacity_block_ec2_is_asked_for_no_instances():
    system = a_system(kept=False)
    system.instances.blocks.clear()
    sync_once(system.ports)
    assert (system.instances.asked["block_ends"], system.instances.asked["in_reservations"]) == (1, 0)


def a_block_record():
    system = minutes_before_the_end(a_system(), 40)
    reconcile_once(system.ports)
    return system, system.claims.records["i-0abc"]


def test_nothing_is_launched_for_an_instance_whose_block_ends():
    system, record = a_block_record()
    group = system.groups.by_name["web-a"]
    situation = Situation(
        record=record, instance=None, group=group, lifecycle="InService", our_hooks=(), policy=a_policy()
    )
    verdict = decisions.wants_replacement(situation, system.clock.now())
    assert (verdict.act, verdict.why) == (False, "its Capacity Block ends, and another in it would as well")


def test_the_empty_node_stays_until_ec2_takes_it():
    """Its group would launch another instance into the block, which would have to be drained at once."""
    system, record = a_block_record()
    drain = a_policy().drain
    left = (ENDS - 30 * MINUTE - deadlines.DEADLINE_MARGIN - system.clock.now()).total_seconds()
    assert deadlines.settle_seconds(record, drain.longest_settle, system.clock.now()) == left
