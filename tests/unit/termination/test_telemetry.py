"""What an operator is reported of a step: one line, and a metric where one is declared."""

from dataclasses import replace

import pytest

from leeward.termination import telemetry
from leeward.termination.run import Next, Notice, NoticeKind, Run
from tests.emitted import series_of


@pytest.fixture
def counted(monkeypatch):
    found = {}
    monkeypatch.setattr(telemetry.telemetry, "count", found.update)
    return found


def a_run(*notices, **more):
    return Run(instance="i-0abc", attempt=1, version=1, next=Next.DRAIN, notices=notices, **more)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        (NoticeKind.STALE_FACTS, "StaleFacts"),
        (NoticeKind.ELSEWHERE, "ReplacementsElsewhere"),
        (NoticeKind.NOWHERE, "ReplacementsNowhere"),
    ],
)
def test_a_notice_is_a_warning_in_the_log_and_counted(counted, monkeypatch, kind, metric):
    lines = []
    monkeypatch.setattr(telemetry.telemetry, "warning", lambda *said: lines.append(said))
    telemetry.stepped("replace", a_run(Notice(kind=kind, text="why")))
    assert counted == {metric: 1}
    assert lines == [("why", {"step": "replace", "instance": "i-0abc", "notice": kind.value})]


def test_a_step_without_anything_to_show_counts_nothing(counted):
    telemetry.stepped("replace", a_run())
    assert counted == {}


def test_notices_do_not_travel_with_the_document():
    assert "notices" not in a_run(Notice(kind=NoticeKind.NOWHERE, text="why")).to_json()


@pytest.mark.parametrize(
    ("step", "result", "metric"),
    [
        ("finish", Next.DONE, "NodesTerminated"),
        ("return-to-service", Next.RETURNED_TO_SERVICE, "PodEvictionFailures"),
        ("note-failure", Next.FAILED, "StepsFailed"),
    ],
)
def test_how_a_termination_ended_is_counted_for_its_cluster_and_group(capsys, step, result, metric):
    telemetry.stepped(step, replace(a_run(), next=result, cluster="blue", group="web"))
    service = {"service": "termination"}
    assert series_of(capsys.readouterr().out, metric) == [
        service,
        service | {"cluster": "blue"},
        service | {"cluster": "blue", "group": "web"},
    ]


def test_a_termination_of_an_unknown_group_is_counted_for_the_deployment(capsys):
    telemetry.stepped("note-failure", replace(a_run(), next=Next.FAILED))
    assert series_of(capsys.readouterr().out, "StepsFailed") == [{"service": "termination"}]
