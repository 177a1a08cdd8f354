"""One turn of a running upgrade, run again after a step that was killed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import ScalingActivity
from leeward.model.termination import Cause, CauseKind
from leeward.upgrade.record import OpenLaunch
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from tests.fakes.builders import GROUP, ZONE, a_node, a_subject, an_instance
from tests.fakes.clock import START
from tests.fakes.ledger import a_surge, by
from tests.unit.upgrade.test_waits import NEW, OLD, RUN, a_pod, a_rolling_group, draining

CAUSE = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START)
TAKEN = "instance i-0ccc was taken out of service in response to a user request, shrinking the capacity from 3 to 2."


def test_a_node_that_a_killed_step_has_chosen_is_drained_by_the_next_one():
    """Written down as on its way, and the step died before the claim."""
    system = a_rolling_group()
    draining(system, under_way={OLD: "t.1"}, started=1)
    assert STEPS["drain"](RUN, {}, system.ports).next is UpgradeNext.WAIT
    (claimed,) = system.claims.records.values()
    assert claimed.instance == OLD
    assert claimed.has(CauseKind.UPGRADE)
    assert system.kubernetes.by_name[f"node-{OLD}"].unschedulable


def test_a_node_that_ended_before_it_was_claimed_is_gone():
    system = a_rolling_group()
    draining(system, under_way={OLD: "t.1"}, started=1)
    system.instances.set_state(OLD, "terminated")
    STEPS["drain"](RUN, {}, system.ports)
    assert not system.claims.records
    assert system.upgrades.records["web-a"].finished == 1


def two_recorded(pods):
    """Two old nodes that a killed step recorded under maxUnavailable 1: their instances were booting then."""
    system = a_rolling_group()
    second = "i-0ccc"
    found = system.groups.by_name[GROUP]
    old = next(one for one in found.instances if one.id == OLD)
    system.groups.by_name[GROUP] = replace(found, instances=(*found.instances, replace(old, id=second)))
    system.instances.put(an_instance(second))
    system.kubernetes.put_node(a_node(second))
    for number in range(pods):
        system.kubernetes.put_pod(a_pod(f"late-{number}", f"node-{second}"))
    ahead = {NEW: OpenLaunch(zone=ZONE)}
    draining(system, desired=2, under_way={OLD: "t.1", second: "t.2"}, started=2, launched=1, ahead=ahead)
    return system


def test_recorded_nodes_that_hold_pods_by_now_do_not_exceed_max_unavailable():
    system = two_recorded(pods=1)
    STEPS["drain"](RUN, {}, system.ports)
    record = system.upgrades.records[GROUP]
    assert len(record.under_way) <= 1
    assert len(system.claims.records) <= 1
    assert record.taken_back == 2


def test_a_recorded_node_that_is_empty_goes_beside_one_that_drains():
    system = two_recorded(pods=0)
    STEPS["drain"](RUN, {}, system.ports)
    record = system.upgrades.records[GROUP]
    assert (set(record.under_way), set(system.claims.records), record.taken_back) == (
        {OLD, "i-0ccc"},
        {OLD, "i-0ccc"},
        0,
    )


def launched_late(taken_after, *, paid=False, **given):
    """Measured as three, the launch hung for five minutes; meanwhile an instance was taken out with decrement."""
    system = a_rolling_group()
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=3)
    start = system.clock.now()
    launched = start + timedelta(minutes=5)
    system.instances.put(replace(system.instances.known[NEW], launched=launched))
    system.groups.history.append((GROUP, ScalingActivity(at=start + taken_after, cause=TAKEN, leaves="i-0ccc")))
    if paid:
        system.claims.claim(a_subject("i-0ccc"), replace(CAUSE, at=start), start)
        system.claims.note("i-0ccc", offsets={a_surge("i-0new"): by("i-0ccc")})
    draining(system, desired=3, sized=start, ahead={NEW: OpenLaunch()}, proven=None, **{"launched": 1, **given})
    system.clock.advance(minutes=6)
    STEPS["drain"](RUN, {}, system.ports)
    return system.upgrades.records[GROUP], launched


def test_an_instance_detached_before_the_first_launch_is_not_in_the_restored_size():
    record, launched = launched_late(timedelta(minutes=2))
    assert (record.desired, record.sized) == (2, launched)


@pytest.mark.parametrize("after", [timedelta(minutes=-1), timedelta(minutes=5, seconds=30)])
def test_one_taken_out_before_the_measuring_or_by_an_owner_who_saw_the_larger_size_changes_nothing(after):
    assert launched_late(after)[0].desired == 3


def test_an_instance_detached_while_nodes_roll_has_seen_the_larger_size():
    """Cluster Autoscaler removes an empty new node, and the next one is launched later than that."""
    assert launched_late(timedelta(minutes=2), launched=2)[0].desired == 3


def test_a_drain_that_began_before_the_first_launch_has_made_the_group_no_larger():
    """New nodes come after the drains of the same turn where the desired size is raised."""
    assert launched_late(timedelta(minutes=2), started=1)[0].desired == 2


def test_a_termination_that_paid_for_its_own_launch_changes_nothing():
    assert launched_late(timedelta(minutes=2), paid=True)[0].desired == 3


@pytest.mark.parametrize(("step", "measured"), [("gate", True), ("drain", False)])
def test_the_gate_measures_again_once_no_old_node_is_to_offset_a_launch(step, measured):
    """Others have scaled the group, and the old node of the launch has been returned to service since."""
    system = a_rolling_group()
    draining(system, desired=1, launched=1, ahead={NEW: OpenLaunch(zone=ZONE)}, others_scaled=START)
    STEPS[step](RUN, {}, system.ports)
    record = system.upgrades.records[GROUP]
    assert (record.others_scaled is None, NEW not in record.ahead) == (measured, measured)


@pytest.mark.parametrize(("desired", "restored"), [(3, 3), (5, 5), (6, 5)])
def test_the_size_is_measured_again_once_others_have_offset_the_last_launch_with_decrement(desired, restored):
    """A failed upgrade left its launch in the group. Since then Cluster Autoscaler took out that one and two others."""
    system = a_rolling_group()
    now = system.clock.now()
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=desired)
    for name in (NEW, "i-0ddd", "i-0eee"):
        system.groups.history.append((GROUP, ScalingActivity(at=now, cause=TAKEN, leaves=name)))
    draining(system, desired=5, launched=1, ahead={NEW: OpenLaunch(zone=ZONE)}, sized=now - timedelta(hours=2))
    STEPS["gate"](RUN, {}, system.ports)
    assert system.upgrades.records[GROUP].desired == restored


def asked_in_a_turn(desired=2, **given):
    """Questions of one turn about the group's history and the addresses of its subnets. Two nodes, one launched ahead,
    so that two are explained.
    """
    system = a_rolling_group()
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=desired, maximum=5)
    draining(system, **{"desired": 1, "surge": 1, "launched": 1, "ahead": {NEW: OpenLaunch(zone=ZONE)}, **given})
    STEPS["drain"](RUN, {}, system.ports)
    return system.groups.asked["activities"], system.network.asked["subnets"]


def test_a_turn_in_which_the_group_is_as_recorded_asks_for_neither_history_nor_addresses():
    assert asked_in_a_turn() == (0, 0)


def test_a_turn_that_launches_asks_for_addresses():
    assert asked_in_a_turn(desired=1, launched=0, ahead={}) == (0, 1)


@pytest.mark.parametrize("desired", [1, 3])
def test_the_history_is_read_where_the_size_is_not_the_recorded_one(desired):
    assert asked_in_a_turn(desired=desired)[0] == 1


def test_the_history_is_read_where_a_launch_has_left_the_group_or_is_owed():
    gone = {NEW: OpenLaunch(zone=ZONE), "i-0gone": OpenLaunch(zone=ZONE)}
    assert asked_in_a_turn(desired=3, launched=2, ahead=gone)[0] == 1
    assert asked_in_a_turn(owed=1)[0] == 1
