"""`leeward upgrade start`: pre-flight, a question, following to the end; `status` says error, cause, what next."""

import json
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.upgrade import preflight, requests
from leeward.policy.document import GroupSelector
from leeward.upgrade.preflight.findings import Code, blocker
from leeward.upgrade.record import ControlRequest
from leeward.upgrade.waits import UpgradeWait, track_wait
from tests.cli.test_upgrade_live import a_record
from tests.cli.test_upgrade_live import system as _system
from tests.fakes.builders import CLUSTER, GROUP, a_policy, policies

SCHEMA = json.loads(Path("docs/schema/upgrade-status.json").read_text())
START = ("upgrade", "start", GROUP, "--cluster", CLUSTER)
STATUS = ("upgrade", "status", GROUP, "--cluster", CLUSTER)
system = _system  # the fixture


@pytest.fixture
def unselected(system, monkeypatch):
    """No policy selects the group: a blocker."""
    other = replace(a_policy(), selector=GroupSelector(groups=("other",)))
    monkeypatch.setattr(system.clusters, "policies", lambda cluster: policies(other))
    return system


def test_the_command_of_a_blockers_fix_stands_on_a_line_of_its_own(leeward, system, monkeypatch):
    found = blocker(Code.PDB_NEVER_ALLOWS, "pdb shop/web", "never", "kubectl -n shop edit pdb web: maxUnavailable 1")
    for module in (preflight, requests):
        monkeypatch.setattr(module, "blocking", lambda *_: (found,))
    assert "  kubectl -n shop edit pdb web" in leeward(*START, "--yes").err.splitlines()


def test_a_start_with_a_blocker_exits_1_with_its_findings_and_begins_nothing(leeward, unselected):
    result = leeward(*START, "--yes", "-o", "json")
    assert (result.code, result.json["execution"]) == (1, None)
    assert result.json["said"] == "blocked by NotSelected: nothing was started"
    assert "NotSelected" in {one["code"] for one in result.json["findings"]}
    assert not unselected.upgrade_executions.started


def test_the_sentence_names_the_blocker_its_fix_and_the_way_past_it(leeward, unselected):
    result = leeward(*START, "--yes")
    assert (result.code, result.out) == (1, "")
    assert f"{GROUP}: NotSelected: " in result.err
    assert "; fix: name the group in the selector of a policy" in result.err
    assert "let it pass with --override CODE" in result.err


def test_a_blocker_that_is_overridden_passes(leeward, unselected):
    assert leeward(*START, "--yes", "--override", "NotSelected", "-o", "json").json["execution"] == f"{GROUP}-1"


def test_without_a_terminal_a_start_needs_yes(leeward, system):
    assert leeward.refuses(*START).startswith("upgrade start: found no terminal to ask on and no --yes")
    assert not system.upgrade_executions.started


def test_a_start_says_how_many_nodes_it_terminates_before_it_asks(leeward, system, answer):
    answer("n\n")
    result = leeward(*START)
    assert (result.code, result.out) == (1, "")
    assert f"{GROUP}: drain and TERMINATE " in result.err
    assert "Go on? [y/N]" in result.err
    assert not system.upgrade_executions.started
    answer("y\n")
    assert leeward(*START, "-o", "json").json["execution"] == f"{GROUP}-1"


@pytest.mark.parametrize(
    ("action", "effect"), [("abort", "surplus new nodes are TERMINATED"), ("rollback", "every node")]
)
def test_abort_and_rollback_say_what_they_do_before_they_ask(leeward, system, answer, action, effect):
    a_record(system, ended=None)
    answer("n\n")
    result = leeward("upgrade", action, GROUP, "--cluster", CLUSTER)
    assert result.code == 1
    assert effect in result.err
    assert system.upgrades.records[GROUP].control is ControlRequest.RUN


def test_a_request_that_does_not_apply_is_refused_before_the_question(leeward, system, answer):
    answer("y\n")
    result = leeward("upgrade", "abort", GROUP, "--cluster", CLUSTER)
    assert (result.code, "Go on?" in result.err) == (2, False)


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_pause_and_resume_ask_nothing(leeward, system, action):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert leeward("upgrade", action, GROUP, "--cluster", CLUSTER).code == 0


def test_the_status_of_an_upgrade_that_is_well_has_no_cause(leeward, system):
    """What a step waits for is a key for comparison: it is no sentence and is not shown."""
    a_record(system)
    waited, _ = track_wait(
        system.upgrades.read(GROUP),
        UpgradeWait(what="waiting for nodes to leave", objects=["i-1"], limit=timedelta(hours=1)),
        system.clock,
        system.upgrades,
    )
    system.upgrade_executions.open.add(waited.execution)
    result = leeward(*STATUS)
    assert waited.wait_key
    assert "cause" not in result.out
    assert "attempt" not in result.out
    assert leeward(*STATUS, "-o", "json").json["cause"] is None


@pytest.mark.parametrize(
    ("error", "name", "command"),
    [
        ("PreflightBlocked: PdbNeverAllows: pdb shop/web", "PreflightBlocked", "plan {} --cluster blue --recorded"),
        ("PodEvictionFailure: node-a: pdb shop/web", "PodEvictionFailure", "start {} --cluster blue"),
    ],
)
def test_the_status_of_a_failed_upgrade_says_error_cause_and_the_next_command(leeward, system, error, name, command):
    a_record(system, error=error, ended=system.clock.now())
    found = leeward(*STATUS, "-o", "json").json
    jsonschema.validate(found, SCHEMA)
    assert (found["phase"], found["error"], found["cause"]) == ("failed", name, error.partition(": ")[2])
    assert found["next"] == f"leeward upgrade {command.format(GROUP)}"
    shown = leeward(*STATUS).out
    assert f"error: {name}\n" in shown
    assert f"next: {found['next']}\n" in shown


@pytest.mark.parametrize(
    ("control", "runs", "action"),
    [
        (ControlRequest.PAUSE, False, "resume"),
        (ControlRequest.RUN, False, "start"),
        (ControlRequest.RUN, True, "status"),
    ],
)
def test_the_next_command_follows_from_the_phase(leeward, system, control, runs, action):
    a_record(system, control=control)
    if runs:
        system.upgrade_executions.open.add(f"{GROUP}-1")
    found = leeward(*STATUS, "-o", "json").json
    assert found["error"] is None
    assert found["next"].startswith(f"leeward upgrade {action} {GROUP}")


def ends(system, **more):
    """The upgrade ends while it is followed."""

    def sleep(seconds):
        record = system.upgrades.records.get(GROUP)
        if record is None:
            a_record(system)
            return
        system.upgrade_executions.open.clear()
        system.upgrades.write(replace(record, ended=system.clock.now(), **more))

    system.clock.sleep = sleep


def test_an_upgrade_is_followed_to_its_end_a_line_for_each_change(leeward, system):
    ends(system)
    result = leeward(*START, "--yes", "--watch")
    phases = [line.split(f"{GROUP}: ")[1].partition(":")[0] for line in result.err.splitlines() if f"{GROUP}: " in line]
    assert (result.code, phases[0], phases[-1]) == (0, "starting", "done")
    assert "\x1b" not in result.err
    assert len(phases) == len(set(phases))


def test_an_execution_that_shows_a_moment_after_its_start_is_followed(leeward, system):
    """Step Functions lists it a little later; the failure before it is not the end of this one."""
    a_record(system, error="PodEvictionFailure: node-a", ended=system.clock.now())
    phases = []

    def sleep(_):
        phases.append(len(phases))
        if len(phases) == 1:
            a_record(system)
            system.upgrade_executions.open.add(f"{GROUP}-1")
        else:
            system.upgrade_executions.open.clear()
            record = system.upgrades.records[GROUP]
            system.upgrades.write(replace(record, error="", ended=system.clock.now()))

    system.clock.sleep = sleep
    result = leeward(*STATUS, "--watch")
    assert (result.code, result.err.count(f"{GROUP}: done")) == (0, 1)


def test_a_failure_ends_the_following_with_its_cause_and_exit_1(leeward, system):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    ends(system, error="PodEvictionFailure: node-a: pdb shop/web")
    result = leeward(*STATUS, "--wait")
    assert result.code == 1
    assert "cause: node-a: pdb shop/web" in result.err
    assert f"next: leeward upgrade start {GROUP} --cluster {CLUSTER}" in result.err


def test_a_ctrl_c_leaves_the_upgrade_running_and_says_so(leeward, system):
    def ctrl_c(_):
        raise KeyboardInterrupt

    system.clock.sleep = ctrl_c
    result = leeward(*START, "--yes", "--watch")
    assert result.code == 130
    assert f"not followed any more, and still under way: {GROUP}" in result.err
    assert system.upgrade_executions.open == {f"{GROUP}-1"}


def test_on_a_terminal_the_line_is_redrawn(leeward, system, monkeypatch):
    ends(system)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert "\x1b[2A\r\x1b[J" in leeward(*START, "--yes", "--watch").err


def test_every_action_has_a_help_of_its_own(leeward):
    shown = leeward("help", "upgrade", "pause").out
    assert shown.startswith("usage: leeward upgrade pause ")
    assert "--ami" not in shown
    assert "--ami" in leeward("help", "upgrade", "start").out
