"""The record of an execution, from what was read of it: spans, marks, and what is said where nothing is known."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from infra.asl import read_definition
from leeward.cli.report import lanes, node_markers
from leeward.cli.report.building import build
from leeward.cli.report.facts import SeenEvent, SeenNode, Story
from leeward.cli.report.record import MarkKind, RunRecord, Source
from leeward.model.execution import ExecutionStatus, Machine
from leeward.model.termination import Cause, CauseKind, Outcome
from tests.fakes.builders import GROUP, an_instance
from tests.fakes.disruptions import a_disruption
from tests.unit.cli.report.execution import (
    BLOCKED,
    NEW,
    OLD,
    OTHER,
    TEN,
    TIMES,
    a_seen_node,
    a_step,
    a_story,
    a_termination,
    an_activity,
    an_event,
    an_execution,
    an_upgrade,
    at,
    facts_of,
)

SCHEMA = json.loads(Path("docs/schema/run-record.json").read_text())
CAUSE = CauseKind.UPGRADE
UPGRADING = an_execution(Machine.UPGRADE, f"{GROUP}-1", stopped=300)


def spans(record, instance=OLD):
    (node,) = [node for node in record.nodes if node.instance == instance]
    return [
        (span.phase.value, (span.begin - TEN).total_seconds(), (span.end - TEN).total_seconds()) for span in node.spans
    ]


def texts(record, *kinds):
    return [mark.text for mark in record.marks if not kinds or mark.kind in kinds]


def drawn(facts):
    """What every record has to be, whatever it is of."""
    record = build(facts)
    document = record.to_json()
    jsonschema.validate(document, SCHEMA)
    assert RunRecord.from_json(document).to_json() == document
    assert record.source is Source.EXECUTION
    for node in record.nodes:
        assert all(one.end <= later.begin for one, later in zip(node.spans, node.spans[1:], strict=False))
        assert all(one.end <= record.end for one in node.spans)
    return record


class TestATermination:
    def test_its_phases_are_those_of_its_record(self):
        record = drawn(facts_of(records=[a_termination()]))
        assert spans(record) == [
            ("ready", -3.02, 5.5),
            ("cordoned", 5.5, 6),
            ("draining", 6, 40),
            ("settling", 40, 80),
            ("terminated", 80, 100),
        ]
        assert record.about == f"{OLD}-1 of leeward-node-termination: succeeded with Terminated"

    def test_without_a_record_they_are_those_of_its_history(self):
        record = drawn(facts_of())
        assert spans(record) == [("draining", 5, 40), ("settling", 40, 80), ("terminated", 80, 100)]

    def test_a_record_of_a_later_attempt_gives_its_names_but_no_phases(self):
        later = a_termination(attempt=2, times={"claimed": 0, "draining": 70, "drained": 71})
        record = drawn(facts_of(records=[later]))
        assert spans(record)[-3:] == [("draining", 5, 40), ("settling", 40, 80), ("terminated", 80, 100)]
        assert record.nodes[0].name == f"node-{OLD}"

    def test_a_record_opened_again_after_the_end_says_nothing_of_it(self):
        later = a_termination(times={"claimed": 500, "draining": 501})
        assert spans(drawn(facts_of(records=[later], stories={}))) == [("ready", -3.02, 100)]

    def test_who_blocked_it_is_reported_once_with_until_when_and_for_how_long(self):
        (mark,) = [mark for mark in drawn(facts_of(records=[a_termination()])).marks if mark.kind is MarkKind.BLOCKED]
        assert (mark.at, mark.node) == (at(10), f"node-{OLD}")
        said = "default/web-1 does not leave: pdb default/web allows none of 3 now, until 2026-03-02T10:10:00Z"
        assert mark.text == f"{said} (for 20 s)"

    def test_a_block_without_an_end_of_its_own_lasts_until_the_drain_gives_up(self):
        why = "default/web-1: pdb default/web allows none of 3 now"
        steps = [a_step("Drain", 5, 10, next="wait", why=why), a_step("WaitForPods", 10)]
        running = an_execution(stopped=None)
        record = drawn(facts_of(running, steps, records=[a_termination(outcome=None, times={"until": 606})], now=40))
        assert "waited for until 2026-03-02T10:10:06Z at the latest (for 30 s)" in texts(record, MarkKind.BLOCKED)[0]

    def test_a_running_one_is_drawn_up_to_now_and_says_so(self):
        steps = [*a_story()[:2], a_step("Drain", 5, 10, next="wait", why=BLOCKED), a_step("WaitForPods", 10)]
        open_record = a_termination(outcome=None, times={"claimed": 0, "tainted": 5.5, "draining": 6, "until": 606})
        record = drawn(facts_of(an_execution(stopped=None), steps, records=[open_record], now=33))
        assert record.end == at(33)
        assert spans(record)[-1] == ("draining", 6, 33)
        assert record.about.endswith("still running, drawn up to 2026-03-02T10:00:33Z, in WaitForPods")

    def test_a_node_that_was_returned_to_service_serves_again(self):
        steps = [
            *a_story()[:3],
            a_step("Drain", 29, 30, next="failed", why=f"PodEvictionFailure: 30 s are over: {BLOCKED}"),
            a_step("ReturnNodeToService", 30, 32, next="returned-to-service", why=BLOCKED),
            a_step("PodEvictionFailure", 33),
        ]
        returned = a_termination(
            times={"claimed": 0, "tainted": 5.5, "draining": 6, "closed": 33}, outcome=Outcome.RETURNED_TO_SERVICE
        )
        failed = an_execution(stopped=50, status=ExecutionStatus.FAILED, error="PodEvictionFailure", cause=BLOCKED)
        record = drawn(facts_of(failed, steps, records=[returned]))
        assert spans(record)[-2:] == [("draining", 6, 32), ("ready", 32, 50)]
        assert texts(record, MarkKind.FAULT) == [f"the execution failed: PodEvictionFailure: {BLOCKED}"]
        assert f"returned to service: {BLOCKED}" in texts(record, MarkKind.BLOCKED)
        assert record.about.endswith("failed with PodEvictionFailure")

    def test_why_it_began_is_an_event_also_when_that_was_a_moment_before(self):
        spot = Cause(id="s", kind=CauseKind.SPOT_INTERRUPTION, at=at(-7), deadline=at(113), reason="EC2 takes it")
        record = drawn(facts_of(records=[a_termination(causes=[spot])]))
        (mark,) = [mark for mark in record.marks if mark.kind is MarkKind.EVENT]
        assert mark.text == "spot_interruption: EC2 takes it, gone at 2026-03-02T10:01:53Z whatever happens"
        assert record.start < mark.at == at(-7)

    def test_what_the_group_and_ec2_announce_of_our_own_wish_is_no_news(self):
        echoes = [
            Cause(id="a", kind=CauseKind.ASG_TERMINATE, at=at(62), hook="leeward-terminate"),
            Cause(id="b", kind=CauseKind.STATE_CHANGE, at=at(75)),
        ]
        times = {**TIMES, "terminating": 62.4}
        manual = a_termination().causes
        record = drawn(facts_of(records=[a_termination(causes=[*manual, *echoes], times=times)]))
        assert texts(record, MarkKind.EVENT) == ["manual: leeward drain"]
        assert spans(record)[0][0] == "ready"
        before = replace(echoes[0], at=at(61))
        record = drawn(facts_of(records=[a_termination(causes=[*manual, before], times=times)]))
        assert texts(record, MarkKind.EVENT)[1:] == ["asg_terminate (lifecycle hook leeward-terminate)"]

    def test_a_cause_of_long_ago_is_reported_but_does_not_stretch_the_picture(self):
        old = Cause(id="s", kind=CauseKind.SCHEDULED_CHANGE, at=at(-86400))
        record = drawn(facts_of(records=[a_termination(causes=[old])]))
        assert record.start == at(-2)
        assert (record.marks[0].at, record.marks[0].text) == (at(-86400), "scheduled_change")

    def test_what_failed_is_reported_with_its_sentence_and_how_often(self):
        cause = json.dumps({"errorMessage": "autoscaling:TerminateInstance: denied", "stackTrace": ["x"]})
        tries = [(61.1, "AccessDeniedError", cause), (61.2, "AccessDeniedError", cause)]
        steps = [a_step("Terminate", 61, 62, failures=tries, next="answer")]
        assert texts(drawn(facts_of(steps=steps)), MarkKind.FAULT) == [
            "Terminate: AccessDeniedError: autoscaling:TerminateInstance: denied (2 tries)"
        ]

    def test_a_pause_that_ends_is_no_fault(self):
        assert texts(drawn(facts_of(records=[a_termination()])), MarkKind.FAULT) == []

    def test_decisions_are_reported_and_what_it_waited_for_each_once(self):
        steps = [
            *a_story(blocked=False)[:2],
            *(a_step("Drain", n, n + 1, next="wait", why=f"{40 - n} pods are terminating") for n in range(5, 9)),
            *a_story(blocked=False)[3:],
        ]
        assert texts(drawn(facts_of(steps=steps, records=[a_termination()])), MarkKind.DECISION) == [
            "replacement: its group replaces it",
            "35 pods are terminating",
            f"asked {GROUP} to terminate it",
            "Terminated: removed",
        ]

    def test_its_replacement_is_launching_from_when_it_was_asked_for(self):
        times = {**TIMES, "replacement": 3}
        record = drawn(
            facts_of(
                records=[a_termination(times=times, launched=(NEW,))],
                touched=(OLD, NEW),
                nodes={NEW: a_seen_node(NEW, ready=21)},
                activities={GROUP: [an_activity(4, enters=NEW, ended=15)]},
            )
        )
        assert spans(record, NEW) == [("launching", 3, 21), ("ready", 21, 100)]

    def test_one_that_was_stopped_says_by_whom_it_was_not(self):
        stopped = an_execution(stopped=20, status=ExecutionStatus.ABORTED)
        record = drawn(facts_of(stopped, a_story()[:3]))
        assert texts(record, MarkKind.EVENT) == ["the execution was stopped manually: no reason was given"]

    @pytest.mark.parametrize("status", ExecutionStatus)
    def test_whatever_step_functions_says_of_it_can_be_drawn(self, status):
        assert drawn(facts_of(an_execution(status=status), a_story())).about.startswith(f"{OLD}-1 of ")

    def test_no_workload_has_a_lane_and_the_record_says_why(self):
        record = drawn(facts_of())
        assert record.workloads == ()
        assert "no step read a PodDisruptionBudget" in record.notes[-1]

    def test_an_unhealthy_node_is_not_drawn_in_service(self):
        sick = Cause(id="u", kind=CauseKind.UNHEALTHY, at=at(0))
        assert spans(drawn(facts_of(records=[a_termination(causes=[sick])])))[0][0] == "cordoned"


class TestEvents:
    def test_what_the_steps_show_more_exactly_is_left_out(self):
        reported = [an_event(10, f"node-{OLD}"), an_event(11, f"node-{OLD}", "NoReplacement", "no subnet")]
        events = texts(drawn(facts_of(records=[a_termination()], events=reported)), MarkKind.EVENT)
        assert events == ["manual: leeward drain", "NoReplacement: no subnet"]

    def test_without_a_history_an_event_shows_who_blocked(self):
        reported = [an_event(10, f"node-{OLD}"), an_event(10, "node-else"), an_event(-99, f"node-{OLD}")]
        record = drawn(facts_of(records=[a_termination()], stories={}, events=reported))
        assert texts(record, MarkKind.BLOCKED) == ["DrainBlocked: cannot drain yet"]

    def test_events_and_nodes_are_read_as_the_api_writes_them(self):
        raw = {
            "metadata": {"name": "e", "namespace": "default", "creationTimestamp": "2026-03-02T10:00:09Z"},
            "involvedObject": {"kind": "Pod", "name": "web-1", "namespace": "shop"},
            "reason": "LeftAlone",
            "message": "it stays",
            "firstTimestamp": None,
            "eventTime": "2026-03-02T10:00:07.000000Z",
        }
        assert SeenEvent.from_json(raw) == SeenEvent(
            at=at(7), about="shop/web-1", reason="LeftAlone", message="it stays"
        )
        node = {
            "metadata": {
                "name": "node-a",
                "creationTimestamp": "2026-03-02T10:00:00Z",
                "labels": {"topology.kubernetes.io/zone": "us-east-1a"},
                "annotations": {"leeward.dev/cordoned-for": GROUP},
            },
            "spec": {"providerID": f"aws:///us-east-1a/{NEW}"},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-02T10:00:21Z"}]
            },
        }
        assert SeenNode.from_json(node) == replace(a_seen_node(NEW, ready=21, cordoned_for=GROUP), name="node-a")
        node["status"]["conditions"][0]["status"] = "Unknown"
        assert SeenNode.from_json(node).ready is None


def reported_by_upgrade(instance, number=1, **more):
    cause = Cause(id=f"upgrade#{GROUP}#20260302T100000.{number}", kind=CAUSE, at=at(50), reason=f"upgrade of {GROUP}")
    return a_termination(instance, causes=[cause], **more)


def an_upgrade_of_two(**more):
    """One new node ahead; two old ones leave, one after the other."""
    steps = [
        a_step("TakeLease", 0, 1, next="check", why="attempt 1 of 20260302T100000", attempt=1),
        a_step("LaunchSurge", 2, 5, next="wait", why=f"new nodes ahead of the drains: {NEW}", attempt=1),
        a_step("CheckNewNodes", 5, 6, next="wait", why=f"{NEW} has not joined", attempt=1),
        a_step("CheckNewNodes", 26, 27, next="ready", why="every new node is Ready", attempt=1),
        a_step("CordonOldNodes", 27, 30, next="cordoned", why="cordoned 2 nodes", attempt=1),
        *(
            a_step("ChooseNodes", n, n + 1, next="wait", why=f"{n} old nodes wait, 1 are on their way", attempt=1)
            for n in range(40, 60, 5)
        ),
        a_step("ChooseNodes", 61, 62, next="paused", why="paused by the operator", attempt=1),
        a_step("ChooseNodes", 71, 72, next="wait", why="1 old nodes wait, 1 are on their way", attempt=1),
        a_step("ChooseNodes", 81, 82, next="paused", why="paused by the operator", attempt=1),
        a_step("RestoreGroup", 290, 298, next="upgraded", why="2 nodes replaced", attempt=1),
        a_step("RouteOutcome", 298, 299, works=False, next="upgraded", why="2 nodes replaced"),
        a_step("Upgraded", 299, 300, works=False, next="upgraded", why="2 nodes replaced"),
    ]
    late = {name: seconds + 100 for name, seconds in TIMES.items()}
    reported = {
        "records": [reported_by_upgrade(OLD), reported_by_upgrade(OTHER, 2, times=late)],
        "stories": {
            OLD: (Story(attempt=1, steps=a_story(begin=0)),),
            OTHER: (Story(attempt=1, steps=a_story(begin=100, blocked=False)),),
        },
        "touched": (OLD, OTHER, NEW),
        "activities": {GROUP: [an_activity(3, enters=NEW, ended=24)]},
        "nodes": {NEW: a_seen_node(NEW, ready=22)},
        "upgrade": an_upgrade(ended=at(298)),
    }
    return facts_of(UPGRADING, steps, **{**reported, **more})


class TestAnUpgrade:
    def test_every_node_has_its_phases_and_is_cordoned_long_before_it_drains(self):
        late = {name: seconds + 100 for name, seconds in TIMES.items()}
        early = reported_by_upgrade(OLD, times={name: seconds + 45 for name, seconds in TIMES.items()})
        record = drawn(an_upgrade_of_two(records=[early, reported_by_upgrade(OTHER, 2, times=late)], stories={}))
        assert spans(record, OLD) == [
            ("ready", -6, 30),
            ("cordoned", 30, 51),
            ("draining", 51, 85),
            ("settling", 85, 125),
            ("terminated", 125, 300),
        ]
        assert [phase for phase, _, _ in spans(record, OTHER)] == [
            *("ready", "cordoned", "draining", "settling", "terminated")
        ]
        assert spans(record, NEW) == [("launching", 3, 22), ("ready", 22, 300)]

    def test_what_one_of_its_nodes_waited_for_stands_at_that_node(self):
        blocks = [mark for mark in drawn(an_upgrade_of_two()).marks if "does not leave" in mark.text]
        assert [(mark.at, mark.node) for mark in blocks] == [(at(10), f"node-{OLD}")]

    def test_a_step_is_reported_when_it_says_something_else_and_each_hold_anew(self):
        record = drawn(an_upgrade_of_two())
        assert [text.partition(":")[0] for text in texts(record) if ": " in text and "web-1" not in text] == [
            "TakeLease",
            "LaunchSurge",
            "CheckNewNodes",
            "CheckNewNodes",
            "CordonOldNodes",
            "ChooseNodes",
            "ChooseNodes",
            "ChooseNodes",
            "RestoreGroup",
        ]
        assert record.marks[-1].text == "Upgraded"
        held = [mark for mark in record.marks if mark.text == "ChooseNodes: paused by the operator"]
        assert [(mark.at, mark.kind) for mark in held] == [(at(62), MarkKind.BLOCKED), (at(82), MarkKind.BLOCKED)]

    def test_its_own_wish_is_no_mark_but_another_cause_is(self):
        spot = Cause(id="s", kind=CauseKind.SPOT_INTERRUPTION, at=at(70), reason="EC2 takes it")
        with_spot = reported_by_upgrade(OLD)
        with_spot = replace(with_spot, causes=(*with_spot.causes, spot))
        assert texts(drawn(an_upgrade_of_two(records=[with_spot])), MarkKind.EVENT) == [
            "spot_interruption: EC2 takes it"
        ]

    def test_an_unrecorded_readiness_is_drawn_from_the_groups_activities_with_a_note(self):
        record = drawn(an_upgrade_of_two(nodes={}))
        assert spans(record, NEW) == [("launching", 3, 24), ("ready", 24, 300)]
        assert record.notes[0].startswith(f"When {NEW} became Ready is no longer recorded")

    def test_a_kubelets_first_word_counts_more_than_a_condition_that_has_turned_since(self):
        nodes = {NEW: a_seen_node(NEW, ready=200)}
        record = drawn(an_upgrade_of_two(nodes=nodes, joined={f"node-{NEW}": [at(-900), at(23)]}))
        assert spans(record, NEW)[0] == ("launching", 3, 23)

    def test_a_node_whose_record_is_gone_ended_when_its_group_says(self):
        gone = [an_activity(3, enters=NEW, ended=24), an_activity(120, leaves=OTHER, ended=160)]
        record = drawn(an_upgrade_of_two(records=[reported_by_upgrade(OLD)], stories={}, activities={GROUP: gone}))
        assert spans(record, OTHER) == [("terminated", 160, 300)]

    def test_a_failed_one_shows_the_launches_that_failed_once_for_each_reason(self):
        failed = an_execution(
            Machine.UPGRADE,
            f"{GROUP}-1",
            stopped=300,
            status=ExecutionStatus.FAILED,
            error="NodeCreationFailure",
            cause="none came",
        )
        tries = [an_activity(seconds, failed="no capacity") for seconds in (20, 60, 90)]
        steps = [
            a_step("CheckNewNodes", 5, 290, next="creation-failure", why="none came: look"),
            a_step("NodeCreationFailure", 299),
        ]
        facts = an_upgrade_of_two(activities={GROUP: tries}, records=[], stories={}, touched=(OLD,))
        record = drawn(replace(facts, execution=failed, steps=steps, nodes={OLD: a_seen_node(OLD, ready=-900)}))
        assert texts(record, MarkKind.FAULT) == [
            f"{GROUP}: no capacity",
            "CheckNewNodes: none came: look",
            "the execution failed: NodeCreationFailure: none came",
        ]
        assert spans(record, OLD) == [("ready", -6, 300)]

    def test_a_node_that_still_waits_cordoned_for_its_turn_is_drawn_so(self):
        nodes = {OTHER: a_seen_node(OTHER, ready=-900, cordoned_for=GROUP)}
        facts = an_upgrade_of_two(records=[reported_by_upgrade(OLD)], nodes=nodes)
        running = replace(facts, execution=an_execution(Machine.UPGRADE, f"{GROUP}-1", stopped=None), now=at(70))
        assert spans(drawn(running), OTHER) == [("ready", -2, 30), ("cordoned", 30, 70)]

    def test_an_execution_that_goes_on_does_not_know_since_when_old_nodes_were_cordoned(self):
        facts = an_upgrade_of_two()
        steps = [replace(step, output={**step.output, "attempt": 2}) for step in facts.steps]
        assert spans(drawn(replace(facts, steps=steps)), OLD)[0][0] != "ready"

    def test_each_attempt_at_a_node_is_drawn_and_it_serves_in_between(self):
        first = Story(
            attempt=1,
            steps=[
                a_step("Drain", 40, 60, next="failed", why=BLOCKED),
                a_step("ReturnNodeToService", 60, 61, next="returned-to-service"),
            ],
        )
        again = reported_by_upgrade(OLD, attempt=2, times={name: seconds + 100 for name, seconds in TIMES.items()})
        again = replace(again, times={**again.times, "claimed": at(0)})
        second = Story(attempt=2, steps=a_story(begin=100, blocked=False))
        record = drawn(an_upgrade_of_two(records=[again], stories={OLD: (first, second)}))
        assert [phase for phase, _, _ in spans(record, OLD)] == [
            *("ready", "cordoned", "draining", "ready", "cordoned", "draining", "settling", "terminated")
        ]


class TestARound:
    def test_its_nodes_are_marked_together_and_leave_one_by_one(self):
        record = a_disruption()
        nodes = dict(record.nodes)
        (name, old), *_ = nodes.items()
        cause = Cause(id=f"disruption#{record.cluster}#{record.number}#{old}", kind=CauseKind.UNDERUTILIZED, at=at(30))
        termination = a_termination(old, causes=[cause])
        termination = replace(termination, subject=replace(termination.subject, node=name))
        given = {"cluster": record.cluster, "disruption": record.number}
        execution = an_execution(Machine.DISRUPTION, f"{record.cluster}-{record.number}-1", given=given)
        steps = [
            a_step("TaintNodes", 1, 2, next="launch", why="tainted 3 nodes"),
            a_step("FollowTerminations", 80, 90, next="end", why="3 terminations have come to their end"),
            a_step("DisruptionDone", 99, 100, next="done", why="done"),
        ]
        facts = facts_of(execution, steps, records=[termination], stories={}, touched=(old,), disruption=record)
        found = drawn(replace(facts, cluster=record.cluster, number=record.number))
        assert spans(found, old)[:3] == [("ready", -2, 2), ("cordoned", 2, 6), ("draining", 6, 40)]
        assert texts(found, MarkKind.EVENT) == []
        assert texts(found)[0] == "TaintNodes: tainted 3 nodes"


def test_an_instance_of_which_nothing_is_known_has_a_lane_without_spans():
    record = drawn(facts_of(an_execution(Machine.UPGRADE, "x-1"), [], touched=("i-0strange",)))
    assert record.nodes[0].spans == ()


def test_ec2_names_group_and_kind_where_no_record_does():
    facts = facts_of(touched=(OLD,), instances={OLD: an_instance(OLD)})
    (node,) = drawn(facts).nodes
    assert (node.group, node.capacity_type, node.zone) == (GROUP, "spot", "us-east-1a")


@pytest.mark.parametrize("room", ["termination", "upgrade", "disruption"])
def test_every_state_that_is_looked_for_exists(room):
    machine = read_definition(Path(f"functions/leeward/{room}/state_machine.asl.yaml"))
    of_room = {"termination": Machine.TERMINATION, "upgrade": Machine.UPGRADE, "disruption": Machine.DISRUPTION}[room]
    wanted = {lanes._CORDONS[of_room]} if of_room in lanes._CORDONS else set()
    if room == "termination":
        wanted |= node_markers.PAUSES | node_markers.SAID_ONCE | {"Drain", "AnswerHooks", "RemoveNode", "Finish"}
    assert wanted <= machine["States"].keys()
    assert {
        name
        for name, state in read_definition(Path("functions/leeward/termination/state_machine.asl.yaml"))[
            "States"
        ].items()
        if re.search("waitForTaskToken", str(state.get("Resource")))
    } == node_markers.PAUSES
