"""When a drain ends although pods are left: by the detach deadline, a deadline of the owner's, or not at all."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import HookResult, LifecycleHook
from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import GROUP, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_periods import join, opened_after, scale_in
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system
from tests.state_machines.walker import DEFINITION, Walker

HOOK = {"hook": "leeward-terminate", "hook_ours": True}
THEIRS = LifecycleHook(
    name="other-team", group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING", heartbeat_timeout=60
)


class Happens:
    """Things that happen at their moments, once each, while a walk goes on."""

    def __init__(self, system, *events):
        self.system, self.left = system, sorted(events, key=lambda event: event[0])

    def __call__(self, _state, _data):
        while self.left and self.system.clock.now() >= self.left[0][0]:
            self.left.pop(0)[1]()


def spot(system):
    return join(system, CauseKind.SPOT_INTERRUPTION, deadline=system.clock.now() + timedelta(minutes=2))


def drained(system):
    return system.claims.records[I].times["drained"]


def test_a_spot_warning_during_a_held_scale_in_gives_pods_the_two_minutes_that_ec2_gives():
    """The hook's own time-out of five minutes has passed by then, and says nothing: it was heartbeaten."""
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    scale_in(system)
    warned = START + timedelta(minutes=6)
    opens = (warned + timedelta(seconds=60), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, (warned, lambda: spot(system)), opens)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert drained(system) >= opens[0]


def test_a_hook_with_a_short_time_out_shortens_no_spot_drain():
    system = a_system(hooks=[our_hook(heartbeat_timeout=60)], pods=[a_pod()], budgets=[a_budget(0)])
    spot(system)

    def announced():
        join(system, CauseKind.ASG_TERMINATE, deadline=system.clock.now() + timedelta(seconds=60), **HOOK)

    held = (START + timedelta(seconds=1), announced)
    opens = (START + timedelta(seconds=80), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, held, opens)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]


@pytest.mark.parametrize("hooks", [[], [our_hook()]])
@pytest.mark.parametrize("kind", [CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION])
def test_with_pods_left_an_instance_that_ec2_takes_is_released_five_seconds_before_and_not_earlier(hooks, kind):
    system = a_system(hooks=hooks, pods=[a_pod()], budgets=[a_budget(0)])
    join(system, kind, deadline=START + timedelta(minutes=2))
    Walker(system).run(I)
    record = system.claims.records[I]
    assert START + timedelta(seconds=115) <= record.times["drained"] < START + timedelta(minutes=2)
    assert system.kubernetes.done == []


def test_a_termination_grace_period_longer_than_the_drains_time_out_extends_the_drain():
    drain = DrainPolicy(termination_grace_period=timedelta(minutes=30))
    system = a_system(pods=[a_pod(grace=30)], budgets=[a_budget(0)], drain=drain)
    join(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert drained(system) >= START + timedelta(minutes=29, seconds=30)


def test_attempts_do_not_restart_the_clock_of_a_termination_grace_period():
    """The node returns to service at drain.timeout, maintenance is ahead: the next attempt has what is left."""
    drain = DrainPolicy(timeout=timedelta(minutes=5), termination_grace_period=timedelta(minutes=30))
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=drain)
    join(system, CauseKind.MANUAL)
    system.claims.note(I, times={"begun": START, "draining": START})
    system.clock.advance(minutes=20)
    system.claims.begin_attempt(I, 1)
    assert Walker(system).run(I, 2).ended == "Terminated"
    assert START + timedelta(minutes=29) <= drained(system) <= START + timedelta(minutes=31)


@pytest.mark.parametrize("minutes", [3, 40])
def test_a_deadline_of_a_manual_drain_deletes_pods_for_it_whatever_the_policy_says(minutes):
    """Also past drain.timeout (15 min)."""
    system = a_system(pods=[a_pod(grace=30)], budgets=[a_budget(0)])
    join(system, CauseKind.MANUAL, deadline=START + timedelta(minutes=minutes))
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert abs(drained(system) - (START + timedelta(minutes=minutes, seconds=-30))) < timedelta(seconds=60)


def both_hooks(result):
    theirs = replace(THEIRS, default=result)
    drain = DrainPolicy(termination_grace_period=timedelta(minutes=10))
    system = a_system(hooks=[our_hook(), theirs], pods=[a_pod(grace=30)], budgets=[a_budget(0)], drain=drain)
    scale_in(system)
    join(
        system,
        CauseKind.ASG_TERMINATE,
        id_="theirs",
        deadline=START + timedelta(seconds=60),
        hook=theirs.name,
        hook_default=result,
    )
    return system


def test_another_teams_hook_that_continues_is_no_deadline_while_ours_holds_the_instance():
    system = both_hooks(HookResult.CONTINUE)

    def timed_out():
        system.groups.complete(group=GROUP, hook=THEIRS.name, instance=I, result=HookResult.CONTINUE)

    opens = (START + timedelta(minutes=3), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, (START + timedelta(seconds=60), timed_out), opens)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_another_teams_hook_that_abandons_is_a_deadline_even_while_ours_holds_the_instance():
    system = both_hooks(HookResult.ABANDON)
    Walker(system).run(I)
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert drained(system) <= START + timedelta(seconds=61)  # its 30 s of grace began 30 s before


def test_many_pods_and_a_slow_api_do_not_use_up_the_time_that_the_hooks_need():
    """200 pods in one turn, a second each."""
    pods = [a_pod(f"web-{n}", labels={"app": f"a{n}"}) for n in range(200)]
    system = a_system(hooks=[our_hook()], pods=pods)
    spot(system)
    evict, evicted = system.kubernetes.evict, []

    def slow(pod, grace_seconds=None):
        system.clock.advance(seconds=1)
        evicted.append(system.clock.now())
        evict(pod, grace_seconds)

    system.kubernetes.evict = slow
    Walker(system).run(I)
    assert 100 < len(evicted) < 120
    assert evicted[-1] <= START + timedelta(seconds=116)


def test_a_cause_that_joins_wakes_the_run_out_of_a_long_pause():
    """After hours a pause lasts minutes: a spot warning that only waited for its end would lose the pods."""
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)], drain=HELD)
    scale_in(system)
    warned = START + timedelta(hours=5)
    opens = (warned + timedelta(seconds=10), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, (warned, lambda: spot(system)), opens)).run(I)
    assert drained(system) <= warned + timedelta(seconds=60)


HELD = DrainPolicy(timeout=timedelta(days=3))
TRANSITION = 0.000025  # dollars, Step Functions Standard, us-east-1
INVOCATION = 0.0000002 + 2 * 0.5 * 0.0000133334  # dollars: a request, two seconds of 512 MB on arm64


def history_events(states):
    """Entered and exited; a task also scheduled, started and succeeded; a pause also submitted."""
    count = {"Choice": 2, "Task": 5, "Succeed": 2, "Fail": 1}
    found = [DEFINITION["States"][name] for name in states]
    return sum(count[state["Type"]] + ("waitForTaskToken" in state.get("Resource", "")) for state in found)


@pytest.mark.parametrize(("seconds", "hours"), [(300, 8), (1728, 48)])
def test_a_held_hook_stays_below_ten_thousand_history_events_and_five_cents_a_day(seconds, hours):
    """For as long as the group waits, a hundred time-outs or 48 hours. Step Functions ends an execution at 25,000."""
    system = a_system(hooks=[our_hook(heartbeat_timeout=seconds)], pods=[a_pod()], budgets=[a_budget(0)], drain=HELD)
    scale_in(system)
    walk = Walker(system, before=opened_after(system, hours * 60)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert history_events(walk.states) < 10_000
    dollars = len(walk.states) * TRANSITION + walk.states.count("Drain") * INVOCATION
    assert dollars < 0.05  # nearly all of it on the first day: the pauses grow
    assert len(system.groups.heartbeats) >= hours * 3600 / seconds  # none is missed, each is half a time-out ahead
