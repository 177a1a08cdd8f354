"""An instance refresh that replaces root volumes: the node is drained, stays, and returns to service."""

from datetime import timedelta

import pytest

from leeward.model.group import LAUNCHING, HookResult, LifecycleHook
from leeward.model.lifecycle import IN_SERVICE, LAUNCH_WAIT, REPLACE_WAIT
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, Status
from tests.fakes.builders import GROUP, a_subject, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_reboots import Machine, events
from tests.state_machines.test_walks import FOREIGN, I, a_budget, a_pod, a_system, ended
from tests.state_machines.walker import Walker

MINUTE = timedelta(minutes=1)
REPLACING, REPLACED = "ReplacingRootVolume:Proceed", "RootVolumeReplaced"
LAUNCH_HOOK = LifecycleHook(name="wait-for-node", group=GROUP, transition=LAUNCHING)


class Refresh(Machine):
    """Auto Scaling: it holds the instance, replaces its root volume once the hooks are answered, and boots it. `after`:
    the state that follows, `story`: what else happens, by minutes after the start.
    """

    def __init__(self, system, *, after=IN_SERVICE, reboots=True, story=(), **machine):
        super().__init__(system, **machine)
        self.after, self.reboots, self.story, self.answered = after, reboots, dict(story), None
        self.with_neighbours().put(monitored=())
        system.groups.waiting |= {(GROUP, hook.name, I) for hook in system.groups.hooks_of[GROUP]}
        system.groups.set_lifecycle(GROUP, I, REPLACE_WAIT)

    def __call__(self, *_):
        now = self.system.clock.now()
        for minutes in [minutes for minutes in self.story if now >= START + minutes * MINUTE]:
            self.story.pop(minutes)(self)
        state = self.system.groups.by_name[GROUP].lifecycle_of(I)
        if self.answered is None and state == IN_SERVICE:  # the fake lets an answered instance go on like that
            self.answered = now
            self.system.groups.set_lifecycle(GROUP, I, REPLACING)
        elif state == REPLACING and now >= self.answered + 2 * MINUTE:
            self.system.groups.set_lifecycle(GROUP, I, REPLACED)
            if self.reboots:
                self.reboot(I)
        elif state == REPLACED and now >= self.answered + 5 * MINUTE:
            self.system.groups.set_lifecycle(GROUP, I, self.after)
        super().__call__()


def replaces(system, *, hook="leeward-terminate", ours=True):
    cause = Cause(
        id="token",
        kind=CauseKind.REPLACE_ROOT_VOLUME,
        at=START,
        hook=hook,
        hook_ours=ours,
        reboot=Reboot(by=RebootBy.GROUP),
    )
    return system.claims.claim(a_subject(I), cause, system.clock.now())


def walk(*, hooks=None, budgets=(), **refresh):
    system = a_system(pods=[a_pod()], hooks=hooks or [our_hook()], budgets=budgets)
    world = Refresh(system, **refresh)
    replaces(system)
    return system, world, Walker(system, before=world).run(I)


def joins(kind, **more):
    def join(world):
        cause = Cause(id="other", kind=kind, at=world.system.clock.now(), **more)
        world.system.claims.claim(a_subject(I), cause, world.system.clock.now())

    return join


def test_the_node_is_drained_its_hook_answered_and_the_node_returns_to_service():
    system, world, done = walk()
    assert (done.ended, ended(system)) == ("Rebooted", (Status.CLOSED, Outcome.REBOOTED))
    assert world.pods == [[]]
    assert system.groups.answered == [(GROUP, "leeward-terminate", I, HookResult.CONTINUE)]
    assert (world.node.tainted, world.node.unschedulable, world.node.boot) == (False, False, "boot-2")
    assert events(system) == ["Rebooted"]
    assert (system.groups.launches, system.groups.terminated, system.instances.rebooted) == ([], [], [])


def test_the_hook_is_heartbeaten_while_a_budget_holds_the_pods():
    def opens(world):
        world.system.kubernetes.budget_list = []

    system, world, done = walk(budgets=[a_budget(0)], story={8: opens})
    assert done.ended == "Rebooted"
    assert world.pods == [[]]
    assert (GROUP, "leeward-terminate", I) in system.groups.heartbeats


def test_a_drain_that_is_out_of_time_lets_the_group_go_on():
    """Its owner has started the refresh: the hook is answered as for an instance that ends."""
    system, world, done = walk(budgets=[a_budget(0)])
    assert done.ended == "Rebooted"
    assert world.pods == [["shop/web-1"]]
    assert START + 15 * MINUTE <= system.clock.now() < START + 30 * MINUTE
    assert not world.node.tainted


@pytest.mark.parametrize("after", ["Standby", "Detached"])
@pytest.mark.parametrize(("reboots", "end"), [(True, "Rebooted"), (False, "Cancelled")])
def test_an_instance_that_its_owner_takes_out_of_service_meanwhile_is_returned(after, reboots, end):
    system, world, done = walk(after=after, reboots=reboots)
    assert done.ended == end
    assert (world.node.tainted, world.node.unschedulable) == (False, False)
    assert system.clock.now() < START + 30 * MINUTE


def test_a_launch_hook_that_holds_it_afterwards_is_waited_for():
    def ready(world):
        world.system.groups.set_lifecycle(GROUP, I, IN_SERVICE)

    system, world, done = walk(after=LAUNCH_WAIT, story={20: ready})
    assert (done.ended, world.node.tainted) == ("Rebooted", False)
    assert system.clock.now() >= START + 20 * MINUTE


def test_a_group_that_did_not_reboot_it_gets_the_node_back():
    system, world, done = walk(reboots=False)
    assert (done.ended, world.node.tainted, world.node.boot) == ("Cancelled", False, "boot-1")
    assert system.groups.terminated == []


def test_a_node_that_does_not_become_ready_is_left_to_node_repair():
    system, world, done = walk(back=None)
    assert (done.ended, ended(system)) == ("Cancelled", (Status.CLOSED, Outcome.RETURNED_TO_SERVICE))
    assert (system.groups.terminated, system.groups.launches, world.node.tainted) == ([], [], False)
    assert "node repair decides" in str(system.kubernetes.events[-1])


def test_an_instance_whose_replacement_fails_ends_with_its_group():
    def fails(world):
        world.system.groups.begin_terminating(GROUP, I)

    system, _, done = walk(after=REPLACED, story={9: fails})
    assert (done.ended, system.groups.terminated, system.groups.launches) == ("Terminated", [], [])


@pytest.mark.parametrize("kind", [CauseKind.UPGRADE, CauseKind.MANUAL, CauseKind.EXPIRED, CauseKind.ASG_TERMINATE])
def test_another_cause_ends_the_instance_only_after_the_group_has_it_in_service_again(kind):
    system, seen = a_system(pods=[a_pod()], hooks=[our_hook()]), []
    world = Refresh(system, story={1: joins(kind)})
    replaces(system)
    original = system.groups.terminate

    def terminate(*, instance, decrement, anyway=False):
        seen.append(system.groups.by_name[GROUP].lifecycle_of(instance))
        return original(instance=instance, decrement=decrement, anyway=anyway)

    system.groups.terminate = terminate
    done = Walker(system, before=world).run(I)
    assert done.ended == "Terminated"
    assert seen == [IN_SERVICE]
    assert world.pods[0] == []


def test_a_spot_warning_ends_it_whatever_the_group_does():
    taken = joins(CauseKind.SPOT_INTERRUPTION, deadline=START + 4 * MINUTE)
    system, _, done = walk(story={2: taken}, budgets=[a_budget(0)])
    assert done.ended == "Terminated"
    assert system.clock.now() < START + 12 * MINUTE


def test_the_hook_of_another_team_is_not_answered():
    system = a_system(pods=[a_pod()], hooks=[FOREIGN])
    world = Refresh(
        system,
        story={
            5: lambda world: world.system.groups.complete(
                group=GROUP, hook=FOREIGN.name, instance=I, result=HookResult.CONTINUE
            )
        },
    )
    replaces(system, hook=FOREIGN.name, ours=False)
    done = Walker(system, before=world).run(I)
    assert (done.ended, world.pods, world.node.tainted) == ("Rebooted", [[]], False)
    assert system.groups.heartbeats == []


def test_the_hook_of_an_instance_that_never_joined_is_answered():
    system = a_system(hooks=[our_hook()])
    world = Refresh(system)
    system.kubernetes.by_name.pop(f"node-{I}")
    world.reboots = False
    replaces(system)
    done = Walker(system, before=world).run(I)
    assert done.ended == "Cancelled"
    assert system.groups.answered == [(GROUP, "leeward-terminate", I, HookResult.CONTINUE)]
    assert len(done.states) < 70


def test_a_state_that_was_read_too_early_does_not_answer_the_hook_of_a_node_with_pods():
    """Auto Scaling's first answer is from before the hook held the instance."""
    system = a_system(pods=[a_pod()], hooks=[our_hook()])
    world = Refresh(system)
    system.groups.set_lifecycle(GROUP, I, IN_SERVICE)
    world.answered = START  # the fake's own reading of InService does not apply
    replaces(system)

    def before(*words):
        if system.clock.now() >= START + timedelta(seconds=20) and world.answered == START:
            world.answered = None
            system.groups.set_lifecycle(GROUP, I, REPLACE_WAIT)
        if world.answered != START:
            world(*words)

    done = Walker(system, before=before).run(I)
    assert (done.ended, world.pods) == ("Rebooted", [[]])


def test_a_hook_of_another_team_that_holds_it_for_two_days_fills_no_history():
    def completes(world):
        hook = {"group": GROUP, "hook": FOREIGN.name, "instance": I}
        world.system.groups.complete(**hook, result=HookResult.CONTINUE)

    system = a_system(hooks=[FOREIGN])
    world = Refresh(system, story={47 * 60: completes})
    replaces(system, hook=FOREIGN.name, ours=False)
    done = Walker(system, before=world).run(I)
    assert (done.ended, world.node.tainted) == ("Rebooted", False)
    assert 5 * len(done.states) < 10_000  # events of the execution; it may have 25,000
