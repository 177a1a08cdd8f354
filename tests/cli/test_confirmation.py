"""Destructive commands say what they will do and ask on a terminal; a script needs --yes."""

import sys
from dataclasses import replace

import pytest

from leeward.adapters import wiring
from leeward.model import well_known
from leeward.model.pod import Pod
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_policy, an_instance, our_hook, policies
from tests.fakes.system import FakeSystem

I = "i-0abc"  # noqa: E741
NODE = f"node-{I}"
DRAIN = ("drain", NODE, "--cluster", CLUSTER, "-o", "json")
UNINSTALL = ("uninstall", "--cluster", CLUSTER, "-o", "json")


@pytest.fixture
def system(monkeypatch):
    """A paused cluster: the finalizer and the hook are Leeward's."""
    found = FakeSystem(
        instances=[an_instance(I)],
        groups=[a_group(GROUP, I)],
        hooks=[our_hook()],
        nodes=[replace(a_node(I), finalizers=(well_known.FINALIZER,))],
        written=policies(a_policy(), paused="all"),
    )
    pod = Pod(namespace="shop", name="web", uid="web", node=NODE, phase="Running")
    found.kubernetes.by_key[pod.key] = pod
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


@pytest.mark.parametrize("command", [DRAIN, UNINSTALL])
def test_without_a_terminal_and_without_yes_nothing_is_done(leeward, system, command):
    reported = leeward.refuses(*command)
    assert reported.startswith(f"{command[0]}: found no terminal to ask on and no --yes, expected --yes")
    assert not system.executions.started
    assert system.kubernetes.by_name[NODE].finalizers


@pytest.mark.parametrize("typed", ["", "n\n", "no\n", "\n", "yess\n"])
@pytest.mark.parametrize("command", [DRAIN, UNINSTALL])
def test_any_answer_but_yes_changes_nothing(leeward, system, answer, command, typed):
    answer(typed)
    result = leeward(*command)
    assert (result.code, result.out) == (1, "")
    assert "not confirmed; nothing was changed" in result.err
    assert not system.executions.started
    assert system.kubernetes.by_name[NODE].finalizers


def test_a_drain_says_that_the_instance_is_terminated_before_it_asks(leeward, system, answer):
    answer("y\n")
    result = leeward(*DRAIN, "--force")
    assert (result.code, result.json["execution"]) == (0, f"{I}-1")
    assert result.err == f"{NODE}: evict 1 pod, then TERMINATE instance {I} of group {GROUP}\nGo on? [y/N] "


def test_a_drain_that_keeps_the_instance_says_so_before_it_asks(leeward, system, answer):
    answer("y\n")
    result = leeward(*DRAIN, "--force", "--keep")
    assert (result.code, result.json["then"]) == (0, "keep")
    said = f"{NODE}: evict 1 pod, then keep instance {I} of group {GROUP} in service, cordoned"
    assert result.err == f"{said}\nGo on? [y/N] "


def test_an_uninstall_says_what_it_removes_before_it_asks(leeward, system, answer):
    answer("YES\n")
    result = leeward(*UNINSTALL)
    assert (result.code, result.json["done"]) == (0, True)
    assert result.err.splitlines()[:2] == [
        f"remove from node {NODE}: finalizer leeward.dev/termination",
        f"remove from group {GROUP}: lifecycle hook leeward-terminate",
    ]


@pytest.mark.parametrize("command", [DRAIN, UNINSTALL])
def test_with_yes_nothing_is_asked_and_nothing_is_said(leeward, system, command):
    result = leeward(*command, "--yes")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("command", [DRAIN, UNINSTALL])
def test_a_dry_run_asks_nothing(leeward, system, command):
    assert leeward(*command, "--dry-run").code == 0
    assert not system.executions.started


def test_a_ctrl_c_at_the_question_changes_nothing(leeward, system, answer, monkeypatch):
    answer("")

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.stdin, "readline", interrupted)
    assert leeward(*DRAIN).code == 130
    assert not system.executions.started
