"""What an operator is reported of a step: one line, and a metric where one is declared."""

import pytest

from leeward.termination import telemetry
from leeward.termination.run import Next, Notice, NoticeKind, Run


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
