"""The record of a run: which commands stand, what is still to be launched, what is left over."""

from dataclasses import replace
from datetime import timedelta

from leeward.disruption.record import GONE, STAYED, DisruptionOutcome, LaunchedNode, cause_id, launch_token, surge_of
from leeward.disruption.terminations import with_results
from leeward.model.capacity import NoOffset
from leeward.model.termination import (
    Cause,
    CauseKind,
    Outcome,
    Status,
    Subject,
    TerminationRecord,
)
from leeward.termination import capacity_ledger
from leeward.workflow.executions import execution_name
from tests.fakes.disruptions import NOW, a_disruption
from tests.fakes.ledger import by

NEW = LaunchedNode(command=0, replacement=0, group="web-b", zone="a", subnet="s")


def a_termination(instance, record, **more):
    own = Cause(id=cause_id(record, instance), kind=record.cause, at=NOW)
    subject = Subject(
        instance=instance,
        cluster="blue",
        group="web-a",
        zone="us-east-1a",
        subnet="subnet-1",
        instance_type="m5.large",
        capacity_type="on-demand",
    )
    given = {
        "subject": subject,
        "status": Status.CLOSED,
        "attempt": 1,
        "version": 2,
        "causes": (own, capacity_ledger.surplus(surge_of(record, instance), NOW)),
        "outcome": Outcome.TERMINATED,
    }
    return TerminationRecord(**{**given, **more})


def settled_as(settlement, instance, record):
    return {"offsets": {surge_of(record, instance): settlement}}


def a_requested_disruption(**more):
    return a_disruption(requested=True, orders={}, ends={}, launched={"i-9": NEW}, **more)


def test_every_removal_is_one_entry_that_its_termination_returns_when_it_is_not_offset():
    assert surge_of(a_disruption(), "i-1").returns


def test_names_of_executions_follow_from_the_run_and_fit():
    assert execution_name("blue", 3, 1) == "blue-3-1"
    long = execution_name("c" * 100, 123456, 12)
    assert len(long) <= 80
    assert long.endswith("-123456-12")
    assert execution_name("a.b", 1, 1) != execution_name("a-b", 1, 1)


def test_a_launch_has_a_token_of_its_own_for_each_subnet_command_and_run():
    record = a_disruption()
    tokens = {
        launch_token(record, "0.0", "subnet-1"),
        launch_token(record, "0.0", "subnet-2"),
        launch_token(record, "0.1", "subnet-1"),
        launch_token(replace(record, number=4), "0.0", "subnet-1"),
    }
    assert len(tokens) == 4
    assert all(len(token) <= 64 for token in tokens)
    assert launch_token(record, "0.0", "subnet-1") in tokens


def test_only_replacements_of_standing_commands_that_have_not_come_are_launched():
    record = a_disruption(launched={})
    assert record.to_launch() == ("0.0",)
    assert replace(record, launched={"i-9": NEW}).to_launch() == ()
    assert record.drop({0: "the world moved"}).to_launch() == ()


def test_nodes_of_a_dropped_command_stay():
    record = a_disruption().drop({0: "the world moved"})
    assert record.to_terminate == {"node-c": "i-3"}
    assert record.staying == {"node-a": "i-1", "node-b": "i-2"}


def test_what_was_launched_for_a_command_that_fell_is_surplus_and_is_asked_to_go_once():
    record = replace(a_disruption(), launched={"i-9": NEW}).drop({0: "expensive"})
    assert record.surplus() == ("i-9",)
    assert replace(record, launched={"i-9": replace(NEW, offset_by="i-9")}).surplus() == ()


def test_a_new_node_stays_when_at_least_one_node_went_for_it():
    record = a_requested_disruption()
    assert record.surplus() == ()  # not known yet
    assert replace(record, ends={"i-1": GONE, "i-2": STAYED}).surplus() == ()
    assert replace(record, ends={"i-1": STAYED, "i-2": STAYED}).surplus() == ("i-9",)


def test_groups_rest_from_the_end_and_rests_of_long_ago_are_forgotten():
    record = replace(a_disruption(), cooldowns={"old": NOW - timedelta(days=8), "web-a": NOW - timedelta(hours=1)})
    closed = record.closed(DisruptionOutcome.DONE, "done", NOW)
    assert closed.cooldowns == {"web-a": NOW, "web-b": NOW}


def test_ends_are_read_off_the_terminations():
    record = a_requested_disruption()
    found = {
        "i-1": a_termination("i-1", record, **settled_as(by("i-1"), "i-1", record)),
        "i-2": a_termination(
            "i-2", record, outcome=Outcome.RETURNED_TO_SERVICE, **settled_as(NoOffset.RETURNED, "i-2", record)
        ),
        "i-3": a_termination("i-3", record, status=Status.OPEN, outcome=None),
    }
    after = with_results(record, found)
    assert after.ends == {"i-1": GONE, "i-2": STAYED}
    assert after.under_way == ("i-3",)
    assert with_results(after, found) is after


def test_a_node_that_its_group_replaced_stayed_and_one_that_was_written_off_is_gone():
    record = a_requested_disruption()
    found = {
        "i-1": a_termination("i-1", record, **settled_as(NoOffset.RETURNED, "i-1", record)),
        "i-2": a_termination("i-2", record, **settled_as(NoOffset.WRITTEN_OFF, "i-2", record)),
    }
    assert with_results(record, found).ends == {"i-1": STAYED, "i-2": GONE}


def test_one_that_is_kept_for_a_maintenance_ahead_is_not_waited_for():
    record = a_requested_disruption()
    kept = a_termination(
        "i-1",
        record,
        status=Status.OPEN,
        outcome=None,
        times={"retry": NOW},
        **settled_as(NoOffset.RETURNED, "i-1", record),
    )
    assert with_results(record, {"i-1": kept}).ends == {"i-1": STAYED}


def test_a_termination_of_another_cause_alone_says_nothing():
    record = a_requested_disruption()
    other = a_termination("i-1", record, causes=(Cause(id="spot", kind=CauseKind.SPOT_INTERRUPTION, at=NOW),))
    assert with_results(record, {"i-1": other}).ends == {}
