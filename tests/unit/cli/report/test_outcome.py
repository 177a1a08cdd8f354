"""Headline of an execution: cause and effect in the words of its record and its history."""

import pytest

from leeward.cli.report.building import build
from leeward.cli.report.causes import ORDER, WAS
from leeward.cli.report.outcome import outcome
from leeward.disruption.command import Command, CommandDecision, MethodName
from leeward.disruption.record import DisruptionRecord
from leeward.model.execution import ExecutionStatus, Machine
from leeward.model.termination import Cause, CauseKind, Outcome
from tests.fakes.builders import CLUSTER, GROUP
from tests.unit.cli.report.execution import (
    OLD,
    OTHER,
    a_step,
    a_story,
    a_termination,
    an_execution,
    an_upgrade,
    at,
    facts_of,
)

WARNED = Cause(id="spot", kind=CauseKind.SPOT_INTERRUPTION, at=at(-34), deadline=at(86))
NODE = f"node-{OLD}"
ENDING = Cause(id="hook", kind=CauseKind.ASG_TERMINATE, at=at(2), hook="leeward", hook_ours=True)


def spot(*steps, evicted=12, **more):
    record = a_termination(causes=[ENDING, WARNED], pods_evicted=evicted, **more)
    return outcome(facts_of(steps=steps or a_story(), records=[record]))


def test_a_reclaimed_node_says_how_much_of_its_two_minutes_its_pods_took():
    assert spot() == f"{NODE} was reclaimed by EC2 (spot). 12 pods moved in 74 s of 120 s; none was killed."


def test_a_node_without_pods_says_so():
    assert spot(evicted=0) == f"{NODE} was reclaimed by EC2 (spot). No pod had to move."


def test_pods_that_were_deleted_instead_of_evicted_are_counted():
    forced = a_step("Drain", 41, 42, next="wait", why="deleting", deleted=2)
    assert spot(forced, *a_story()).endswith("12 pods moved in 74 s of 120 s; 2 of them deleted instead of evicted.")


def test_pods_that_did_not_leave_in_time_are_counted():
    over = a_step("Drain", 80, 84, next="drained", why="the drain's time is over, let go although default/web-1: pdb")
    assert spot(over, blocked_by=("default/web-1: pdb",)) == (
        f"{NODE} was reclaimed by EC2 (spot). 12 pods moved in 118 s of 120 s; 1 pod did not leave in time."
    )


def test_an_instance_that_ended_first_claims_nothing_about_its_pods():
    gone = a_step("Drain", 80, 84, next="gone", why="EC2 says shutting-down")
    assert spot(gone, blocked_by=("default/web-1: pdb",)).endswith(
        "12 pods had been evicted when the instance ended, before its drain did, with 1 pod blocked."
    )
    assert spot(a_step("Claim", 0, 1, next="gone", why="EC2 says terminated")).endswith(
        "It had ended before a drain could begin."
    )


def test_without_a_deadline_the_drain_has_its_own_length():
    said = outcome(facts_of(records=[a_termination(pods_evicted=1)]))
    assert said == f"{NODE} was drained on an operator's request. 1 pod moved in 35 s; none was killed."


def test_when_the_record_is_gone_the_history_gives_the_cause_and_no_number():
    assert (
        outcome(facts_of()) == f"{OLD} was drained on an operator's request. Its pods moved in 35 s; none was killed."
    )
    of_another_attempt = a_termination(attempt=2, pods_evicted=9)
    assert "Its pods moved" in outcome(facts_of(records=[of_another_attempt]))


def test_a_running_termination_says_how_far_it_is():
    running = an_execution(stopped=None)
    begun = [
        a_step("Claim", 0, 1, next="replace", why="spot_interruption"),
        a_step("Drain", 1, 3, next="wait", why="x"),
    ]
    record = a_termination(causes=[WARNED], outcome=None, pods_evicted=3, blocked_by=("default/web-1: pdb",))
    said = outcome(facts_of(running, begun, records=[record]))
    assert said == f"{NODE} is being reclaimed by EC2 (spot). 3 pods evicted so far, 1 pod blocked."
    assert outcome(facts_of(running, a_story()[:-3], records=[record])).endswith(
        "Its pods have moved; the instance has not ended yet."
    )


def test_a_node_that_came_back_to_service_says_why():
    back = a_step("ReturnNodeToService", 90, 91, next="returned-to-service", why="PodEvictionFailure: its time is over")
    failed = an_execution(status=ExecutionStatus.FAILED, error="PodEvictionFailure")
    record = a_termination(outcome=Outcome.RETURNED_TO_SERVICE)
    assert outcome(facts_of(failed, [*a_story()[:3], back], records=[record])) == (
        f"{NODE} was drained on an operator's request, but returned to service: PodEvictionFailure: its time is over"
    )


def test_a_long_reason_is_cut_and_names_the_node_instead_of_its_instance():
    long = f"PodEvictionFailure: {OLD}: " + "; ".join(f"default/web-{n}: pdb allows none" for n in range(20))
    back = a_step("ReturnNodeToService", 90, 91, next="returned-to-service", why=long)
    said = outcome(facts_of(steps=[*a_story()[:3], back], records=[a_termination()]))
    assert f"returned to service: PodEvictionFailure: {NODE}: default/web-0" in said
    assert said.endswith("…")
    assert len(said) < 240
    assert OLD not in said.replace(NODE, "")


def test_a_termination_that_failed_names_its_error():
    failed = an_execution(status=ExecutionStatus.FAILED, error="NodeTerminationFailure")
    assert outcome(facts_of(failed, records=[a_termination()])).endswith(
        "Its termination did not end: NodeTerminationFailure"
    )


def upgraded(last="Upgraded", status=ExecutionStatus.SUCCEEDED, stopped=100, error=""):
    cause = Cause(id=f"upgrade#{GROUP}#1", kind=CauseKind.UPGRADE, at=at(1))
    ended = a_termination(causes=[cause], pods_evicted=3)
    others = a_termination(OTHER, pods_evicted=50)  # a manual drain in the same time
    execution = an_execution(Machine.UPGRADE, f"{GROUP}-1", stopped=stopped, status=status, error=error)
    steps = [a_step("DrainOldNodes", 1, 90, next="scale-down", why="gone"), a_step(last, 99, 100)]
    return outcome(facts_of(execution, steps, records=[ended, others], stories={}, upgrade=an_upgrade()))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "was upgraded. 1 old node left, 3 pods moved in 1 min 40 s."),
        ({"last": "Aborted"}, "the upgrade was aborted. 1 old node left, 3 pods moved in 1 min 40 s."),
        ({"last": "RolledBack"}, "was rolled back. 1 old node left, 3 pods moved in 1 min 40 s."),
        (
            {"last": "PodEvictionFailure", "status": ExecutionStatus.FAILED, "error": "PodEvictionFailure"},
            "the upgrade stopped with PodEvictionFailure. 1 old node left, 3 pods moved before that.",
        ),
    ],
)
def test_an_upgrade_counts_its_own_old_nodes_and_their_pods(given, said):
    assert upgraded(**given) == f"{GROUP}: {said}"


def test_a_running_upgrade_counts_so_far():
    assert upgraded(stopped=None) == f"{GROUP} is being upgraded. 1 old node left, 3 pods moved so far."


def a_run(*, stopped=100, savings=0.12, ended=True):
    command = Command(decision=CommandDecision.DELETE, nodes=(f"node-{OLD}",), reason="can be removed", savings=savings)
    record = DisruptionRecord(
        cluster=CLUSTER,
        number=3,
        method=MethodName.CONSOLIDATION,
        began=at(0),
        commands=(command,),
        nodes={f"node-{OLD}": OLD},
        members={f"node-{OLD}": GROUP},
        groups=(GROUP,),
    )
    cause = Cause(id=f"disruption#{CLUSTER}#3#{OLD}", kind=CauseKind.UNDERUTILIZED, at=at(1))
    records = [a_termination(causes=[cause], pods_evicted=4)] if ended else []
    execution = an_execution(Machine.DISRUPTION, f"{CLUSTER}-3-1", stopped=stopped, given={"cluster": CLUSTER})
    steps = [a_step("Validate", 1, 2, next="give-up", why="command 0 dropped: its pods fit nowhere")]
    return outcome(facts_of(execution, steps, records=records, stories={}, number=3, disruption=record))


def test_a_disruption_run_says_what_it_removed_and_saves():
    run = f"Disruption run 3 of {CLUSTER} (consolidation)"
    assert a_run() == f"{run}: 1 old node left, 4 pods moved in 1 min 40 s. It saves $0.12 an hour."
    assert a_run(savings=None) == f"{run}: 1 old node left, 4 pods moved in 1 min 40 s."
    assert a_run(ended=False) == f"{run} removed no node: command 0 dropped: its pods fit nowhere"
    assert a_run(stopped=None) == f"{run} is under way. 1 old node left, 4 pods moved so far."


def test_every_cause_has_its_words_and_its_place():
    assert set(ORDER) == set(CauseKind) == set(WAS)


def test_the_record_of_the_execution_carries_the_headline():
    assert build(facts_of(records=[a_termination(causes=[WARNED], pods_evicted=12)])).headline.startswith(NODE)
