"""The time left of a running upgrade: it falls while nodes drain, and new nodes that still come do not make it jump."""

from dataclasses import replace
from datetime import timedelta

from leeward.model.instance import CapacityType
from leeward.model.termination import Status, Subject, TerminationRecord
from leeward.upgrade.preflight.plan import BOOT_SECONDS, READY_SECONDS, seconds_left
from leeward.upgrade.record import ControlRequest
from leeward.upgrade.status import Running, UpgradePhase, status_of
from tests.unit.upgrade.builders import NOON, a_node, a_pod, an_upgrade
from tests.unit.upgrade.test_control import RECORD

DRAIN = 30 + READY_SECONDS
AFTER = 60 + 60  # settling and the end of the instance


def going(**seconds):
    """The termination of i-o1, each time so many seconds ago."""
    subject = Subject(
        instance="i-o1",
        cluster="blue",
        group="web",
        zone="a",
        subnet="subnet-a",
        instance_type="m5.large",
        capacity_type=CapacityType.ON_DEMAND,
    )
    times = {name: NOON - timedelta(seconds=ago) for name, ago in seconds.items()}
    return {
        "i-o1": TerminationRecord(subject=subject, status=Status.OPEN, attempt=1, version=1, causes=(), times=times)
    }


def left(*nodes, ends=None, passed=True):
    pods = tuple(a_pod(f"p-{node.name}", node.name) for node in nodes)
    return seconds_left(an_upgrade(*nodes, pods=pods), gate_passed=passed, terminations=ends)


def test_the_last_node_counts_what_is_left_of_its_drain_its_settling_and_its_end():
    last = a_node("o1", tainted=True)
    assert left(last) == DRAIN + AFTER
    assert left(last, ends=going(draining=20)) == DRAIN - 20 + AFTER
    assert left(last, ends=going(draining=500)) == AFTER
    assert left(last, ends=going(draining=500, drained=50)) == AFTER - 50
    assert left(last, ends=going(draining=500, drained=5000)) == 0


def test_with_nodes_that_wait_the_drain_under_way_comes_before_theirs():
    nodes = (a_node("o1", tainted=True), a_node("o2", "b"))
    assert left(*nodes, ends=going(draining=20)) == DRAIN - 20 + DRAIN + AFTER


def test_the_boot_counts_until_the_gate_was_passed_and_never_again():
    assert left(a_node("o1"), passed=False) - left(a_node("o1")) == BOOT_SECONDS


def test_a_new_node_that_still_boots_changes_neither_phase_nor_estimate_once_all_old_ones_are_cordoned():
    old, late = a_node("o1", cordoned=True), a_node("n1", ready=False)
    record = replace(RECORD, cordoned=True)
    before = status_of(an_upgrade(old), record)
    after = status_of(an_upgrade(old, late, new=("n1",)), record)
    assert (before.phase, after.phase) == (UpgradePhase.UPGRADING, UpgradePhase.UPGRADING)
    assert before.eta == after.eta


def test_whether_an_execution_is_open_decides_the_phase():
    upgrade = an_upgrade(a_node("o1"))
    assert status_of(upgrade, None, running=Running(execution="web-1", new=True)).phase is UpgradePhase.STARTING
    assert status_of(upgrade, RECORD, running=Running(execution="web-1")).phase is UpgradePhase.SCALING_UP
    assert status_of(upgrade, RECORD, running=Running()).phase is UpgradePhase.STOPPED
    assert (
        status_of(upgrade, replace(RECORD, control=ControlRequest.PAUSE), running=Running()).phase
        is UpgradePhase.PAUSED
    )
    assert status_of(upgrade, replace(RECORD, ended=NOON), running=Running()).phase is UpgradePhase.DONE
