"""`leeward report --weeks N --cluster NAME --to FILE.html`, with records and histories in memory."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.errors import AccessDeniedError, ThrottledError
from leeward.model.execution import Machine
from leeward.model.termination import CauseKind, execution_name
from leeward.model.times import format_instant
from tests.fakes.builders import CLUSTER
from tests.fakes.calls import Calls
from tests.fakes.past import FakePast
from tests.fakes.system import FakeSystem
from tests.unit.cli.report.execution import a_step, an_execution, at
from tests.unit.cli.report.weeks import END, MONDAY, an_ended

SCHEMA = json.loads(Path("docs/schema/report-weeks.json").read_text())
API = "shop/api-1: pdb shop/api (allows 0 now, 2 healthy of 2 wanted)"


class FakePastTerminations(Calls):
    """Records of one cluster."""

    def __init__(self):
        super().__init__()
        self.records = []

    def of_cluster(self, cluster):
        self._call("of_cluster")
        return [record for record in self.records if record.subject.cluster == cluster]


@pytest.fixture
def system(monkeypatch):
    found = FakeSystem()
    found.past, found.terminations, found.asked_for = FakePast(), FakePastTerminations(), []

    def history(cluster, region=None, account=None):
        found.asked_for.append((cluster, region, account))
        return found.ports, found.past, found.terminations

    monkeypatch.setattr(wiring, "command_line_history", history)
    return found


def weeks(leeward, tmp_path, *options, number=1, now=END):
    page = tmp_path / "week.html"
    given = ("--weeks", str(number), "--to", page, "--cluster", CLUSTER, "--now", format_instant(now), *options)
    return leeward("report", *given), page


@pytest.fixture
def figures(leeward, system, tmp_path):
    """The figures as JSON; the page is there too."""

    def run(**given):
        result, page = weeks(leeward, tmp_path, "-o", "json", **given)
        assert result.code == 0, result.err
        jsonschema.validate(result.json, SCHEMA)
        assert result.json["report"] == str(page)
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        return result.json

    return run


def blocked(system, record, *, waits):
    """Step Functions remembers a drain in which one pod did not leave for so many seconds."""
    name = execution_name(record.instance, record.attempt)
    begin = (record.times["draining"] - at(0)).total_seconds()
    steps = [
        a_step("Drain", begin, begin + 1, next="wait", why=API),
        a_step("Drain", begin + waits, begin + 1 + waits, next="drained", why="every pod that has to leave has left"),
    ]
    system.past.put(an_execution(name=name), *steps)


def test_the_page_is_written_and_its_path_printed(leeward, system, tmp_path):
    system.terminations.records = [an_ended(1, CauseKind.SPOT_INTERRUPTION, 1, deadline=120)]
    result, page = weeks(leeward, tmp_path)
    assert (result.code, result.out, result.err) == (0, f"{page}\n", "")
    assert "1 node left, 5 pods moved; 1 of 1 deadline kept" in page.read_text(encoding="utf-8")


def test_records_of_the_cluster_within_the_weeks_are_counted(figures, system):
    elsewhere = an_ended(3, CauseKind.DRIFTED, 1)
    system.terminations.records = [
        an_ended(1, CauseKind.DRIFTED, 1),
        an_ended(2, CauseKind.DRIFTED, -2),
        replace(elsewhere, subject=replace(elsewhere.subject, cluster="other")),
    ]
    found = figures()
    assert (found["nodes"], found["from"], found["to"]) == (1, format_instant(MONDAY), format_instant(END))
    assert found["missing"] == []
    assert figures(number=2)["nodes"] == 2


def test_more_than_a_week_says_that_older_records_are_deleted(figures):
    (said,) = figures(number=2)["missing"]
    assert said.startswith("Terminations that ended before 2026-03-02 00:00 UTC are not included")


def test_blocked_time_comes_from_the_histories_of_drains_that_took_long(figures, system):
    slow, quick = (an_ended(n, CauseKind.DRIFTED, n, drained=seconds) for n, seconds in ((1, 90), (2, 10)))
    system.terminations.records = [slow, quick]
    for record in (slow, quick):
        blocked(system, record, waits=60)
    assert figures()["blocked"] == [{"owner": "pdb shop/api", "pods": 1, "nodes": 1, "seconds": 60.0}]
    assert system.past.asked["steps"] == 1


def test_a_history_that_step_functions_has_deleted_blocks_nothing(figures, system):
    system.terminations.records = [an_ended(1, CauseKind.DRIFTED, 1, drained=90)]
    assert figures()["blocked"] == []


def test_histories_that_cannot_be_read_are_named_and_the_rest_is_there(figures, system):
    system.terminations.records = [an_ended(1, CauseKind.DRIFTED, 1, drained=90)]
    system.past.fail("steps", ThrottledError("states:GetExecutionHistory: rate exceeded"))
    found = figures()
    assert found["nodes"] == 1
    assert "states:GetExecutionHistory" in found["missing"][0]


def test_a_table_that_may_not_be_read_names_the_permission(leeward, system, tmp_path):
    system.terminations.fail("of_cluster", AccessDeniedError("dynamodb:Scan on leeward: denied"))
    result, page = weeks(leeward, tmp_path)
    assert result.code != 0
    assert "needs dynamodb:Scan on the table" in result.err
    assert not page.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "--to", "x.html"), "report: found nothing, expected EXECUTION|RECORD, or --weeks N"),
        (("report", "i-1", "--weeks", "1", "--to", "x.html"), "report: found 'i-1' and --weeks, expected"),
        (("report", "--weeks", "1", "--to", "x.html"), "report: found no --cluster, expected --cluster NAME"),
        (("report", "--weeks", "0", "--to", "x.html"), "found '0', expected a number from 1 to 12"),
        (("report", "--weeks", "99", "--to", "x.html"), "found '99', expected a number from 1 to 12"),
        (
            ("report", "--weeks", "1", "--to", "x.html", "--record", "y.json", "--cluster", "c"),
            "report: found --record with --weeks, expected --to alone",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(leeward, arguments, message):
    assert message in leeward.refuses(*arguments)


def test_a_profile_and_a_region_go_to_the_wiring(leeward, system, tmp_path):
    weeks(leeward, tmp_path, "--region", "eu-west-1", "--account", "111122223333")
    assert system.asked_for == [(CLUSTER, "eu-west-1", "111122223333")]


def test_the_histories_are_those_of_terminations(figures, system, monkeypatch):
    record = an_ended(1, CauseKind.DRIFTED, 1, drained=90, attempt=5)
    system.terminations.records = [record]
    asked = []
    monkeypatch.setattr(system.past, "steps", lambda machine, name: asked.append((machine, name)))
    figures()
    assert asked == [(Machine.TERMINATION, execution_name(record.instance, number)) for number in (3, 4, 5)]
    assert timedelta(days=7) == END - MONDAY
