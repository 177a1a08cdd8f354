"""Replacements that are launched while a zonal shift is in effect, and their zones."""

import pytest

from leeward.errors import AwsUnavailableError
from leeward.termination.run import NoticeKind
from tests.state_machines.test_replacements import A, B, C, a_pod, a_system, ask, kinds, subnets_launched_in

SILENT = AwsUnavailableError("no answer")
FEW_IN_A = {A: 2000, B: 16000, C: 18000}


def test_a_node_of_the_shifted_zone_is_replaced_elsewhere_although_its_zone_has_the_fewest_cores():
    system = a_system(a_pod(), cores=FEW_IN_A)
    system.shift(A)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-b"]
    assert "us-east-1a: not allowed by the zonal shift away from us-east-1a (autoshift since" in run.why


def test_a_node_of_another_zone_is_not_replaced_into_the_shifted_one():
    system = a_system(a_pod(), cores={A: 9000, B: 1000, C: 8000})
    system.shift(B)
    ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]


def test_where_every_zone_of_the_group_is_shifted_nothing_is_launched_and_the_event_says_why():
    system = a_system(a_pod())
    system.shift(A, B, C)
    run = ask(system)
    assert (subnets_launched_in(system), kinds(run)) == ([], [NoticeKind.NOWHERE])
    assert "zonal shift away from us-east-1b" in system.kubernetes.events[0].message


def test_a_plan_that_is_older_than_the_shift_does_not_lead_into_the_shifted_zone():
    """The first launch failed for another reason, and the zone after it has been shifted since."""
    system = a_system(a_pod())
    system.groups.fail("launch", SILENT, times=1)
    with pytest.raises(AwsUnavailableError):
        ask(system)
    system.groups.short_of_capacity = {"subnet-a"}
    system.shift(B)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-c"]
    assert "zonal shift away from us-east-1b" in run.why


def test_where_the_facts_cannot_be_read_the_shifts_alone_are_read_once_more():
    system = a_system(a_pod(), cores=FEW_IN_A)
    system.shift(A)
    system.catalog.fail("read", SILENT)
    ask(system)
    assert subnets_launched_in(system)[0] in {"subnet-b", "subnet-c"}
