"""A simulated run as a run record: watching changes nothing, the schema holds, and the page draws what happened."""

import json
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.report.page import page
from leeward.cli.report.record import MarkKind, Phase, RunRecord, Source
from simulation.__main__ import main, world_of
from simulation.fault_rates import Faults
from simulation.record import Recorder, is_internal, kind_of
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival

VALID = jsonschema.Draft202012Validator(json.loads(Path("docs/schema/run-record.json").read_text()))
FIRST = "i-00000000000000001"
QUIET = 1800.0


def recorded(kind="spot_warning", faults=None, hours=0.25):
    world = World(1, SMALL, faults or Faults.none(), (Arrival(at_seconds=60, kind=kind),))
    recorder = Recorder(world, hours)
    world.run(hours, converge=QUIET)
    return recorder.record()


def lane(record, instance):
    return next(node for node in record.nodes if node.instance == instance)


def phases(node):
    return [span.phase for span in node.spans]


def test_watching_does_not_change_the_history():
    def digest(*, watched):
        world = world_of(11, 0.5, 40, Faults.all(), nodes=10)
        if watched:
            Recorder(world, 0.5)
        return world.run(0.5, converge=QUIET).digest

    assert digest(watched=True) == digest(watched=False)


def test_the_record_of_a_generated_run_is_as_its_schema_says_and_makes_a_page():
    world = world_of(11, 0.5, 60, Faults.all(), nodes=10)
    recorder = Recorder(world, 0.5)
    world.run(0.5, converge=QUIET)
    document = json.loads(json.dumps(recorder.record().to_json()))
    VALID.validate(document)
    record = RunRecord.from_json(document)
    assert record.source is Source.SIMULATION
    assert len(record.nodes) >= 10
    assert {mark.kind for mark in record.marks} >= {MarkKind.EVENT, MarkKind.FAULT, MarkKind.DECISION}
    text = page(record)
    assert all(node.name in text for node in record.nodes)
    assert all(workload.name in text for workload in record.workloads)


def test_a_warned_node_goes_through_its_phases_and_another_is_launched():
    record = recorded()
    assert phases(lane(record, FIRST))[0] is Phase.READY
    assert phases(lane(record, FIRST))[-3:] == [Phase.DRAINING, Phase.SETTLING, Phase.TERMINATED]
    assert phases(lane(record, "i-00000000000000004")) == [Phase.LAUNCHING, Phase.READY]
    assert phases(lane(record, "i-00000000000000002")) == [Phase.READY]
    for node in record.nodes:
        assert [span.begin for span in node.spans[1:]] == [span.end for span in node.spans[:-1]]
        assert node.spans[-1].end == record.end


def test_a_cordoned_node_is_drawn_so_until_it_is_uncordoned():
    assert phases(lane(recorded("operator_cordon", hours=0.5), FIRST)) == [Phase.READY, Phase.CORDONED, Phase.READY]


def test_a_workload_has_its_size_its_minimum_and_every_pod_that_was_missed():
    (web,) = recorded().workloads
    assert (web.name, web.desired, web.minimum) == ("web", 4, 3)
    assert [sample.ready for sample in web.held][-1] == 4
    assert web.lowest == 3
    assert not web.under


def test_marks_show_what_came_and_what_was_decided_at_the_node_that_it_is_about():
    marks = [mark for mark in recorded().marks if mark.node == f"node-{FIRST}"]
    assert marks[0].kind is MarkKind.EVENT
    assert marks[0].text == f"event EC2 Spot Instance Interruption Warning: {FIRST}"
    assert any(mark.kind is MarkKind.DECISION and "launched i-00000000000000004" in mark.text for mark in marks)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("event EC2 Spot Instance Interruption Warning: i-1", MarkKind.EVENT),
        ("an operator cordons node-1", MarkKind.EVENT),
        ("terminate replace i-1: drain: launched i-2", MarkKind.DECISION),
        ("execution i-1-1: SUCCEEDED Terminated", MarkKind.DECISION),
        ("drain drain i-1: wait: default/web-1: pdb default/web", MarkKind.BLOCKED),
        ("drain drain i-1: wait: 2 pods are terminating", None),
        ("drain drain i-1: wait: waiting for an answer, nothing is ended meanwhile: list pods", MarkKind.FAULT),
        ("drain drain i-1: ThrottledError: rate exceeded", MarkKind.FAULT),
        ("killed before groups.hooks", MarkKind.FAULT),
    ],
)
def test_each_line_of_the_story_is_of_one_kind(line, kind):
    assert kind_of(line) is kind


@pytest.mark.parametrize(
    ("line", "internal"),
    [
        ("terminate claim i-1: replace: spot_interruption", False),
        ("drain replace i-1: drain: launched i-2", False),
        ("terminate answer i-1: remove: EC2 says shutting-down", True),
        ("execution i-1-1: SUCCEEDED Terminated", True),
        ("event EC2 Spot Instance Interruption Warning: i-1", False),
        ("event EC2 Instance State-change Notification: i-1 terminated", True),
        ("drain drain i-1: ThrottledError: rate exceeded", False),
    ],
)
def test_steps_that_the_phases_show_are_internal(line, internal):
    kind = kind_of(line)
    assert kind is not None
    assert is_internal(line, kind) is internal


def test_the_command_writes_the_record_of_one_seed(tmp_path, capsys):
    target = tmp_path / "run.json"
    arguments = ["--seed", "3", "--hours", "0.25", "--nodes", "6", "--no-faults", "--record", str(target)]
    main(arguments)
    record = RunRecord.from_json(json.loads(target.read_text()))
    assert (record.end - record.start).total_seconds() == 0.25 * 3600 + 630
    assert f"record of seed 3: {target}" in capsys.readouterr().out
