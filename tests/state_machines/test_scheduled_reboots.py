"""`interruption.systemReboot: wait`: a drained node waits for the reboot that EC2 has scheduled."""

from datetime import timedelta

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, Status
from tests.fakes.builders import a_subject
from tests.fakes.clock import START
from tests.state_machines.test_reboots import Machine, events
from tests.state_machines.test_walks import I, a_pod, a_system, ended
from tests.state_machines.walker import Walker

DATE = START + timedelta(minutes=20)
MINUTE = timedelta(minutes=1)
REBOOT = Reboot(by=RebootBy.EC2)


def listed(system, *, prefix="", code="system-reboot"):
    event = ScheduledEvent(
        id="instance-event-1", instance=I, code=code, starts=DATE, description=f"{prefix} your host is rebooted"
    )
    system.instances.scheduled[I] = (event,)


class Ec2(Machine):
    """`reboots`: minutes after the date at which EC2 reboots the instance, None for never; `story`: what else happens,
    by minutes after the start.
    """

    def __init__(self, system, *, reboots=1, story=(), **machine):
        super().__init__(system, **machine)
        self.reboots, self.story = reboots, dict(story)
        self.with_neighbours().put(monitored=())
        listed(system)

    def __call__(self, *_):
        now = self.system.clock.now()
        for minutes in [minutes for minutes in self.story if now >= START + minutes * MINUTE]:
            self.story.pop(minutes)(self)
        if self.reboots is not None and now >= DATE + self.reboots * MINUTE:
            self.reboots = None
            self.reboot(I)
            listed(self.system, prefix="[Completed]")
        super().__call__()


def walk(**ec2):
    system = a_system(pods=[a_pod()])
    world = Ec2(system, **ec2)
    cause = Cause(id="instance-event-1#from-x", kind=CauseKind.SCHEDULED_CHANGE, at=START, deadline=DATE, reboot=REBOOT)
    system.claims.claim(a_subject(I), cause, START)
    return system, world, Walker(system, before=world).run(I)


def test_the_node_is_drained_before_the_reboot_and_back_in_service_after_it():
    system, world, done = walk()
    assert (done.ended, ended(system)) == ("Rebooted", (Status.CLOSED, Outcome.REBOOTED))
    assert (system.instances.rebooted, world.pods) == ([], [[]])
    assert (world.node.tainted, world.node.unschedulable, world.node.boot) == (False, False, "boot-2")
    assert events(system) == ["Rebooted"]
    assert (system.groups.launches, system.groups.terminated) == ([], [])


def test_a_reboot_of_another_cause_before_the_date_does_not_end_the_wait():
    system, world, done = walk(story={5: lambda world: world.reboot(I)})
    assert (done.ended, len(world.pods)) == ("Rebooted", 2)
    assert system.clock.now() > DATE


@pytest.mark.parametrize("minutes", [5, 10])
def test_a_node_whose_taint_is_removed_during_the_wait_is_drained_again(minutes):
    def lifted(world):
        world.put(taints=(), unschedulable=False)
        world.system.kubernetes.put_pod(a_pod("web-2"))

    system, world, done = walk(story={minutes: lifted})
    assert (done.ended, world.pods) == ("Rebooted", [[]])
    assert system.kubernetes.done == ["evict shop/web-1", "evict shop/web-2"]
    assert not world.node.tainted


def test_a_webhook_that_forbids_the_taint_again_does_not_end_the_wait():
    def lifted(world):
        world.put(taints=(), unschedulable=False)
        world.system.kubernetes.fail("taint", ClusterUnreachableError("failed calling webhook on nodes (HTTP 500)"))

    _, world, done = walk(story={5: lifted})
    assert (done.ended, world.node.boot) == ("Rebooted", "boot-2")
    assert len(done.states) < 500


def test_a_canceled_event_returns_the_node_to_service_at_once():
    system, world, done = walk(reboots=None, story={5: lambda world: listed(world.system, prefix="[Canceled]")})
    assert done.ended == "Cancelled"
    assert system.clock.now() < START + 6 * MINUTE
    assert not world.node.tainted


def test_an_event_that_ec2_lists_no_more_ends_the_wait_a_quarter_of_an_hour_after_its_date():
    system, _, done = walk(reboots=None, story={5: lambda world: world.system.instances.scheduled.clear()})
    assert done.ended == "Cancelled"
    assert DATE + 15 * MINUTE <= system.clock.now() < DATE + 17 * MINUTE


def test_a_reboot_that_comes_late_is_waited_for_while_ec2_lists_it():
    _, world, done = walk(reboots=90)
    assert (done.ended, world.node.boot) == ("Rebooted", "boot-2")


def test_a_node_that_does_not_come_back_is_replaced():
    system, _, done = walk(back=None)
    assert done.ended == "Terminated"
    assert len(system.groups.launches) == 1
    assert "RebootFailed" in events(system)


def test_retirement_ends_the_instance_in_spite_of_the_wait():
    def joins(world):
        cause = Cause(id="event-2", kind=CauseKind.SCHEDULED_CHANGE, at=START, deadline=DATE + 60 * MINUTE)
        world.system.claims.claim(a_subject(I), cause, world.system.clock.now())

    system, _, done = walk(story={5: joins})
    assert done.ended == "Terminated"
    assert len(system.groups.launches) == 1
