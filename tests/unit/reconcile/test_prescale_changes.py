"""Prescale of a cluster that changes meanwhile: passes that are killed, groups that others resize, pause or upgrade, a
second closed zone, and a shift that comes back."""

from dataclasses import replace
from itertools import count

import pytest

from leeward.errors import AwsUnavailableError, TerminalError, ThrottledError
from leeward.isolation import in_turn
from leeward.model.group import AZ_REBALANCE, ScalingActivity
from leeward.model.maximum import RaisedMaximum
from leeward.model.termination import Cause, CauseKind
from leeward.model.zonal_shift import ShiftKind
from leeward.policy.document import OnShift
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import CLUSTER, GROUP, LAUNCHED, a_subject, pausing, policies
from tests.unit.reconcile.test_prescale import (
    PRESCALE,
    a_shifted_system,
    end_shift,
    finish_terminations,
    launched_in,
    minutes_later,
    prescales,
    sizes,
)
from tests.unit.reconcile.zones import NODES, A, B, C, a_group_in, evacuate, open_again
from tests.unit.upgrade.test_capacity_ledger import RECORD as OPEN_UPGRADE
from tests.unit.upgrade.test_unreadable_records import unreadable

SILENT = AwsUnavailableError("no answer")
SPOT = Cause(id="spot#1", kind=CauseKind.SPOT_INTERRUPTION, at=LAUNCHED)


class Killed(BaseException):
    """End of the process."""


def until_settled(system, passes=6):
    for _ in range(passes):
        minutes_later(system)
        finish_terminations(system)
    assert prescales(system) == ()


def set_desired(system, desired):
    """Another actor sets the size; the group chooses old members to end."""
    there = system.groups.by_name[GROUP]
    cause = f"a user request update of constraints, changing the desired capacity from {there.desired} to {desired}."
    system.groups.history.append((GROUP, ScalingActivity(at=system.clock.now(), cause=cause, leaves=None)))
    system.groups.by_name[GROUP] = replace(there, desired=desired)


def detach(system, instance, *, decrement):
    """An operator takes an instance out of its group, which launches another one unless the desired size is lowered."""
    there = system.groups.by_name[GROUP]
    shrinking = f", shrinking the capacity from {there.desired} to {there.desired - 1}" if decrement else ""
    cause = f"instance {instance} was detached in response to a user request{shrinking}."
    system.groups.history.append((GROUP, ScalingActivity(at=system.clock.now(), cause=cause, leaves=instance)))
    members = tuple(one for one in there.instances if one.id != instance)
    system.groups.by_name[GROUP] = replace(there, instances=members, desired=there.desired - decrement)
    system.instances.known[instance] = replace(system.instances.known[instance], tags={})


EFFECTS = {
    "catalog": ("write_zone_record",),
    "groups": ("launch", "terminate"),
    "group_changes": ("suspend", "resume"),
    "claims": ("claim",),
    "executions": ("start",),
    "kubernetes": ("annotate",),
}


def kill_after(system, number):
    """Kill the process after the effect of that number; return the way to heal."""
    effects, real = count(1), {}

    def killing(do):
        def effect(*positional, **named):
            answer = do(*positional, **named)
            if next(effects) == number:
                raise Killed
            return answer

        return effect

    for port, methods in EFFECTS.items():
        for method in methods:
            real[port, method] = getattr(getattr(system, port), method)
            setattr(getattr(system, port), method, killing(real[port, method]))

    def heal():
        for (port, method), do in real.items():
            setattr(getattr(system, port), method, do)

    return heal


def minutes_in_one_thread(system, passes):
    for _ in range(passes):
        system.clock.advance(minutes=1)
        reconcile_once(system.ports, in_turn)


def was_killed(system):
    try:
        minutes_in_one_thread(system, 2)
    except Killed:
        return True
    return False


@pytest.mark.parametrize("when", ["begin", "end"])
def test_killed_after_any_effect_it_launches_once_and_the_sizes_are_as_before(when):
    for number in count(1):
        system = a_shifted_system()
        before = sizes(system)
        if when == "end":
            minutes_in_one_thread(system, 2)
            end_shift(system)
        heal = kill_after(system, number)
        reached = was_killed(system)
        heal()
        minutes_in_one_thread(system, 2)
        assert len(system.groups.launches) == len(launched_in(system)), number
        if when == "begin":
            assert sum(len(one.launched) for one in prescales(system)) == 3, number
            end_shift(system)
        until_settled(system)
        assert sizes(system) == before, number
        assert AZ_REBALANCE not in system.groups.by_name[GROUP].suspended, number
        if not reached:
            break
    assert number > (6 if when == "begin" else 8)


def test_zones_are_not_balanced_while_the_capacity_ahead_makes_them_uneven():
    system = a_shifted_system()
    minutes_later(system)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    system.group_changes.resume(GROUP, AZ_REBALANCE)  # by its owner's deployment
    minutes_later(system)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    end_shift(system)
    minutes_later(system)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    until_settled(system)
    assert AZ_REBALANCE not in system.groups.by_name[GROUP].suspended


def test_balancing_that_the_owner_has_suspended_stays_suspended():
    system = a_shifted_system(groups=[replace(a_group_in((A, B, C)), suspended=(AZ_REBALANCE,))])
    minutes_later(system)
    end_shift(system)
    until_settled(system)
    assert system.groups.by_name[GROUP].suspended == (AZ_REBALANCE,)


def test_balancing_is_resumed_when_the_last_zone_is_open():
    system = a_shifted_system()
    minutes_later(system)
    evacuate(system, C)
    minutes_later(system)
    end_shift(system)
    for _ in range(4):
        minutes_later(system)
        finish_terminations(system)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    open_again(system, C)
    until_settled(system)
    assert AZ_REBALANCE not in system.groups.by_name[GROUP].suspended
    assert system.catalog.zone_record(CLUSTER).evacuations == ()


def test_an_evacuation_that_has_ended_leaves_balancing_suspended_while_there_is_capacity_ahead():
    system = a_shifted_system()
    system.recovery.arc.end(CLUSTER, "use1-az1")
    evacuate(system, C)
    minutes_later(system)  # the evacuation suspends it
    system.recovery.arc.start(CLUSTER, "use1-az1", ShiftKind.MANUAL, system.clock.now())
    minutes_later(system)
    finish_terminations(system)
    open_again(system, C)
    end_shift(system)
    minutes_later(system)
    assert prescales(system)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    until_settled(system)
    assert AZ_REBALANCE not in system.groups.by_name[GROUP].suspended


def test_an_order_that_was_never_requested_is_moved_when_its_zone_is_closed():
    system = a_shifted_system()
    system.groups.fail("launch", SILENT, times=1)
    reconcile_once(system.ports)
    first, *others = prescales(system)[0].orders
    assert (first.requested, [one.requested for one in others]) == (True, [False])
    evacuate(system, others[0].zone)
    minutes_later(system)
    assert launched_in(system).keys() == {first.subnet}
    assert len(prescales(system)[0].launched) == 3


def test_an_order_that_was_never_requested_is_dropped_when_the_shift_is_over():
    system = a_shifted_system()
    before = sizes(system)
    system.groups.fail("launch", SILENT, times=1)
    reconcile_once(system.ports)
    first, _ = prescales(system)[0].orders
    end_shift(system)
    minutes_later(system)
    assert launched_in(system).keys() == {first.subnet}
    until_settled(system)
    assert sizes(system) == before


def test_an_order_that_was_never_requested_is_dropped_when_the_policy_holds_again():
    system = a_shifted_system()
    system.groups.fail("launch", SILENT, times=1)
    reconcile_once(system.ports)
    system.clusters.policies_of[CLUSTER] = policies(replace(PRESCALE, on_shift=OnShift.HOLD))
    minutes_later(system)
    assert len(system.groups.launches) == 1
    assert "nodes are not launched: no policy prescales its group any more" in prescales(system)[0].refused[GROUP]


def test_the_capacity_leaves_after_the_shift_although_no_policy_selects_the_group_any_more():
    system = a_shifted_system()
    before = sizes(system)
    minutes_later(system)
    system.clusters.policies_of[CLUSTER] = policies()
    end_shift(system)
    until_settled(system)
    assert sizes(system) == before


def test_a_launch_that_fails_for_good_is_named_and_stops_no_other_order():
    system = a_shifted_system()
    before = sizes(system)
    system.groups.fail("launch", TerminalError("InvalidParameterCombination: not so"), times=1)
    minutes_later(system)
    assert " node was not launched in " in prescales(system)[0].refused[GROUP]
    assert "InvalidParameterCombination" in prescales(system)[0].refused[GROUP]
    assert len(system.groups.launches) == 1
    end_shift(system)
    until_settled(system)
    assert sizes(system) == before


def test_a_throttled_launch_is_requested_again_a_minute_later():
    system = a_shifted_system()
    system.groups.fail("launch", ThrottledError("slow down"), times=1)
    assert any("slow down" in error for error in reconcile_once(system.ports).errors)
    assert len(minutes_later(system).prescaled) == 3


def test_a_size_that_another_actor_has_lowered_since_stays():
    system = a_shifted_system()
    minutes_later(system)
    system.clock.advance(minutes=5)
    set_desired(system, 6)
    end_shift(system)
    until_settled(system)
    assert sizes(system)[1] == 6
    assert system.groups.terminated == []


def test_a_minimum_that_was_raised_since_is_respected():
    system = a_shifted_system()
    minutes_later(system)
    there = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(there, minimum=there.desired - 1)
    end_shift(system)
    until_settled(system)
    assert sizes(system)[1] == there.desired - 1
    assert len(system.groups.terminated) == 1


def test_a_size_that_was_raised_since_is_lowered_by_the_launches_alone():
    system = a_shifted_system()
    minutes_later(system)
    there = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(there, desired=there.desired + 4, maximum=40)
    end_shift(system)
    until_settled(system)
    assert sizes(system)[1] == there.desired + 1


@pytest.mark.parametrize("decrement", [True, False])
def test_a_node_that_was_detached_from_its_group_is_not_terminated_for_the_launch(decrement):
    """With a decrement its leaving has offset the launch, else another member does."""
    system = a_shifted_system()
    before = sizes(system)
    detached, *others = reconcile_once(system.ports).prescaled
    detach(system, detached, decrement=decrement)
    minutes_later(system, minutes=30)
    end_shift(system)
    until_settled(system)
    assert detached not in system.claims.records
    assert set(others) <= system.claims.records.keys()
    assert sizes(system) == before


def test_while_an_upgrade_of_the_group_works_its_launches_are_not_offset():
    system = a_shifted_system()
    before = sizes(system)
    new = reconcile_once(system.ports).prescaled
    upgrade = system.upgrades.write(replace(OPEN_UPGRADE, group=GROUP, execution=f"{GROUP}-1", version=0))
    system.upgrade_executions.open.add(upgrade.execution)
    end_shift(system)
    minutes_later(system)
    assert not any(name in system.claims.records for name in new)
    assert prescales(system)[0].ended is not None
    system.upgrades.write(replace(upgrade, ended=system.clock.now()))
    system.upgrade_executions.open.discard(upgrade.execution)
    until_settled(system)
    assert sizes(system) == before


def test_a_group_that_is_upgraded_holds_the_end_in_no_other_group():
    members = {"i-0a1": A, "i-0b1": B}
    others = {name: zone for name, zone in NODES.items() if name not in members}
    system = a_shifted_system(
        groups=[a_group_in((A, B, C), members=others), a_group_in((A, B, C), name="web-b", members=members)]
    )
    minutes_later(system)
    system.upgrades.write(replace(OPEN_UPGRADE, group="web-b", execution="web-b-1", version=0))
    system.upgrade_executions.open.add("web-b-1")
    end_shift(system)
    for _ in range(3):
        minutes_later(system)
        finish_terminations(system)
    assert {name: group.suspended for name, group in system.groups.by_name.items()} == {
        GROUP: (),
        "web-b": (AZ_REBALANCE,),
    }
    assert [group.desired for group in system.groups.by_name.values()] == [len(others), len(members) + 1]
    system.upgrade_executions.open.clear()
    until_settled(system)
    assert [group.desired for group in system.groups.by_name.values()] == [len(others), len(members)]
    assert system.groups.by_name["web-b"].suspended == ()


def test_a_drain_that_is_held_for_hours_does_not_keep_balancing_suspended_as_long():
    system = a_shifted_system()
    minutes_later(system)
    end_shift(system)
    minutes_later(system)
    minutes_later(system, 50)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    minutes_later(system, 10)
    assert AZ_REBALANCE not in system.groups.by_name[GROUP].suspended
    assert prescales(system)
    until_settled(system)


def test_an_evacuation_waits_only_for_groups_that_capacity_ahead_makes_uneven():
    system = a_shifted_system(groups=[a_group_in((A, B, C), maximum=6)])
    system.recovery.arc.end(CLUSTER, "use1-az1")
    evacuate(system, C)
    minutes_later(system)
    system.recovery.arc.start(CLUSTER, "use1-az1", ShiftKind.MANUAL, system.clock.now())
    minutes_later(system)
    assert (prescales(system)[0].wanted, prescales(system)[0].launched) == ({GROUP: 3}, {})
    system.recovery.arc.end(CLUSTER, "use1-az1")
    finish_terminations(system)
    open_again(system, C)
    minutes_later(system)
    assert AZ_REBALANCE not in system.groups.by_name[GROUP].suspended


def test_a_shift_that_comes_back_with_the_same_begin_launches_other_instances():
    system = a_shifted_system(groups=[a_group_in((A, B, C), maximum=20)])
    before, began = sizes(system), system.clock.now()
    first = reconcile_once(system.ports).prescaled
    end_shift(system)
    minutes_later(system)  # its nodes are being terminated
    system.recovery.arc.start(CLUSTER, "use1-az1", ShiftKind.AUTOSHIFT, began)
    second = minutes_later(system).prescaled
    assert len(second) == 3
    assert not {*first} & {*second}
    finish_terminations(system)
    minutes_later(system)
    assert [(sorted(one.launched), one.ended is None) for one in prescales(system)] == [
        ([], False),  # its suspension of AZRebalance is still needed
        (sorted(second), True),
    ]
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    end_shift(system)
    minutes_later(system)
    assert AZ_REBALANCE in system.groups.by_name[GROUP].suspended
    until_settled(system)
    assert sizes(system) == before


def test_a_paused_group_launches_nothing_and_is_named():
    system = a_shifted_system()
    system.clusters.policies_of[CLUSTER] = pausing(system.clusters.policies_of[CLUSTER], group=GROUP)
    assert reconcile_once(system.ports).prescaled == []
    assert prescales(system)[0].refused[GROUP].startswith("3 of 3 nodes not launched: ")


def test_two_zones_that_are_shifted_at_once_stay_below_max_size():
    system = a_shifted_system(groups=[a_group_in((A, B, C), maximum=8)])
    system.recovery.arc.start(CLUSTER, "use1-az2", ShiftKind.AUTOSHIFT, system.clock.now())
    reconcile_once(system.ports)
    assert launched_in(system).keys() <= {"subnet-c"}
    assert sizes(system)[1] <= 8


@pytest.mark.parametrize("holders", [(), ("i-0b1",)])
def test_max_size_that_replacements_have_raised_is_not_used_up(holders):
    system = a_shifted_system(groups=[a_group_in((A, B, C), maximum=9)])
    for holder in holders:  # without one, the same pass puts the owner's value back
        system.claims.claim(a_subject(holder), SPOT, system.clock.now())
    system.maxima.write(RaisedMaximum(group=GROUP, before=7, raised=(9,), holders=holders))
    assert len(reconcile_once(system.ports).prescaled) == 1
    assert prescales(system)[0].refused == {GROUP: "2 of 3 nodes without room: MaxSize is 7, 6 are desired"}


def test_an_offset_whose_record_cannot_be_read_is_named_and_over_when_its_instance_is():
    system = a_shifted_system()
    new = reconcile_once(system.ports).prescaled
    end_shift(system)
    unreadable(system, new[0])
    errors = minutes_later(system).errors
    assert any(f"the record of {new[0]}" in error for error in errors)
    assert {name for name, record in system.claims.records.items() if record.causes} == {*new[1:]}
    finish_terminations(system)
    minutes_later(system)
    assert set(prescales(system)[0].launched) == set(new)
    system.instances.set_state(new[0], "terminated")
    minutes_later(system)
    assert prescales(system) == ()
