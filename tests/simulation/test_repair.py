"""Unhealthy nodes in virtual time: replaced one by one, and left alone in every storm."""

from datetime import timedelta
from itertools import product

import pytest

from leeward.policy.repair import RepairPolicy
from simulation.fault_rates import Faults
from tests.drawing import drawn
from tests.simulation.fleet_stand_in import GroupPlan
from tests.simulation.health_stand_in import BEGIN, GROUP, MINUTE, Clinic, paused, written

FULL = (9, 9, 9)
IN_ZONE_A = (0, 3, 6)


def test_a_silent_node_is_replaced_and_the_group_is_as_large_as_before():
    clinic = Clinic().silence(4).run()
    assert clinic.ended() == {4}
    assert "unhealthy" in clinic.causes(4)
    assert clinic.sizes == FULL
    assert len(clinic.world.launches) == 1  # asked for before the drain
    assert clinic.world.decrements == ["i-00000000000000005"]


def test_its_replacement_comes_first():
    clinic = Clinic().silence(4).run()
    record = clinic.world.claims.records["i-00000000000000005"]
    assert record.times["replacement"] <= record.times["draining"] <= record.times["terminating"]


def test_a_group_at_its_maximum_gets_one_more_for_the_replacement_and_its_maximum_back():
    full = GroupPlan(name=GROUP, size=9, maximum=9, spot=False)
    clinic = Clinic(groups=(full,)).silence(4).run()
    assert clinic.ended() == {4}
    assert clinic.sizes == FULL
    assert len(clinic.world.launches) == 1
    assert clinic.world.groups[GROUP].maximum == 9


def test_a_node_that_comes_back_in_time_stays():
    clinic = Clinic().silence(4).recover(4, at=BEGIN + 4 * MINUTE).run()
    assert clinic.ended() == set()
    assert clinic.sizes == FULL


def test_an_impaired_instance_is_drained_and_replaced():
    clinic = Clinic().impair(4).run()
    assert (clinic.ended(), clinic.causes(4)[0]) == ({4}, "unhealthy")
    assert clinic.sizes == FULL


def test_a_zone_that_goes_dark_ends_nothing():
    generous = written(repair=RepairPolicy(not_ready_after=timedelta(minutes=5), max_unhealthy=50))
    clinic = Clinic(generous).silence(*IN_ZONE_A).recover(*IN_ZONE_A, at=BEGIN + 40 * MINUTE).run()
    zones = {clinic.instance(number).zone for number in IN_ZONE_A}
    assert len(zones) == 1
    assert sum(m.zone in zones for m in clinic.world.fleet.instances.values()) == len(IN_ZONE_A)
    assert clinic.ended() == set()
    assert clinic.sizes == FULL


def test_more_than_the_share_of_the_cluster_ends_nothing_until_it_is_fewer():
    clinic = Clinic().silence(0, 1).recover(1, at=BEGIN + 20 * MINUTE).run()
    assert clinic.ended() == {0}
    assert clinic.since_the_beginning(0, "claimed") > BEGIN + 20 * MINUTE
    assert clinic.sizes == FULL


def test_a_cluster_that_goes_dark_ends_nothing():
    everything = written(repair=RepairPolicy(not_ready_after=timedelta(minutes=5), max_unhealthy=100))
    clinic = Clinic(everything).silence(*range(9)).recover(*range(9), at=BEGIN + 40 * MINUTE).run()
    assert clinic.ended() == set()
    assert clinic.sizes == FULL


def test_an_api_server_that_is_away_ends_nothing_and_neither_does_what_it_says_first():
    """The nodes had fallen silent just before; it comes back after half an hour, and so do they, some seconds later."""
    clinic = Clinic().silence(4).outage(at=BEGIN + 5, minutes=30)
    clinic.recover(4, at=BEGIN + 30 * MINUTE + 50).run()
    assert clinic.ended() == set()
    assert clinic.sizes == FULL


def test_after_an_outage_a_node_that_stays_silent_is_replaced():
    clinic = Clinic().silence(4).outage(at=BEGIN + 5, minutes=30).run()
    assert clinic.ended() == {4}
    assert clinic.since_the_beginning(4, "claimed") > BEGIN + 31 * MINUTE


def test_a_paused_cluster_and_a_policy_without_repair_end_nothing():
    for policies in (paused(written()), written(repair=RepairPolicy(enabled=False))):
        clinic = Clinic(policies).silence(4).run()
        assert clinic.ended() == set()


def test_nodes_of_groups_that_no_policy_selects_are_left():
    clinic = Clinic(written(groups=("other-*",))).silence(4).run()
    assert (clinic.ended(), clinic.causes(4)) == (set(), [])


@pytest.mark.parametrize("seed", range(3))
def test_whatever_else_goes_wrong_it_is_replaced_once(seed):
    clinic = Clinic(faults=Faults.all(), seed=seed).silence(4).run(1.5, converge=4 * 3600.0 + 30, quiet=False)
    assert 4 in clinic.ended()
    desired, in_service, ready = clinic.sizes
    assert (in_service, ready) == (desired, desired)


@pytest.mark.parametrize(("after", "part"), drawn(product((False, True), range(3))))
def test_killed_at_any_of_its_calls_the_sweep_ends_in_the_same_state(after, part):
    calls = Clinic().silence(4).run().world.injector.calls
    for call in range(60, calls, max(calls // 12, 1))[part::3]:
        clinic = Clinic(faults=Faults(kill_call=call, kill_after=after)).silence(4).run(quiet=False)
        assert (clinic.ended(), clinic.sizes) == ({4}, FULL), call
