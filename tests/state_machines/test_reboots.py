"""Reboot of a drained node: once, then back in service, or replaced if it does not come back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError, ThrottledError
from leeward.model.node_condition import NodeCondition
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, Status
from tests.fakes.builders import a_node, a_subject, an_instance
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, ended
from tests.state_machines.walker import KilledError, Walker

BROKEN = NodeCondition(type="AcceleratedHardwareReady", status="False", reason="NvidiaXID79Error", since=START)
REBOOT = Reboot(by=RebootBy.LEEWARD, condition=BROKEN.type, status=BROKEN.status)


class Machine:
    """The instance: `back` seconds after a reboot its kubelet reports another boot id, None for never, and `ready`
    seconds later that it is Ready; `helps`: the condition is gone then. As `before` of a walker it lets time pass.
    """

    def __init__(self, system, *, back=90, ready=0, helps=True):
        self.system, self.back, self.ready, self.helps, self.since = system, back, ready, helps, None
        self.pods = []  # that were on the node at each reboot
        system.instances.on_reboot = self.reboot
        self.put(boot="boot-1", monitored=(BROKEN,))

    @property
    def node(self):
        return self.system.kubernetes.by_name[f"node-{I}"]

    def put(self, **what):
        self.system.kubernetes.by_name[f"node-{I}"] = replace(self.node, **what)

    def with_neighbours(self):
        """Two healthy nodes, so that a node that is NotReady is no outage."""
        for name in ("i-0b", "i-0c"):
            self.system.instances.put(an_instance(name))
            self.system.kubernetes.put_node(a_node(name))
        return self

    def reboot(self, _):
        self.pods.append([pod.key for pod in self.system.kubernetes.pods_on(self.node.name)])
        self.since = self.system.clock.now()
        self.put(ready=False, not_ready_since=self.since)

    def __call__(self, *_):
        if self.since is None or self.back is None or f"node-{I}" not in self.system.kubernetes.by_name:
            return
        now, boots = self.system.clock.now(), self.since + timedelta(seconds=self.back)
        if now >= boots:
            self.put(boot=f"boot-{len(self.pods) + 1}", monitored=() if self.helps else (BROKEN,))
        if now >= boots + timedelta(seconds=self.ready):
            self.since = None
            self.put(ready=True, not_ready_since=None)


def claim(system, id_="unhealthy#1", reboot=REBOOT, kind=CauseKind.UNHEALTHY):
    cause = Cause(id=id_, kind=kind, at=system.clock.now(), reboot=reboot)
    return system.claims.claim(a_subject(I), cause, system.clock.now())


def events(system):
    return [event.reason for event in system.kubernetes.events]


def test_a_node_is_drained_then_rebooted_once_and_back_in_service():
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)])
    machine = Machine(system)
    claim(system)
    walk = Walker(system, before=machine).run(I)
    assert walk.ended == "Rebooted"
    assert ended(system) == (Status.CLOSED, Outcome.REBOOTED)
    assert (system.instances.rebooted, machine.pods) == ([I], [[]])
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert (system.groups.launches, system.groups.terminated) == ([], [])
    assert (machine.node.tainted, machine.node.unschedulable, machine.node.boot) == (False, False, "boot-2")
    assert events(system) == ["Rebooting", "Rebooted"]
    assert walk.states.index("Settle") < walk.states.index("Reboot")


def test_a_taint_that_is_removed_during_the_reboot_is_repeated():
    system = a_system()
    machine, looks = Machine(system), []

    def reboot(name):
        machine.reboot(name)
        machine.put(taints=(), unschedulable=False)

    system.instances.on_reboot = reboot
    claim(system)
    before = lambda *_: (machine(), looks.append((bool(machine.pods), machine.node.tainted)))  # noqa: E731
    assert Walker(system, before=before).run(I).ended == "Rebooted"
    assert (True, True) in looks
    assert not machine.node.tainted


def test_a_new_boot_id_alone_returns_no_node_to_service():
    system = a_system()
    machine = Machine(system, ready=60)
    claim(system)
    requested = []
    system.instances.on_reboot = lambda name: (requested.append(system.clock.now()), machine.reboot(name))
    assert Walker(system, before=machine).run(I).ended == "Rebooted"
    assert system.clock.now() - requested[0] >= timedelta(seconds=150)


@pytest.mark.parametrize("machine", [{"back": None}, {"helps": False}], ids=["never back", "still broken"])
def test_one_that_is_not_back_and_well_after_fifteen_minutes_is_replaced_at_the_second_look(machine):
    system = a_system(pods=[a_pod()])
    world = Machine(system, **machine).with_neighbours()
    claim(system)
    assert Walker(system, before=world).run(I).ended == "Terminated"
    assert system.instances.rebooted == [I]
    assert len(system.groups.launches) == 1
    assert [instance for instance, _ in system.groups.terminated] == [I]
    (failed,) = [event for event in system.kubernetes.events if event.reason == "RebootFailed"]
    requested = system.claims.records[I].reboots["boot-1"]
    assert timedelta(minutes=16) <= failed.at - requested < timedelta(minutes=16, seconds=30)


def test_a_step_that_is_killed_after_the_request_reboots_no_second_time():
    system = a_system()
    machine = Machine(system)
    claim(system)
    walk = Walker(system, before=machine, killed=["reboot", "reboot"]).run(I)
    assert (walk.ended, system.instances.rebooted) == ("Rebooted", [I])


def test_a_request_that_may_have_been_lost_is_not_repeated():
    system = a_system()
    Machine(system)
    claim(system)
    system.instances.on_reboot = lambda _: (_ for _ in ()).throw(KilledError)
    walk = Walker(system).run(I)
    assert (walk.ended, system.instances.rebooted) == ("Terminated", [I])


def test_a_throttled_request_is_made_again_and_one_without_an_answer_waited_for():
    for error, calls in ((ThrottledError("slow down"), 2), (AwsUnavailableError("no answer"), 1)):
        system = a_system()
        machine = Machine(system)
        claim(system)
        machine_reboots, errors = system.instances.on_reboot, [error]

        def failing(instance, machine_reboots=machine_reboots, errors=errors):
            if errors and isinstance(errors[0], ThrottledError):
                raise errors.pop()
            machine_reboots(instance)
            if errors:
                raise errors.pop()

        system.instances.on_reboot = failing
        assert Walker(system, before=machine).run(I).ended == "Rebooted"
        assert len(system.instances.rebooted) == calls


def test_a_reboot_that_is_not_allowed_becomes_a_replacement():
    system = a_system()
    Machine(system)
    claim(system)
    system.instances.on_reboot = lambda _: (_ for _ in ()).throw(AccessDeniedError("ec2:RebootInstances"))
    assert Walker(system).run(I).ended == "Terminated"
    assert "RebootFailed" in events(system)


def test_blocked_pods_return_it_to_service_and_nothing_is_rebooted():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    machine = Machine(system)
    claim(system)
    assert Walker(system, before=machine).run(I).ended == "PodEvictionFailure"
    assert system.instances.rebooted == []
    assert not machine.node.tainted


def test_a_pod_that_comes_after_the_drain_is_drained_before_the_reboot():
    system = a_system()
    machine = Machine(system)
    claim(system)
    late = [a_pod()]

    def before(state, data):
        machine(state, data)
        if state == "Reboot" and late:
            system.kubernetes.put_pod(late.pop())

    assert Walker(system, before=before).run(I).ended == "Rebooted"
    assert machine.pods == [[]]
    assert system.kubernetes.done == ["evict shop/web-1"]


def rebooted_before(times):
    system = a_system()
    machine = Machine(system)
    for number in range(times):
        machine.put(monitored=(BROKEN,))
        record = claim(system, f"unhealthy#{number}")
        assert Walker(system, before=machine).run(I, attempt=record.attempt).ended == "Rebooted"
    machine.put(monitored=(BROKEN,))
    return system, machine


def test_the_third_reboot_of_a_day_is_a_replacement():
    system, machine = rebooted_before(2)
    record = claim(system, "unhealthy#3")
    assert Walker(system, before=machine).run(I, attempt=record.attempt).ended == "Terminated"
    assert system.instances.rebooted == [I, I]


def test_a_day_later_it_may_be_rebooted_again():
    system, machine = rebooted_before(2)
    system.clock.advance(hours=24)
    record = claim(system, "unhealthy#3")
    assert Walker(system, before=machine).run(I, attempt=record.attempt).ended == "Rebooted"
    assert system.instances.rebooted == [I, I, I]


WARNING = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, deadline=START + timedelta(minutes=9))
KEEP = Cause(id="manual", kind=CauseKind.MANUAL, at=START)


@pytest.mark.parametrize("state", ["Drain", "Reboot", "WaitForReboot", "ReturnNodeToService", "Finish"])
@pytest.mark.parametrize("cause", [WARNING, KEEP], ids=["spot warning", "manual drain"])
def test_a_cause_that_ends_the_instance_ends_the_reboot(state, cause):
    system = a_system()
    machine, joins = Machine(system), [cause]
    claim(system)

    def before(name, data):
        machine(name, data)
        if name == state and joins:
            system.claims.claim(a_subject(I), joins.pop(), system.clock.now())

    assert Walker(system, before=before).run(I).ended == "Terminated"
    assert [instance for instance, _ in system.groups.terminated] == [I]


def test_an_instance_that_ends_during_its_reboot_is_removed():
    system = a_system()
    machine = Machine(system, back=None)
    claim(system)

    def before(state, data):
        machine(state, data)
        if state == "WaitForReboot":
            system.instances.set_state(I, "terminated")

    assert Walker(system, before=before).run(I).ended == "Terminated"
    assert system.kubernetes.by_name == {}
