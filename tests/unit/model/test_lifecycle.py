"""Lifecycle states of Auto Scaling: an open set, and each of them has a role."""

import ast
from itertools import product
from pathlib import Path

import pytest
from botocore.session import get_session

from leeward.model.lifecycle import IN_WORK, LifecycleRole, is_held, known_states, may_be_ended, role_of
from leeward.upgrade.members import Absence, UpgradeTarget, left_out, members
from tests.fakes.builders import GROUP, a_group, a_node

API = frozenset(get_session().get_service_model("autoscaling").shape_for("LifecycleState").enum)
UNKNOWN = ("Rebooting", "Rebooting:Wait", "Terminating:Someday", "", "inservice")
# Words that mean something else as well: pod phases, hook transitions, states of EC2
AMBIGUOUS = frozenset({"Pending", "Terminated", "Terminating", "Detached"})


def test_every_state_of_the_api_has_a_role_and_no_other():
    """A newer botocore brings new states: give each a role, and read who asks for roles."""
    assert known_states() == API


@pytest.mark.parametrize("state", UNKNOWN)
def test_an_unknown_state_is_no_candidate_and_its_instance_is_never_ended(state):
    assert role_of(state) is LifecycleRole.UNKNOWN
    assert not any(may_be_ended(state, anyway=anyway) for anyway in (True, False))
    group = a_group(GROUP, "i-0abc", lifecycle=state)
    nodes = {"i-0abc": a_node()}
    assert members(group, nodes, UpgradeTarget()) == ()
    assert [one.absence for one in left_out(group, nodes, UpgradeTarget())] == [Absence.UNKNOWN]


@pytest.mark.parametrize("state", sorted(state for state in API if role_of(state) in IN_WORK))
def test_an_instance_whose_root_volume_is_replaced_is_ended_only_by_force_and_no_member_of_an_upgrade(state):
    assert (may_be_ended(state, anyway=False), may_be_ended(state, anyway=True)) == (False, True)
    assert [one.absence for one in left_out(a_group(GROUP, "i-0abc", lifecycle=state), {}, UpgradeTarget())] == [
        Absence.ROOT_VOLUME
    ]


def test_terminate_hooks_hold_an_instance_that_ends_or_stays():
    held = {state for state in (*API, *UNKNOWN) if is_held(state)}
    assert held == {"Terminating:Wait", "ReplacingRootVolume:Wait", "Rebooting:Wait"}
    assert not is_held(None)


def test_no_other_module_reads_lifecycle_states():
    """A prefix that one module tests for itself is a state that it misreads when AWS adds another."""
    words = (API | {state.partition(":")[0] + suffix for state, suffix in product(API, ("", ":"))}) - AMBIGUOUS
    offenders = [
        f"{path}:{node.lineno}: {node.value}"
        for path in sorted(Path("functions/leeward").rglob("*.py"))
        if path.name != "lifecycle.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in words
    ]
    assert offenders == []
