"""What each line and point of an invocation says, whichever package writes it."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jsonschema
import pytest
from aws_lambda_powertools.logging import logger as powertools_logger

from leeward.adapters.entry import LONGEST, entry_point, subject_of
from leeward.adapters.powertools import LOGGER
from leeward.telemetry import Telemetry, about, scopes_of

# CloudWatch's embedded metric format, as its specification gives the schema
TEXT = {"type": "string", "minLength": 1, "maxLength": 1024}
METRIC = {"type": "object", "properties": {"Name": TEXT, "Unit": TEXT}, "required": ["Name"]}
SERIES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 250}, "maxItems": 30}
DIRECTIVE = {
    "type": "object",
    "properties": {
        "Namespace": {"type": "string", "minLength": 1, "maxLength": 256},
        "Dimensions": {"type": "array", "items": SERIES, "minItems": 1},
        "Metrics": {"type": "array", "items": METRIC, "minItems": 1, "maxItems": 100},
    },
    "required": ["Namespace", "Dimensions", "Metrics"],
}
EMBEDDED = {
    "type": "object",
    "properties": {
        "_aws": {
            "type": "object",
            "properties": {
                "Timestamp": {"type": "integer", "minimum": 0},
                "CloudWatchMetrics": {"type": "array", "items": DIRECTIVE, "minItems": 1},
            },
            "required": ["Timestamp", "CloudWatchMetrics"],
        }
    },
    "required": ["_aws"],
}
STEP = {"step": "drain", "run": {"instance": "i-0abc", "attempt": 2, "node": "node-a", "cluster": "blue", "group": ""}}
OF_STEP = {
    "correlation_id": "i-0abc-2",
    "execution": "i-0abc-2",
    "step": "drain",
    "instance": "i-0abc",
    "node": "node-a",
    "cluster": "blue",
}


@dataclass
class Context:
    """Lambda's context of one invocation."""

    aws_request_id: str = "r1"
    function_name: str = "leeward-drain"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:111122223333:function:leeward-drain"


@pytest.fixture
def written(capsys, monkeypatch):
    """`written()`: the lines so far. The process is as new; the keys of the last invocation do not stay."""
    monkeypatch.setattr(powertools_logger, "is_cold_start", True)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5e8fc8c1-36f6;Parent=53995c3f42cd8ad8;Sampled=1")
    yield lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    LOGGER.clear_state()


def a_function(*effects):
    """An entry point that does so much."""

    @entry_point("termination")
    def handle(event, context):
        for effect in effects:
            effect()
        return {}

    return handle


def points(lines):
    return [line for line in lines if "_aws" in line]


def said(lines):
    return [line for line in lines if "_aws" not in line]


def test_a_line_of_any_package_names_the_invocation_and_its_subject(written):
    handle = a_function(lambda: Telemetry("aws").info("AWS throttles a call", {"call": "ec2:DescribeInstances"}))
    handle(STEP, Context())
    (line,) = said(written())
    assert line.pop("timestamp")
    assert line.pop("location")
    assert line == {
        "level": "INFO",
        "service": "aws",
        "message": "AWS throttles a call",
        "call": "ec2:DescribeInstances",
        "function_name": "leeward-drain",
        "function_request_id": "r1",
        "cold_start": True,
        "xray_trace_id": "1-5e8fc8c1-36f6",
        **OF_STEP,
    }


def test_nothing_of_an_invocation_stays_for_the_next(written):
    """Not its keys, not those of a thread of the pool or of a message that failed, not its points."""

    def fail():
        with about(messageId="m0"):
            raise KeyError("node-a")

    with pytest.raises(KeyError):
        a_function(lambda: Telemetry("aws").count({"CallsThrottled": 1}), fail)(STEP, Context())
    first = written()
    assert said(first)[0]["message"] == "'node-a'"
    assert said(first)[0]["exception_name"] == "KeyError"
    assert [name for line in points(first) for name in line if name == "CallsThrottled"] == ["CallsThrottled"]
    a_function(lambda: Telemetry("aws").info("said"))({"Records": []}, Context(aws_request_id="r2"))
    (line,) = written()
    assert line["function_request_id"] == "r2"
    assert line["cold_start"] is False
    assert [key for key in (*OF_STEP, "messageId") if key in line] == []
    assert [key for key in ("level", "location", "message", "timestamp", "service") if not line.get(key)] == []


def test_threads_of_an_invocation_have_its_keys(written):
    def effects():
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: Telemetry("aws").info(str(number)), range(4)))

    a_function(effects)(STEP, Context())
    assert {line["message"]: line["execution"] for line in said(written())} == dict.fromkeys("0123", "i-0abc-2")


def test_a_cold_start_is_counted_once_by_function_and_service(written):
    a_function()(STEP, Context())
    a_function()(STEP, Context())
    (line,) = written()
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Metrics"]) == ("Leeward", [{"Name": "ColdStart", "Unit": "Count"}])
    assert [set(series) for series in directive["Dimensions"]] == [{"function_name", "service"}]
    assert (line["function_name"], line["service"]) == ("leeward-drain", "termination")


def test_points_of_an_invocation_are_one_line_for_each_set_of_series(written):
    deployment, cluster = Telemetry("aws"), Telemetry("termination")
    a_function(
        *[lambda: deployment.count({"CallsThrottled": 1})] * 3,
        lambda: cluster.count({"NodesTerminated": 1}, *scopes_of("blue", "web")),
        lambda: cluster.count({"StepsFailed": 1}, *scopes_of("blue", "web")),
    )(STEP, Context())
    _cold, throttled, ended = points(written())
    assert throttled["CallsThrottled"] == [1, 1, 1]
    assert (ended["NodesTerminated"], ended["StepsFailed"]) == ([1], [1])


class _Broken:
    def __str__(self):
        raise RuntimeError("no text")


def a_cycle():
    cycle = {}
    cycle["again"] = cycle
    return cycle


@pytest.mark.parametrize("value", [float("nan"), float("inf"), _Broken(), a_cycle(), {1: float("nan")}])
def test_a_value_that_json_does_not_have_loses_no_line(written, value):
    telemetry = Telemetry("termination")
    a_function(lambda: telemetry.info("drained", {"strange": value, "node": "node-b"}))(STEP, Context())
    (line,) = said(written())
    assert (line["message"], line["node"], line["function_request_id"]) == ("drained", "node-b", "r1")
    assert isinstance(line["strange"], str)


def test_a_point_that_is_not_finite_is_left_out_with_a_line(written):
    telemetry = Telemetry("termination")
    a_function(lambda: telemetry.count({"Drains": 1, "Seconds": float("nan")}))(STEP, Context())
    lines = written()
    assert [line["metric"] for line in said(lines)] == ["Seconds"]
    assert sum("Drains" in line for line in points(lines)) == 1


def test_every_point_is_in_the_embedded_metric_format_whatever_their_number(written):
    def storm():
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: Telemetry("aws").count({"CallsThrottled": 1}), range(250)))
        many = {f"Metric{number}": number + 1 for number in range(130)}
        Telemetry("disruption").count(many, *scopes_of("blue", "web"), unit="None")

    a_function(storm)(STEP, Context())
    lines = points(written())
    for line in lines:
        jsonschema.validate(line, EMBEDDED)
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert all(isinstance(line[dimension], str) for series in directive["Dimensions"] for dimension in series)
        assert all(0 < len(line[metric["Name"]]) <= 100 for metric in directive["Metrics"])
    assert sum(len(line.get("CallsThrottled", ())) for line in lines) == 250
    assert len({name for line in lines for name in line if name.startswith("Metric")}) == 130


@pytest.mark.parametrize(
    ("event", "keys"),
    [
        (STEP, OF_STEP),
        (
            {"step": "claim", "run": {"instance": "i-0abc"}, "execution": "manual"},
            {"correlation_id": "manual", "execution": "manual", "step": "claim", "instance": "i-0abc"},
        ),
        (
            {"step": "gate", "run": {"execution": "web-1", "group": "web"}},
            {"correlation_id": "web-1", "execution": "web-1", "step": "gate", "group": "web"},
        ),
        ({"id": "e1", "detail-type": "Scheduled Event", "detail": {}}, {"correlation_id": "e1"}),
        (
            {"id": "e1", "detail-type": "Step Functions Execution Status Change", "detail": {"name": "web-1"}},
            {"correlation_id": "e1", "execution": "web-1"},
        ),
        ({"Records": [{"messageId": "m0"}]}, {"correlation_id": "m0"}),
        ({"Records": [{"eventID": "c0"}]}, {"correlation_id": "c0"}),
        ({"Records": [{"messageId": "m0"}, {"messageId": "m1"}]}, {}),
        ({"step": ["x"], "run": "i-0abc"}, {}),
        ({"step": "claim", "run": {"instance": {"x": 1}, "attempt": "y"}}, {"step": "claim"}),
        ({"check": "accounts"}, {}),
        ([], {}),
        (None, {}),
    ],
)
def test_the_subject_of_an_event_is_read_without_trust(event, keys):
    found = subject_of(event)
    assert {name: found.get(name) for name in keys} == keys
    assert set(found) <= {*keys, "correlation_id", "execution"}


def test_no_name_makes_every_line_long():
    assert {len(value) for value in subject_of({"step": "x" * 9999, "run": {}}).values()} == {LONGEST}


def test_a_call_without_lambda_s_context_reaches_the_handler(written):
    a_function(lambda: Telemetry("aws").count({"CallsThrottled": 1}))(STEP, None)
    (line,) = written()
    assert line["CallsThrottled"] == [1]
