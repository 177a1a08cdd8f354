"""Replacements of a run: what is waited for, and what will not do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.command import PlannedReplacement
from leeward.disruption.replacements import JOINS_WITHIN, readiness
from leeward.model.instance import CapacityType
from tests.fakes.builders import a_node, an_instance
from tests.fakes.disruptions import NOW

PLANNED = PlannedReplacement(
    group="web-a", types=("m5.large", "m5a.large"), zones=("us-east-1a",), capacity=CapacityType.ON_DEMAND
)
NEW = "i-0000000000000000a"


def new(**more):
    return replace(an_instance(NEW, spot=False), **{"launched": NOW, **more})


def looked_at(instance, nodes=(), after=timedelta(seconds=60)):
    instances = {NEW: instance} if instance else {}
    return readiness({NEW: PLANNED}, instances, nodes, since=NOW, now=NOW + after)


def test_one_that_is_ready_and_as_planned_is_neither_wrong_nor_missing():
    found = looked_at(new(), [a_node(NEW)])
    assert (found.wrong, found.missing) == ({}, {})


def test_one_that_boots_is_waited_for():
    assert looked_at(new(state="pending")).missing == {NEW: f"{NEW} is pending and has not joined"}
    assert "is not Ready" in looked_at(new(), [a_node(NEW, ready=False)]).missing[NEW]


def test_one_that_ec2_does_not_know_yet_is_waited_for_and_given_up_later():
    assert NEW in looked_at(None).missing
    assert "has not joined after" in looked_at(None, after=JOINS_WITHIN + timedelta(seconds=1)).wrong[NEW]


def test_one_that_has_not_joined_in_time_will_not_do():
    late = looked_at(new(), after=JOINS_WITHIN + timedelta(seconds=1))
    assert late.wrong == {NEW: f"{NEW} is running and has not joined after 901 s"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"type": "m5.4xlarge"}, "is of type m5.4xlarge, planned were m5.large, m5a.large"),
        ({"zone": "us-east-1b"}, "is in us-east-1b, planned was us-east-1a"),
        ({"capacity_type": CapacityType.SPOT}, "is spot, planned was on-demand"),
        ({"state": "shutting-down"}, "was launched and is shutting-down"),
    ],
)
def test_an_instance_that_does_not_match_the_plan_is_refused_even_when_it_is_ready(more, why):
    found = looked_at(new(**more), [a_node(NEW)])
    assert found.wrong == {NEW: f"{NEW} {why}"}
