"""A drained node that waits or returns to service instead of being rebooted or replaced: evidence in doubt, outages."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import ClusterUnreachableError
from tests.fakes.builders import GROUP, ZONE, a_group, a_node, an_instance
from tests.state_machines.test_reboots import Machine, claim
from tests.state_machines.test_walks import I, a_pod, a_system
from tests.state_machines.walker import Walker


def test_an_api_server_that_was_away_when_the_node_was_due_replaces_nothing(monkeypatch):
    """It is away from minute 12 to 16. The instance is up again at 12:30, and its kubelet reports that at 16:30."""
    system = a_system()
    machine = Machine(system, back=16 * 60 + 30).with_neighbours()
    claim(system)
    reach = system.kubernetes._reach

    def away(*call):
        since = machine.since
        if since is not None and timedelta(minutes=12) <= system.clock.now() - since < timedelta(minutes=16):
            raise ClusterUnreachableError("connection refused")
        reach(*call)

    monkeypatch.setattr(system.kubernetes, "_reach", away)
    assert Walker(system, before=machine).run(I).ended == "Rebooted"
    assert (system.groups.launches, system.groups.terminated) == ([], [])


def test_one_that_does_not_come_back_waits_while_the_circuit_breaker_is_open():
    system = a_system()
    machine = Machine(system, back=None).with_neighbours()
    claim(system)
    others, down = ("node-i-0b", "node-i-0c"), timedelta(minutes=40)

    def before(state, data):
        since, now = machine.since, system.clock.now()
        for name in others if since is not None else ():
            node = system.kubernetes.by_name[name]
            system.kubernetes.by_name[name] = replace(node, ready=now - since >= down, not_ready_since=since)

    assert Walker(system, before=before).run(I).ended == "Terminated"
    (failed,) = [event for event in system.kubernetes.events if event.reason == "RebootFailed"]
    assert down <= failed.at - machine.since < down + timedelta(minutes=3)


def test_a_condition_that_is_over_before_the_reboot_returns_the_node_to_service():
    system = a_system(pods=[a_pod()])
    machine = Machine(system)
    claim(system)

    def before(state, data):
        if state == "Settle":
            machine.put(monitored=())

    walk = Walker(system, before=before).run(I)
    assert (walk.ended, system.instances.rebooted) == ("Cancelled", [])
    assert system.kubernetes.events[-1].message.endswith("AcceleratedHardwareReady is no longer False")
    assert not machine.node.tainted


def test_nothing_is_rebooted_while_the_circuit_breaker_is_open():
    """Every node of its zone has become NotReady during the drain."""
    system = a_system()
    machine = Machine(system)
    claim(system)

    def before(state, data):
        machine(state, data)
        if state == "Reboot":
            system.kubernetes.put_node(replace(a_node("i-0b"), ready=False, not_ready_since=system.clock.now()))

    walk = Walker(system, before=before).run(I)
    assert (walk.ended, system.instances.rebooted) == ("Cancelled", [])
    assert "every node of zone us-east-1a is unhealthy" in system.kubernetes.events[-1].message
    assert not machine.node.tainted


def test_nothing_is_rebooted_in_a_zone_that_eks_has_shifted_away_from():
    """The shift begins during the drain."""
    system = a_system()
    machine = Machine(system)
    claim(system)

    def before(state, data):
        machine(state, data)
        if state == "Reboot":
            system.shift(ZONE)

    walk = Walker(system, before=before).run(I)
    assert (walk.ended, system.instances.rebooted) == ("Cancelled", [])
    assert not machine.node.tainted


def test_the_breaker_counts_other_nodes_of_the_cluster():
    system = a_system(group=a_group(GROUP, I, "i-0b"))
    system.instances.put(an_instance("i-0b"))
    system.kubernetes.put_node(a_node("i-0b"))
    machine = Machine(system)
    claim(system)
    assert Walker(system, before=machine).run(I).ended == "Rebooted"
