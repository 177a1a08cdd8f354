"""`leeward pause` and `leeward resume`: what they write, print and refuse."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from tests.cli.command import SMALL
from tests.fakes.builders import CLUSTER, GROUP, a_group
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/pause.json").read_text())
NOW = ("--now", "2026-03-02T10:00:00Z")


@pytest.fixture
def system():
    return FakeSystem(groups=[a_group(GROUP, "i-0abc")])


@pytest.fixture
def command(leeward, deployment):
    def run(*arguments, code=0):
        result = leeward(*arguments, *NOW, "-o", "json")
        assert (result.code, result.err) == (code, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


def test_without_a_cluster_every_cluster_of_the_deployment_is_paused(command, system, deployment):
    (pause,) = command("pause", "--why", "game day", "--for", "2h")["paused"]
    assert pause == {
        "cluster": CLUSTER,
        "group": None,
        "scope": "voluntary",
        "by": deployment.identity().arn,
        "why": "game day",
        "since": "2026-03-02T10:00:00Z",
        "until": "2026-03-02T12:00:00Z",
    }
    (written,) = system.pauses.records[CLUSTER].pauses
    assert (written.why, written.until is not None) == ("game day", True)


def test_in_an_emergency_no_reason_is_needed(command, system):
    assert command("pause", "--all")["paused"][0]["why"] == "no reason given"
    command("resume")
    assert system.pauses.records[CLUSTER].why == "no reason given"


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_named_profile_and_region_are_those_of_every_call(command, monkeypatch, system, deployment, verb):
    asked = []
    reads = {"command_line_deployment": deployment, "command_line_ports": system.ports}
    for name, found in reads.items():
        monkeypatch.setattr(wiring, name, lambda *given, found=found, **named: asked.append((given, named)) or found)
    command(verb, "--why", "game day", "--profile", "ops", "--region", "eu-west-1")
    (own, named), (ports, also) = asked
    assert (own[0], ports[:2]) == ("eu-west-1", (CLUSTER, "eu-west-1"))
    assert named == also == {"profile": "ops"}


def test_a_group_is_paused_alone_and_its_cluster_found_by_its_tag(command, system):
    answer = command("pause", "--group", GROUP, "--all", "--why", "flaky image")
    assert [(one["group"], one["scope"], one["until"]) for one in answer["inForce"]] == [(GROUP, "all", None)]


def test_a_second_pause_replaces_the_first(command):
    command("pause", "--cluster", CLUSTER, "--why", "one")
    answer = command("pause", "--cluster", CLUSTER, "--why", "two")
    assert [one["why"] for one in answer["inForce"]] == ["two"]


def test_resume_ends_what_is_paused_and_says_what_still_is(command, system):
    command("pause", "--why", "game day")
    command("pause", "--group", GROUP, "--why", "flaky image")
    answer = command("resume", "--group", GROUP, "--why", "fixed")
    assert [one["group"] for one in answer["resumed"]] == [GROUP]
    assert [one["group"] for one in answer["inForce"]] == [None]
    record = system.pauses.records[CLUSTER]
    assert (record.by.startswith("arn:"), record.why) == (True, "fixed")


def test_resuming_a_cluster_ends_the_pauses_of_its_groups_too(command):
    command("pause", "--group", GROUP, "--why", "flaky image")
    answer = command("resume", "--cluster", CLUSTER, "--why", "over")
    assert ([one["group"] for one in answer["resumed"]], answer["inForce"]) == ([GROUP], [])


def test_resuming_what_is_not_paused_writes_nothing_and_is_no_error(command, system):
    assert command("resume", "--why", "over") == {"resumed": [], "inForce": []}
    assert system.pauses.asked["write"] == 0


def test_another_writer_is_no_failure_and_five_are(leeward, command, system, monkeypatch):
    write, lost = system.pauses.write, []

    def overtaken(record):
        if len(lost) < 4:
            lost.append(record)
            return write(replace(record, by="another")) and None
        return write(record)

    monkeypatch.setattr(system.pauses, "write", overtaken)
    command("pause", "--why", "game day")
    monkeypatch.setattr(system.pauses, "write", lambda _: None)
    result = leeward("pause", "--why", "another day", *NOW)
    assert (result.code, "changed at each of 5 tries" in result.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pause", "--why", " "), "expected one line"),
        (("pause", "--why", "a\nb"), "expected one line"),
        (("pause", "--why", "x" * 301), "expected one line of at most 300 characters"),
        (("pause", "--why", "x", "--for", "0s"), "expected a duration"),
        (("pause", "--why", "x", "--for", "soon"), "found 'soon', expected a duration"),
        (("pause", "--why", "x", "--group", "unknown"), "found 'unknown', expected an Auto Scaling group"),
        (("pause", "--why", "x", "--snapshot", str(SMALL)), "is paused live"),
        (("resume", "--why", "x", "--snapshot", str(SMALL)), "is paused live"),
    ],
)
def test_bad_input_is_one_message(leeward, deployment, arguments, said):
    result = leeward(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_the_table_says_who_why_and_until_when(leeward, deployment):
    shown = leeward("pause", "--why", "game day", "--for", "2h", *NOW).out
    assert f"paused: cluster {CLUSTER}: disruption, repair and upgrades, until 2026-03-02T12:00:00Z, by arn:" in shown
    assert "game day" in shown


def test_each_pause_has_a_line(leeward, deployment):
    leeward("pause", "--why", "game day", *NOW)
    shown = leeward("resume", "--why", "over", "--group", GROUP, *NOW).out.splitlines()
    assert [line.partition(":")[0] for line in shown] == ["resumed", "still paused"]
