"""A group with two terminate hooks of ours: each is heartbeaten by its own clock, and answered."""

from collections import Counter
from datetime import timedelta
from itertools import cycle, pairwise

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.model.group import TERMINATING, HookResult, LifecycleHook
from leeward.model.termination import CauseKind
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import GROUP, a_policy, our_hook, policies
from tests.fakes.clock import START
from tests.state_machines.test_joining_causes import join
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system
from tests.state_machines.walker import Walker

SHORT = LifecycleHook(name="short", group=GROUP, transition=TERMINATING, heartbeat_timeout=120)
BOTH = [our_hook(), SHORT]


def a_held_system(hooks):
    system = a_system(hooks=hooks, pods=[a_pod()], budgets=[a_budget(0)])
    system.clusters.policies_of = {name: policies(a_policy(hooks=("short",))) for name in system.clusters.policies_of}
    system.groups.begin_terminating(GROUP, I)
    join(system, CauseKind.ASG_TERMINATE, id="token-1", minutes=5, hook=our_hook().name, hook_ours=True)
    join(system, CauseKind.ASG_TERMINATE, id="token-2", minutes=2, hook=SHORT.name, hook_ours=True)
    return system


class Budget:
    """Opens after ten minutes; notes when each hook was heartbeaten."""

    def __init__(self, system):
        self.system, self.beaten, self.sent = system, {}, 0

    def __call__(self, _state, _data):
        for _, hook, _ in self.system.groups.heartbeats[self.sent :]:
            self.beaten.setdefault(hook, []).append(self.system.clock.now() - START)
        self.sent = len(self.system.groups.heartbeats)
        if self.system.clock.now() - START > timedelta(minutes=10):
            self.system.kubernetes.set_allowed("shop/web", 1)


@pytest.mark.parametrize("hooks", [BOTH, BOTH[::-1]], ids=["ours first", "the short one first"])
def test_each_hook_is_heartbeaten_before_its_own_time_out(hooks):
    system = a_held_system(hooks)
    budget = Budget(system)
    assert Walker(system, before=budget).run(I).ended == "Terminated"
    for hook in BOTH:
        moments = [timedelta(0), *budget.beaten[hook.name]]
        gaps = [later - earlier for earlier, later in pairwise(moments)]
        assert max(gaps) < timedelta(seconds=hook.heartbeat_timeout)
    assert Counter(hook for _, hook, _, _ in system.groups.answered) == {"leeward-terminate": 1, "short": 1}


def test_a_hook_of_a_minute_outlasts_steps_that_hang_for_all_of_their_time():
    """An admission webhook that never answers costs fn drain its 53 s, one step after another."""
    hook = our_hook(heartbeat_timeout=60)
    system = a_system(hooks=[hook], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    join(system, CauseKind.ASG_TERMINATE, id="token-1", minutes=1, hook=hook.name, hook_ours=True)
    heartbeat, listed, beaten = system.groups.heartbeat, system.kubernetes.pods_on, [START]
    hangs = cycle((12, 53))  # one that fails soon leaves the heartbeat for the next

    def beat(**asked):
        beaten.append(system.clock.now())
        return heartbeat(**asked)

    def hang(node, **_):
        passed = system.clock.now() - START
        if passed > timedelta(minutes=10):
            return listed(node)
        system.clock.advance(seconds=next(hangs))
        raise ClusterUnreachableError("list pods: no answer")

    system.groups.heartbeat, system.kubernetes.pods_on = beat, hang
    assert Walker(system).run(I).ended == "Terminated"
    assert max(later - earlier for earlier, later in pairwise(beaten)) < timedelta(seconds=60)


def test_a_step_that_hangs_until_its_function_ends_does_not_outlast_a_hook_of_a_minute(monkeypatch):
    system = a_system(hooks=[our_hook(heartbeat_timeout=60)], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    system.clock.advance(seconds=2)
    join(system, CauseKind.ASG_TERMINATE, id="token-1", minutes=1, hook=our_hook().name, hook_ours=True)
    beaten, heartbeat, taint = [START], system.groups.heartbeat, system.kubernetes.taint

    def noted(**given):
        beaten.append(system.clock.now())
        return heartbeat(**given)

    def hangs(*given, **options):
        if system.clock.now() > START + timedelta(minutes=5):
            return taint(*given, **options)
        system.clock.advance(seconds=53)
        raise ClusterUnreachableError("mark: no answer within 53.0 s")

    monkeypatch.setattr(system.groups, "heartbeat", noted)
    monkeypatch.setattr(system.kubernetes, "taint", hangs)
    assert Walker(system).run(I).ended == "Terminated"
    assert len(beaten) > 5
    assert all(later - earlier < timedelta(seconds=60) for earlier, later in pairwise(beaten))


@pytest.mark.parametrize("left", ["leeward-terminate", "short"])
def test_the_hook_that_still_waits_is_the_one_that_is_heartbeaten(left):
    """The other one was answered manually."""
    system = a_held_system(BOTH)
    other = next(hook.name for hook in BOTH if hook.name != left)
    system.groups.complete(group=GROUP, hook=other, instance=I, result=HookResult.CONTINUE)
    budget = Budget(system)
    assert Walker(system, before=budget).run(I).ended == "Terminated"
    assert set(budget.beaten) == {left}


@pytest.mark.parametrize("hooks", [BOTH, BOTH[::-1]], ids=["ours first", "the short one first"])
def test_the_minute_reconciler_heartbeats_both_where_no_execution_does(hooks):
    system = a_held_system(hooks)
    system.executions.start = lambda *_: True
    for _ in range(6):
        reconcile_once(system.ports)
        system.clock.advance(minutes=1)
    assert {hook for _, hook, _ in system.groups.heartbeats} == {"leeward-terminate", "short"}
