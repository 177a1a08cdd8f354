"""What a run record may say, and how it is reported when it says something else."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.report.record import RunRecord
from leeward.errors import InvalidInputError
from tests.unit.cli.report.run import a_full_record, a_mark, a_record, a_workload, at

SCHEMA = json.loads(Path("docs/schema/run-record.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)


def changed(path, value):
    """The full record's document with one value replaced, or removed when it is `...`."""
    document = copy.deepcopy(a_full_record().to_json())
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


def test_a_record_survives_the_way_through_json():
    record = a_full_record()
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_record_is_as_its_schema_says():
    VALID.validate(a_full_record().to_json())


def test_a_headline_and_steps_of_leeward_itself_survive_too_and_are_left_out_where_there_are_none():
    record = a_record(marks=[a_mark(1), a_mark(2, internal=True)], headline="i-0b was drained")
    document = json.loads(json.dumps(record.to_json()))
    VALID.validate(document)
    assert RunRecord.from_json(document) == record
    assert ["internal" in mark for mark in document["marks"]] == [False, True]
    assert "headline" not in a_record().to_json()


WRONG = [
    (("version",), 2, "version: found 2, expected 1"),
    (("source",), "cloud", "source: found 'cloud', expected one of simulation, local, execution"),
    (("start",), "noon", "start: found 'noon', expected an RFC 3339 time such as 2024-05-01T12:00:00Z"),
    (("start",), "2024-13-01T12:00:00Z", "start: found '2024-13-01T12:00:00Z', expected an RFC 3339 time"),
    (("end",), None, "end: found None, expected an RFC 3339 time"),
    (("nodes",), {}, "nodes: found {}, expected a list"),
    (("nodes", 0), "node-a", "nodes[0]: found 'node-a', expected an object"),
    (("nodes", 1, "name"), "", "nodes[1].name: found '', expected a name"),
    (("nodes", 1, "zone"), 7, "nodes[1].zone: found 7, expected text"),
    (("nodes", 0, "spans", 2, "phase"), "napping", "nodes[0].spans[2].phase: found 'napping', expected one of launch"),
    (("nodes", 0, "spans", 2, "to"), ..., "nodes[0].spans[2].to: found nothing, expected it to be there"),
    (("nodes", 0, "colour"), "red", "nodes[0].colour: found an unknown key, expected one of name, instance"),
    (("workloads", 0, "desired"), -1, "workloads[0].desired: found -1, expected a whole number from 0 to 1000000000"),
    (("workloads", 0, "desired"), 10**9 + 1, "workloads[0].desired: found 1000000001, expected a whole"),
    (("workloads", 0, "desired"), True, "workloads[0].desired: found True, expected a whole number from 0 to"),
    (("workloads", 0, "minimum"), 1.5, "workloads[0].minimum: found 1.5, expected a whole number from 0 to 1000000000"),
    (("workloads", 0, "samples", 1, "ready"), "2", "workloads[0].samples[1].ready: found '2', expected a whole"),
    (("marks", 0, "kind"), "surprise", "marks[0].kind: found 'surprise', expected one of event, blocked, fault"),
    (("marks", 0, "internal"), "no", "marks[0].internal: found 'no', expected true or false"),
    (("headline",), 7, "headline: found 7, expected text"),
    (("marks", 0, "node"), 5, "marks[0].node: found 5, expected a name"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG, ids=[message.split(",")[0] for _, _, message in WRONG])
def test_what_is_wrong_is_named_with_what_was_found_and_expected(path, value, message):
    document = changed(path, value)
    with pytest.raises(InvalidInputError) as error:
        RunRecord.from_json(document)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(("path", "value", "_"), WRONG, ids=[message.split(",")[0] for _, _, message in WRONG])
def test_the_schema_refuses_the_same(path, value, _):
    if value == "2024-13-01T12:00:00Z":
        return  # a calendar is beyond a pattern
    assert not VALID.is_valid(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("end",), "2024-05-01T11:00:00Z", "end: found 2024-05-01T11:00:00Z, expected a time not before start"),
        (
            ("nodes", 0, "spans", 0, "to"),
            "2024-05-01T11:00:00Z",
            "nodes[0].spans[0].to: found 2024-05-01T11:00:00Z, expected a time not before from",
        ),
        (
            ("workloads", 0, "samples", 1, "at"),
            "2024-05-01T11:00:00Z",
            "workloads[0].samples[1].at: found 2024-05-01T11:00:00Z, expected a time not before the sample before it",
        ),
    ],
)
def test_time_does_not_run_backwards(path, value, message):
    with pytest.raises(InvalidInputError) as error:
        RunRecord.from_json(changed(path, value))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("document", [None, [], "text", 3, {}])
def test_what_is_no_record_at_all_is_refused(document):
    with pytest.raises(InvalidInputError, match="found"):
        RunRecord.from_json(document)


def test_a_workload_that_comes_up_is_not_under_its_minimum():
    assert a_workload(ready=((0, 0), (1, 1), (2, 2), (3, 3))).under == frozenset()


def test_a_workload_that_fell_under_its_minimum_says_since_when():
    workload = a_workload(ready=((0, 3), (10, 1), (12, 3), (20, 0), (21, 3)))
    assert workload.under == {at(10), at(20)}
    assert workload.lowest == 0


def test_a_workload_that_never_came_up_all_the_way_is_still_held_to_its_minimum():
    workload = a_workload(desired=5, minimum=2, ready=((0, 2), (10, 1)))
    assert workload.lowest is None
    assert workload.under == {at(10)}


def test_a_workload_without_a_budget_has_no_minimum_to_fall_below():
    assert a_workload(minimum=None, ready=((0, 3), (10, 0))).under == frozenset()


def test_of_several_samples_at_one_moment_the_last_holds():
    workload = a_workload(ready=((0, 3), (10, 1), (10, 3)))
    assert workload.under == frozenset()
    assert workload.lowest == 3
