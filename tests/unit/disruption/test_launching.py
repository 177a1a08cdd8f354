"""Launches of a run: a step that died before it recorded the answer asks again, and gets the same instance."""

from dataclasses import replace

from leeward.disruption.command import Command, CommandDecision, PlannedReplacement
from leeward.disruption.replacements import launch_all
from leeward.model.instance import CapacityType
from tests.fakes.builders import GROUP, a_group, a_node, a_subnet, an_instance
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


def launched_together(free_ips, pause=0):
    """Two nodes replaced by one run, with so many free addresses in the only subnet; each launch takes `pause` s."""
    new = PlannedReplacement(group=GROUP, types=("m5.large",), zones=("us-east-1a",), capacity=CapacityType.ON_DEMAND)
    nodes = {f"node-{name}": name for name in (OLD, "i-0two")}
    commands = [
        Command(decision=CommandDecision.REPLACE, nodes=(node,), reason="drifted", replacements=(new,))
        for node in nodes
    ]
    group = replace(a_group(GROUP, *nodes.values()), maximum=5, subnets=("subnet-a",))
    system = FakeSystem(instances=map(an_instance, nodes.values()), groups=[group], nodes=map(a_node, nodes.values()))
    system.network.by_id = {"subnet-a": a_subnet("subnet-a", free=free_ips)}
    launch = system.groups.launch

    def slow(**request):
        system.clock.advance(seconds=pause)
        return launch(**request)

    system.groups.launch = slow
    fields = {"commands": tuple(commands), "nodes": nodes, "members": dict.fromkeys(nodes, GROUP)}
    record = launch_all(a_record(system, launched={}, dropped={}, **fields), system.ports, may_grow=False)
    asked = (system.groups.asked["describe"], system.network.asked["subnets"], system.instances.asked["describe"])
    return record, asked


def test_launches_of_a_step_share_what_is_read_for_them():
    record, asked = launched_together(free_ips=50)
    assert (len(record.launched), asked) == (2, (1, 1, 1))


def test_a_slow_launch_makes_the_next_one_read_again():
    record, asked = launched_together(free_ips=50, pause=20)
    assert (len(record.launched), asked) == (2, (2, 2, 2))


def test_each_launch_takes_an_address_off_its_subnet():
    record, _ = launched_together(free_ips=1)
    assert len(record.launched) == 1
    assert "free" in record.dropped["1"]
