"""A message whose handling goes on failing rings an alarm in time, by the product's own redelivery and metric."""

import json
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError
from leeward.interruption import handler
from leeward.interruption.redelivery import delay_seconds
from tests.emitted import value_of
from tests.events import event
from tests.handlers.interruption.conftest import SENT, a_system
from tests.infra.test_operations import alarms, dimensions

SPOT_WARNING = 120  # seconds
QUEUES = "arn:aws:sqs:us-east-1:111122223333:leeward-"


def record(queue, receives):
    return {
        "messageId": "m0",
        "receiptHandle": "r0",
        "body": event("spot_interruption"),
        "eventSourceARN": f"{QUEUES}{queue}",
        "attributes": {"SentTimestamp": str(SENT), "ApproximateReceiveCount": str(receives)},
    }


def deliveries(monkeypatch, capsys, queue, alarm):
    """[(seconds since the message was sent, the alarm's metric)] of all sixty deliveries, each of which fails."""
    system, found, seconds = a_system(), [], 1
    system.claims.fail("claim", AccessDeniedError("not allowed to claim"))
    monkeypatch.setattr(handler, "ports", lambda _context: system.ports)
    system.clock.advance(seconds=seconds)
    for receives in range(1, 61):
        answer = handler.handle({"Records": [record(queue, receives)]}, None)
        assert answer["batchItemFailures"]
        value = value_of(capsys.readouterr().out, alarm["MetricName"], **dimensions(alarm))
        found.append((seconds, value))
        seconds += delay_seconds(receives)
        system.clock.advance(seconds=delay_seconds(receives))
    return found


def states(alarm, points):
    """The alarm's state after each minute, as CloudWatch finds it: the maximum of each minute, no data no breach."""
    minutes = points[-1][0] // alarm["Period"] + 1
    breaching = [
        any(value >= alarm["Threshold"] for at, value in points if at // alarm["Period"] == minute)
        for minute in range(minutes)
    ]
    return [any(breaching[max(0, end - alarm["EvaluationPeriods"]) : end]) for end in range(1, minutes + 1)]


@pytest.mark.parametrize(
    ("queue", "name", "by"),
    [("interruption", "interruptions-failing", SPOT_WARNING), ("state-changes", "state-changes-failing", 900)],
)
def test_a_lasting_failure_rings_in_time_and_until_the_dead_letters(template, monkeypatch, capsys, queue, name, by):
    alarm = alarms(template)[f"leeward-{name}"]
    points = deliveries(monkeypatch, capsys, queue, alarm)
    assert all(value == pytest.approx(at) for at, value in points)
    ringing = states(alarm, points)
    first = ringing.index(True)
    assert (first + 1) * alarm["Period"] <= by
    assert all(ringing[first:])
    assert points[-1][0] > timedelta(hours=2).total_seconds()


def test_a_message_that_succeeds_in_the_end_has_no_age(template, monkeypatch, capsys):
    system = a_system()
    monkeypatch.setattr(handler, "ports", lambda _context: system.ports)
    assert handler.handle({"Records": [record("interruption", 1)]}, None) == {"batchItemFailures": []}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not [line for line in lines if "OldestInterruptionRetried" in line]
