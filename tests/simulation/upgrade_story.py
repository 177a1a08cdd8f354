"""An upgrade reported from its beginning to its end, what may happen to it on its way, and which ways it has taken."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from leeward.errors import AccessDeniedError, ClusterUnreachableError
from leeward.upgrade import run
from simulation import functions
from simulation.aws.changes import SimGroupChanges
from simulation.machine import walk
from simulation.machine.execution import ExecutionOverError
from simulation.machine.run import MachineRun
from simulation.timeline import START
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, entered

LONG = 3600.0  # seconds in which every retry is used up
Way = tuple[str, str]  # a state, and the state or the condition by which it was left


@dataclass(frozen=True, kw_only=True)
class Story:
    """`plan` says what is going to happen; `ends`: the state in which each execution ends; `versions` that are left."""

    plan: Callable[[pytest.MonkeyPatch], Upgraded]
    ends: dict[str, str]
    versions: tuple[str, ...] = ("2",)
    size: int = 6
    hours: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Played:
    """What became of it."""

    world: Upgraded
    ways: frozenset[Way]

    @property
    def ends(self) -> dict[str, str]:
        return {name: entered(execution)[-1] for name, execution in self.world.everywhere.items()}


def play(story: Story) -> Played:
    """Run it. A state is left by a choice's condition (the default's is empty), any other by its next state."""
    with pytest.MonkeyPatch.context() as patch:
        ways = _choices_made(patch)
        world = story.plan(patch).run(story.hours)
    for execution in world.everywhere.values():
        states = entered(execution)
        ways |= set(pairwise(states))
    return Played(world=world, ways=frozenset(ways))


def _choices_made(patch: pytest.MonkeyPatch) -> set[Way]:
    """Of every choice from now on; what a Choice state says of itself stands for its name."""
    ways: set[Way] = set()
    real = walk.chosen

    def chosen(definition, value):
        choice = real(definition, value)
        ways.add((definition["Comment"], choice.get("Condition", "")))
        return choice

    patch.setattr(walk, "chosen", chosen)
    return ways


def an_upgrade(fleet=None, **asked):
    """To the second version of its template, by an execution called `first`."""
    return Upgraded(fleet).start(launchTemplateVersion="2", **asked)


def before(patch, step, act):
    """Each time before the step of that name."""
    real = functions.step

    def stepped(called, call, ports):
        if (called, call["step"]) == ("upgrade", step):
            act()
        return real(called, call, ports)

    patch.setattr(functions, "step", stepped)


def once(act):
    """Only the first time."""
    left = [act]
    return lambda: left.pop()() if left else None


def stop_in(patch, world, state, *, again_after=200.0, **asked):
    """An operator stops `first` as soon as it enters the state, before anything is done there, and starts it again."""
    real, stopped = MachineRun.step, []

    def step(machine_run, name):
        real(machine_run, name)
        if name == state and machine_run.execution.name == "first" and not stopped:
            stopped.append(state)
            world.at(again_after, lambda: world.machine.start("again", {"group": GROUP, **asked}))
            world.machine.stop("first")
            world.other_machine.stop("first")
            raise ExecutionOverError

    patch.setattr(MachineRun, "step", step)
    return stopped


DENIED = (
    "autoscaling:UpdateAutoScalingGroup on app (LaunchTemplate): AccessDenied: You are not authorized to use launch "
    "template: lt-app"
)


def template_denied(patch, world, *, until):
    """Auto Scaling's dry run with the new template is denied to the function for so many seconds."""
    real = SimGroupChanges.point_at

    def point_at(changes, group, template):
        if world.world.timeline.now() < START + until:
            raise AccessDeniedError(DENIED)
        real(changes, group, template)

    patch.setattr(SimGroupChanges, "point_at", point_at)
    return world


def robbed(step, world=an_upgrade):
    """An operator starts it again while it seems dead, just before a step: the first execution has lost its lease."""

    def plan(patch):
        found = world()
        records = found.world.system.upgrades.records

        def rob():
            records[GROUP] = replace(records[GROUP], execution="who-has-died-since")

        before(patch, step, once(rob))
        return found.start("again", at=BEGIN + LONG)

    return plan


def broken(step, world=an_upgrade, also=(), **asked):
    """The cluster does not answer a step of the first execution, until all its retries are used up."""

    def plan(patch):
        found = world()

        def fail():
            if any("first" in machine.executions for machine in (found.machine, found.other_machine)):
                raise ClusterUnreachableError("connection refused")

        found.world.injector.faultless = False  # the step fails as under a fault
        for name in (step, *also):
            before(patch, name, fail)
        return found.start("again", at=BEGIN + 2 * LONG, **asked)

    return plan


def stalled(step, failure, world=an_upgrade):
    """A step finds for the first time that what it waits for does not come; the upgrade is started again later."""

    def plan(patch):
        found, left, real = world(), [failure], functions.step
        found.world.injector.faultless = False  # the answer is as under a fault

        def stepped(called, call, ports):
            answer = real(called, call, ports)
            waits = (called, call["step"]) == ("upgrade", step) and left
            if not waits:
                return answer
            node = next(found.world.cluster.store.each("nodes"))["metadata"]["name"]  # a failure names one
            return {**answer, "next": left.pop(), "why": f"{answer['why']}: {node}"}

        patch.setattr(functions, "step", stepped)
        return found.start("again", at=BEGIN + LONG)

    return plan


def full(step, world=an_upgrade):
    """The history of the execution is full once it has taken the step; the next one's is not."""

    def plan(patch):
        seen = []

        def fill():
            seen.append(step)
            patch.setattr(run, "MOST_PAUSES", 1 if len(seen) == 1 else 1500)

        before(patch, step, fill)
        return world()

    return plan
