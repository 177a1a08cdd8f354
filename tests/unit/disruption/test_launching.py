"""Launches of a run: a step that died before it recorded the answer asks again, and gets the same instance."""

from dataclasses import replace

from leeward.disruption.launching import launch_all
from tests.fakes.builders import GROUP, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem
from tests.unit.disruption.test_rollback import OLD, a_record


def test_a_launch_that_is_repeated_later_launches_no_second_instance():
    group = replace(a_group(GROUP, OLD), maximum=5)
    system = FakeSystem(instances=[an_instance(OLD)], groups=[group], nodes=[a_node(OLD)])
    ordered = a_record(system, launched={}, dropped={}, orders={"0.0": "us-east-1a/subnet-a"})
    first = launch_all(ordered, system.ports, may_grow=False)
    system.clock.advance(minutes=1)
    system.disruptions.records[ordered.cluster] = ordered
    again = launch_all(ordered, system.ports, may_grow=False)
    assert (len(first.launched), len(system.groups.launches)) == (1, 1)
    assert again.launched == first.launched
