"""Plays: the claim of each, its actions, its end, and the promises by which it is judged."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from account_test import acts, judge
from account_test.context import Context
from account_test.deployment import call
from account_test.errors import StepError
from account_test.foundation import workload
from account_test.groups import GroupPlan, make_group
from account_test.judge import Finding, Judge
from account_test.recording import Recording
from account_test.watching import dead_letters, drain_tap, look, sizes, watch

JOIN_SECONDS = 900
HOOK = "leeward-terminate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Play of one claim. `act` carries out the actions and records the instances concerned; `over`: True when there is
    nothing more to wait for; `seconds`: the longest wait for that.
    """

    name: str
    proves: str
    plan: GroupPlan
    act: Callable[[Context, Recording], None]
    over: Callable[[Recording], bool]
    promises: Sequence[Judge]
    replicas: int = 2
    seconds: float = 900.0
    takes: str = "5 to 10 minutes, 1 cent"

    def judged(self, seen: Recording) -> list[Finding]:
        """Judge all of its promises."""
        return [promise(seen) for promise in self.promises]


def closed(count: int, desired: int) -> Callable[[Recording], bool]:
    """Return a check that `count` terminations are closed and the group has its size with all of it in service."""

    def over(seen: Recording) -> bool:
        done = [one for one in seen.terminations if one.status == "closed"]
        last = seen.samples[-1] if seen.samples else None
        ran = bool(seen.executions) and "RUNNING" not in seen.executions.values()
        settled = last is not None and last.desired == desired == last.serving == len(last.nodes)
        pods = last is not None and all(pod.ready and not pod.deleting for pod in last.pods.values())
        return len(done) >= count and len(done) == len(seen.terminations) and ran and settled and pods

    return over


def machine_ended(count: int, desired: int) -> Callable[[Recording], bool]:
    """Return the same check as `closed`, which also needs the started execution to have ended."""
    same = closed(count, desired)

    def over(seen: Recording) -> bool:
        return seen.machine not in {"", "RUNNING", "SUCCEEDED"} or (seen.machine == "SUCCEEDED" and same(seen))

    return over


ON_A_NODE = (judge.budgets_held, judge.pods_left_first, judge.nothing_tainted, judge.once_each, judge.no_message_left)

PLAYS = (
    Play(
        name="manual termination",
        proves="a manually started run drains its node; the group replaces it",
        plan=GroupPlan(part="ours-manual", size=2),
        act=acts.terminate_manually,
        over=closed(1, 2),
        promises=(judge.ended, judge.gone(), *ON_A_NODE, judge.sized(2), judge.every_pod_runs(2)),
    ),
    Play(
        name="scale-in",
        proves="our terminate hook holds the instance that the group chose until it is drained",
        plan=GroupPlan(part="ours-in", size=2),
        act=acts.scale_in,
        over=closed(1, 1),
        promises=(judge.ended, judge.gone(1), *ON_A_NODE, judge.sized(1), judge.every_pod_runs(2)),
    ),
    Play(
        name="spot interruption",
        proves="a spot warning, twice: the replacement comes first, the drain ends before EC2 takes the instance",
        takes="5 to 12 minutes, 1 cent, AWS FIS 10 cents",
        plan=GroupPlan(part="ours-spot", size=1, spot=True),
        act=acts.interrupt_spot,
        over=closed(1, 1),
        promises=(
            *(judge.ended, judge.gone(), judge.replaced_first, *ON_A_NODE, judge.sized(1)),
            judge.every_pod_runs(1),
        ),
        replicas=1,
    ),
    Play(
        name="self-managed upgrade",
        proves="a group is rolled to another version of its launch template and keeps its sizes",
        takes="8 to 15 minutes, 2 cents",
        plan=GroupPlan(part="ours-own", size=2),
        act=acts.upgrade,
        over=machine_ended(2, 2),
        promises=(
            *(judge.ended, judge.machine_succeeded, judge.gone(2), judge.all_new("2"), *ON_A_NODE, judge.sized(2)),
            judge.every_pod_runs(2),
        ),
        seconds=1500,
    ),
    Play(
        name="consolidation",
        proves="a node whose pods fit on another one goes",
        plan=GroupPlan(part="thin", size=2),
        act=acts.consolidate,
        over=machine_ended(1, 1),
        promises=(
            *(judge.ended, judge.machine_succeeded, judge.gone(1), *ON_A_NODE, judge.sized(1)),
            judge.every_pod_runs(2),
        ),
        seconds=1200,
    ),
    Play(
        name="another team's hook",
        proves="a group that no policy selects is left alone",
        takes="4 minutes, 1 cent",
        plan=GroupPlan(part="foreign", size=1, foreign=True),
        act=acts.hold_by_another_team,
        over=acts.held_long_enough,
        promises=(judge.left_alone,),
        replicas=0,
        seconds=300,
    ),
    # Last: with its last node group EKS may delete the node role's access entry.
    Play(
        name="managed upgrade",
        proves="EKS rolls a managed node group; Leeward starts the update, watches it and writes no size",
        takes="10 to 25 minutes, 2 cents",
        plan=GroupPlan(part="ours-eks", size=1, managed=True),
        act=acts.upgrade_managed,
        over=acts.managed_over,
        promises=(
            *(judge.ended, judge.machine_succeeded, judge.all_new("2"), judge.nothing_tainted, judge.sized(1)),
            judge.every_pod_runs(1),
        ),
        replicas=1,
        seconds=1800,
    ),
)


def perform(context: Context, play: Play) -> Recording:
    """Make the group and its workload, play, watch. Raises StepError if the group or its workload cannot be
    prepared.
    """
    group = make_group(context, play.plan)
    label = context.run.name(play.plan.part)
    context.base[f"label:{group}"] = label
    if play.replicas:
        for thing in workload(context, label, play.replicas):
            context.journal.making("kubernetes", label, object=thing["kind"], namespace=context.run.namespace)
            context.kube.create(thing)
    _settle(context, group, play)
    if not play.plan.foreign:
        _hooked(context, group)
    drain_tap(context)
    start = look(context, group)
    seen = Recording(play=play.name, began=time.time(), group=group, members_before=tuple(start.members))
    seen.before = sizes(context, group)
    seen.samples.append(start)
    seen.letters_before = tuple(body for _, body in dead_letters(context))
    play.act(context, seen)

    def over(seen: Recording) -> bool:
        acts.follow_machine(context, seen)
        return play.over(seen)

    watch(context, seen, over, play.seconds)
    acts.read_versions(context, seen, play.plan)
    return seen


def _settle(context: Context, group: str, play: Play) -> None:
    deadline = time.monotonic() + JOIN_SECONDS
    while True:
        now = look(context, group)
        ready = [node for node in now.nodes.values() if node.ready]
        pods = [pod for pod in now.pods.values() if pod.ready]
        budget = now.budget is not None and now.budget[0] >= play.replicas
        serving = now.serving == len(ready) == play.plan.size
        if serving and len(pods) == play.replicas and (budget or not play.replicas):
            return
        if time.monotonic() > deadline:
            raise StepError(
                f"{group}: within {JOIN_SECONDS} s {now.serving} of {play.plan.size} instances in service, "
                f"{len(ready)} nodes Ready, {len(pods)} of {play.replicas} pods: look at the group's activities, and "
                "at the log of an instance (aws ec2 get-console-output)"
            )
        time.sleep(context.run.look)


def _hooked(context: Context, group: str) -> None:
    """Call fn sync, which puts the hook on the group: its schedule of five minutes is too slow here. Raises StepError
    without it.
    """
    call(context, "sync")
    hooks = context.aws("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
    if HOOK not in {hook["LifecycleHookName"] for hook in hooks}:
        raise StepError(f"{group}: fn sync put no hook {HOOK} on it")
