"""Where an upgrade stands, with a record and without one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.policy.document import UpdatePolicy
from leeward.upgrade.control import Hold, Move, Permission
from leeward.upgrade.preflight.plan import (
    BOOT_SECONDS,
    READY_SECONDS,
    Pace,
    boot_seconds,
    drain_seconds,
    surge_cost,
    total_seconds,
)
from leeward.upgrade.record import ControlRequest
from leeward.upgrade.status import UpgradePhase, status_of
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.builders import LAUNCHED, an_instance
from tests.unit.upgrade.builders import NOON, a_node, a_pdb, a_pod, a_policy, a_wave_node, an_upgrade, rivals
from tests.unit.upgrade.test_control import RECORD

OLD_NODES = (a_node("o1"), a_node("o2"))


def phase(*nodes, new=(), record=None, permission=None, **fields):
    return status_of(an_upgrade(*nodes, new=new, **fields), record, permission).phase


def cordoned(*names):
    return tuple(a_node(name, cordoned=True) for name in names)


def test_with_old_nodes_alone_and_none_cordoned_it_has_not_started():
    assert phase(*OLD_NODES) is UpgradePhase.NOT_STARTED
    assert phase(*OLD_NODES, record=RECORD) is UpgradePhase.SCALING_UP


def test_it_scales_up_until_the_gate_opens():
    assert phase(*OLD_NODES, a_node("n1", ready=False), new=("n1",)) is UpgradePhase.SCALING_UP
    assert phase(*OLD_NODES, a_node("n1"), new=("n1",)) is UpgradePhase.CORDONING


def test_with_all_old_nodes_cordoned_or_one_of_them_tainted_it_is_upgrading():
    assert phase(*cordoned("o1", "o2"), a_node("n1"), new=("n1",)) is UpgradePhase.UPGRADING
    assert phase(a_node("o1", tainted=True), a_node("o2"), a_node("n1"), new=("n1",)) is UpgradePhase.UPGRADING


def test_without_old_nodes_it_is_done_or_still_gives_back_what_it_launched():
    assert phase(a_node("n1"), new=("n1",)) is UpgradePhase.DONE
    assert phase(a_node("n1"), new=("n1",), record=replace(RECORD, launched=2, gone=1)) is UpgradePhase.SCALING_DOWN


def test_the_control_request_and_the_end_come_first():
    records = {
        UpgradePhase.ABORTING: {"control": ControlRequest.ABORT},
        UpgradePhase.ABORTED: {"control": ControlRequest.ABORT, "ended": NOON},
        UpgradePhase.ROLLING_BACK: {"control": ControlRequest.ROLLBACK},
        UpgradePhase.FAILED: {"ended": NOON, "error": "PodEvictionFailure"},
        UpgradePhase.DONE: {"ended": NOON},
    }
    assert {name: phase(*OLD_NODES, record=replace(RECORD, **fields)) for name, fields in records.items()} == {
        name: name for name in records
    }


@pytest.mark.parametrize(
    ("hold", "shown"),
    [(Hold.PAUSED, UpgradePhase.PAUSED), (Hold.WINDOW, UpgradePhase.WAITING), (Hold.CANARY, UpgradePhase.BAKING)],
)
def test_a_hold_is_reported_as_such(hold, shown):
    held = Permission(move=Move.HOLD, hold=hold, why="so")
    assert phase(*OLD_NODES, record=RECORD, permission=held) is shown


def test_it_counts_nodes_and_names_what_blocks_those_that_drain():
    pod = a_pod("web-1", "o1")
    upgrade = an_upgrade(
        a_node("o1", tainted=True), a_node("o2"), a_node("n1"), new=("n1",), pods=(pod,), budgets=(a_pdb(allowed=0),)
    )
    found = status_of(upgrade, replace(RECORD, failed=("o2", "gone")))
    assert (found.old, found.new, found.draining, found.failed) == (2, 1, 1, 1)
    assert [(one.node, one.pod, one.object) for one in found.blockers] == [("o1", "shop/web-1", "pdb shop/web")]


def test_an_opt_out_of_voluntary_disruption_blocks_no_upgrade():
    pod = a_pod("web-1", "o1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    assert status_of(an_upgrade(a_node("o1", tainted=True), pods=(pod,))).blockers == ()


def test_the_end_is_estimated_while_it_runs_and_never_else():
    upgrade = an_upgrade(*cordoned("o1", "o2"), a_node("n1"), new=("n1",), pods=(a_pod("p", "o1"),))
    drain = 30 + READY_SECONDS
    assert status_of(upgrade).eta == NOON + timedelta(seconds=drain + 60 + 60)
    assert status_of(an_upgrade(*OLD_NODES)).eta is None


def test_with_minimal_no_zone_has_to_have_a_new_node():
    minimal = a_policy(UpdatePolicy(strategy="MINIMAL"))
    assert status_of(an_upgrade(*OLD_NODES, policy=minimal)).gate.open


def test_boot_is_the_median_of_what_was_measured_else_ninety_seconds():
    instances = {f"i-n{n}": an_instance(f"i-n{n}") for n in range(3)}
    nodes = [a_node(f"n{n}", created=LAUNCHED + timedelta(seconds=seconds)) for n, seconds in enumerate((40, 50, 9000))]
    assert boot_seconds(nodes, instances) == 45
    assert boot_seconds(nodes[2:], instances) == BOOT_SECONDS
    assert boot_seconds((), {}) == BOOT_SECONDS


def test_a_drain_takes_the_longest_grace_for_each_turn_that_a_budget_needs():
    node, pods = a_wave_node("n", budgets={"b": 3}), [a_pod("a", grace_seconds=10), a_pod("b", grace_seconds=60)]
    assert drain_seconds(node, pods, rivals({"b": 1})) == 3 * 80
    assert drain_seconds(node, pods, rivals({"b": 3})) == 80
    assert drain_seconds(a_wave_node("empty"), [], rivals()) == 0


def test_drains_follow_each_other_and_all_else_counts_once_but_with_minimal():
    pace, waves = Pace(boot=90, settle=60, drains={"a": 50, "b": 70, "c": 10}), (("a", "b"), ("c",))
    assert total_seconds(waves, pace, Strategy.DEFAULT) == 80 + 210
    assert total_seconds(waves, pace, Strategy.MINIMAL) == 80 + 2 * 210
    assert total_seconds((), pace, Strategy.DEFAULT) == 0


def test_the_surge_costs_its_nodes_for_the_whole_time():
    assert surge_cost(6, 1800, 0.096) == 0.288
    assert surge_cost(6, 1800, None) is None
    assert surge_cost(0, 1800, None) == 0.0
