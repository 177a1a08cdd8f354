"""Which events a change of a disruption run's record causes."""

import json
from dataclasses import replace

from leeward.notifications.workflow_events import RunEventType, events_of_runs
from tests.unit.notifications.workflows import NOON, a_run, run_events

RUNS = a_run()


def turns(before, after):
    return [event.type for event in events_of_runs(before, after, NOON)]


def test_a_run_starts_once_and_ends_once():
    done = run_events()[RunEventType.FINISHED].record
    assert turns(None, RUNS) == [RunEventType.STARTED]
    assert turns(RUNS, replace(RUNS, execution="blue-4-1", requested=True)) == []
    assert turns(RUNS, done) == [RunEventType.FINISHED]
    assert turns(done, replace(done, suspended=(), wanted={})) == []
    assert turns(done, replace(RUNS, number=5)) == [RunEventType.STARTED]


def test_a_start_says_by_whom_what_and_why():
    (event,) = events_of_runs(None, RUNS, NOON)
    assert event.reason == (
        "consolidation: delete node-a; replace node-b: started by its policy: "
        "its pods fit elsewhere; a cheaper node serves"
    )
    (manual,) = events_of_runs(None, replace(RUNS, requested_by="arn:ada"), NOON)
    assert "started by arn:ada" in manual.reason
    assert (manual.detail()["by"], event.detail()["by"]) == ("arn:ada", None)
    assert event.resources == ("blue", "web")


def test_a_finished_run_says_how_many_nodes_are_gone_and_what_that_saves():
    detail = run_events()[RunEventType.FINISHED].detail()
    assert detail["nodes"] == {"planned": 2, "gone": 2, "launched": 1}
    assert (detail["dollarsSavedPerHour"], detail["outcome"]) == (0.152, "done")


def test_a_dropped_run_says_why_and_saves_nothing():
    event = run_events("the pods do not fit any more")[RunEventType.DROPPED]
    assert (event.reason, event.detail()["dollarsSavedPerHour"]) == ("the pods do not fit any more", None)


def test_ids_are_the_same_when_a_change_is_read_again_and_different_otherwise():
    assert run_events() == run_events()
    (other,) = events_of_runs(RUNS, replace(RUNS, number=5), NOON)
    assert len({event.id for event in run_events().values()} | {other.id}) == len(RunEventType) + 1


def test_a_detail_is_plain_json_of_bounded_size():
    nodes = {f"node-{number}": f"i-{number}" for number in range(5000)}
    many = replace(RUNS.commands[0], nodes=tuple(nodes))
    (event,) = events_of_runs(None, a_run(commands=(many,) * 100, nodes=nodes), NOON)
    assert len(json.dumps(event.detail())) < 20_000
