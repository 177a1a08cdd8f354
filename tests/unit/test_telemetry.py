"""Log lines as JSON, and metric points as CloudWatch's embedded metric format wants them."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest

from leeward.adapters import powertools
from leeward.telemetry import Telemetry, about, scopes_of


@pytest.fixture
def lines(capsys):
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_line_has_its_level_its_time_its_service_and_what_was_given(lines):
    Telemetry("termination").warning("taint lost", {"instance": "i-0abc", "hook": None, "attempt": 2})
    (line,) = lines()
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    assert line.pop("location").startswith("test_a_line_has_its_level_its_time_its_service_and_what_was_given:")
    assert line == {
        "level": "WARNING",
        "service": "termination",
        "message": "taint lost",
        "instance": "i-0abc",
        "attempt": 2,
    }


def test_no_field_takes_the_place_of_the_message_and_no_text_breaks_the_line(lines):
    Telemetry("termination").error("one\ntwo\x1b[31m", {"message": "another", "level": "none", "service": "none"})
    (line,) = lines()
    assert (line["message"], line["level"], line["service"]) == ("one\ntwo\x1b[31m", "ERROR", "termination")
    assert (line["message_"], line["level_"], line["service_"]) == ("another", "none", "none")


def test_a_field_may_have_any_name(lines):
    """The logging module refuses the names of its own records."""
    names = sorted(vars(logging.makeLogRecord({})))
    Telemetry("termination").info("said", dict.fromkeys(names, "i-0abc"))
    (line,) = lines()
    assert line["message"] == "said"
    assert [name for name in names if line[f"{name}_"] != "i-0abc"] == []


@pytest.mark.parametrize("message", ["null", "5", '{"level": "ERROR"}', "100 % of %s"])
def test_a_message_stays_text(lines, message):
    Telemetry("termination").info(message)
    (line,) = lines()
    assert (line["message"], line["level"]) == (message, "INFO")


def test_a_field_that_is_no_json_is_written_as_its_text(lines):
    Telemetry("termination").info("said", {"at": datetime(2026, 3, 2, tzinfo=UTC), "lone": "\ud800"})
    (line,) = lines()
    assert (line["at"], line["lone"]) == ("2026-03-02 00:00:00+00:00", "\ud800")


def test_control_characters_are_never_written_raw(capsys):
    Telemetry("termination").info("\x1b[31m\u202e", {"why": "\x07"})
    assert all(character.isprintable() for character in capsys.readouterr().out.rstrip("\n"))


@pytest.mark.parametrize(
    ("level", "kept"),
    [("DEBUG", 3), ("INFO", 3), ("warning", 2), ("ERROR", 1), ("LOUD", 3), ("", 3)],
)
def test_the_level_that_the_deployment_sets_leaves_out_what_is_below(lines, monkeypatch, level, kept):
    monkeypatch.setenv("LOG_LEVEL", level)
    powertools.LOGGER.setLevel(powertools.least_level())
    monkeypatch.delenv("LOG_LEVEL")
    telemetry = Telemetry("sync")
    telemetry.info("a")
    telemetry.warning("b")
    telemetry.error("c")
    telemetry.count({"HooksPut": 1})
    powertools.LOGGER.setLevel(powertools.least_level())
    assert len(lines()) == kept + 1


def test_points_are_in_the_embedded_metric_format(lines):
    Telemetry("sync").count({"HooksPut": 2, "NodesLabelled": 5})
    (point,) = lines()
    (directive,) = point["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Leeward"
    assert directive["Metrics"] == [{"Name": "HooksPut", "Unit": "Count"}, {"Name": "NodesLabelled", "Unit": "Count"}]
    for dimension in directive["Dimensions"][0]:
        assert isinstance(point[dimension], str)
    assert [point[metric["Name"]] for metric in directive["Metrics"]] == [[2], [5]]
    assert 1.7e12 < point["_aws"]["Timestamp"] < 1e13


def test_a_point_of_zero_is_not_sent(lines):
    Telemetry("sync").count({"HooksPut": 0, "NodesLabelled": 5})
    Telemetry("sync").count({"HooksPut": 0})
    (point,) = lines()
    assert "HooksPut" not in json.dumps(point)


def test_a_point_is_in_the_series_of_the_deployment_the_cluster_and_the_group(lines):
    Telemetry("upgrade").count({"GroupsUpgraded": 1}, *scopes_of("blue", "web"))
    (point,) = lines()
    (directive,) = point["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["service"], ["service", "cluster"], ["service", "cluster", "group"]]
    assert (point["cluster"], point["group"]) == ("blue", "web")


@pytest.mark.parametrize(("named", "series"), [(("", ""), 1), (("", "web"), 1), (("blue", ""), 2)])
def test_a_series_needs_the_names_of_all_its_dimensions(named, series):
    assert len(scopes_of(*named)) == series


def test_dollars_have_no_unit_and_keep_their_cents(lines):
    Telemetry("disruption").count({"DollarsSavedPerHour": 0.096}, {"cluster": "blue"}, unit="None")
    (point,) = lines()
    assert point["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "DollarsSavedPerHour", "Unit": "None"}]
    assert point["DollarsSavedPerHour"] == [0.096]


def test_another_deployment_in_the_account_has_a_namespace_of_its_own(lines, monkeypatch):
    monkeypatch.setenv("METRICS_NAMESPACE", "Leeward/trial")
    Telemetry("sync").count({"HooksPut": 1})
    (point,) = lines()
    assert point["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Leeward/trial"


def test_a_series_with_an_empty_name_is_left_out(lines):
    """CloudWatch takes no empty value, and Powertools would send the point to the series without the dimension."""
    Telemetry("reconcile").count({"NodesBlocked": 1}, {"cluster": "", "cause": "budget"}, {"cluster": "blue"})
    Telemetry("reconcile").count({"NodesBlocked": 1}, {"cluster": ""})
    (point,) = lines()
    assert point["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service", "cluster"]]


def test_the_order_of_the_series_is_free(lines):
    Telemetry("sync").count({"HooksPut": 1}, {"cluster": "blue"}, {})
    (point,) = lines()
    assert point["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"], ["service", "cluster"]]


def test_keys_of_a_message_are_in_its_lines_alone(lines):
    telemetry = Telemetry("aws")
    with about(messageId="m0", eventId=None):
        with about(messageId="m1"):
            telemetry.info("a")
        telemetry.info("b")
    telemetry.info("c")
    assert [line.get("messageId") for line in lines()] == ["m1", "m0", None]


def test_threads_keep_their_keys_apart(lines):
    """Messages are handled side by side; each thread waits for all others between its key and its line."""
    together = Barrier(8)

    def handle(number):
        with about(messageId=f"m{number}"):
            together.wait()
            Telemetry("aws").info(str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(handle, range(8)))
        list(pool.map(lambda _: Telemetry("aws").info("after"), range(8)))
    written = lines()
    assert {line["message"]: line["messageId"] for line in written[:8]} == {str(n): f"m{n}" for n in range(8)}
    assert [line.get("messageId") for line in written[8:]] == [None] * 8
