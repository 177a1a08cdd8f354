"""Groups whose instance lifecycle policy retains instances: none ends undrained, none that is retained by itself."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import HookResult, LifecycleHook
from leeward.model.termination import CauseKind, Outcome, Status
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import GROUP, a_group, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import FOREIGN, I, a_budget, a_pod, a_system, claim, ended
from tests.state_machines.walker import Walker

SHORT = DrainPolicy(timeout=timedelta(minutes=2))
RETAINS = replace(a_group(GROUP, I), retains=True)


def scaled_in(*, group=RETAINS, hooks=(), allowed=0):
    """An instance that its group is ending, held by our hook, with a pod whose budget decides."""
    system = a_system(hooks=[our_hook(), *hooks], pods=[a_pod()], budgets=[a_budget(allowed)], drain=SHORT, group=group)
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    return system


def abandon(system, hook):
    """The owner of the hook gives up, or its time is over."""
    system.groups.complete(group=GROUP, hook=hook, instance=I, result=HookResult.ABANDON)


def test_without_such_a_policy_a_drain_that_is_out_of_time_lets_go():
    system = scaled_in(group=a_group(GROUP, I))
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == []
    assert [result for *_, result in system.groups.answered] == [HookResult.CONTINUE]


def test_with_it_the_drain_goes_on_and_the_hook_is_heartbeaten_until_the_pods_have_left():
    system = scaled_in()

    def the_budget_is_mended(_state, _input):
        if system.clock.now() > START + timedelta(minutes=30):
            system.kubernetes.set_allowed("shop/web", 1)

    assert Walker(system, before=the_budget_is_mended).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert len(system.groups.heartbeats) >= 10
    assert [result for *_, result in system.groups.answered] == [HookResult.CONTINUE]
    assert system.clock.now() > START + timedelta(minutes=30)


def test_when_the_hook_may_not_be_heartbeaten_any_longer_the_group_keeps_the_instance_and_we_let_it():
    system = scaled_in()

    def its_time_is_over(_state, _input):
        if system.clock.now() > START + timedelta(hours=2):
            abandon(system, "leeward-terminate")
        if system.clock.now() > START + timedelta(hours=3):
            system.kubernetes.set_allowed("shop/web", 1)

    walk = Walker(system, before=its_time_is_over).run(I)
    assert walk.ended == "Cancelled"
    assert "the group retains the instance" in walk.output["why"]
    assert system.groups.by_name[GROUP].lifecycle_of(I) == "Terminating:Retained"
    assert (system.instances.known[I].state, system.groups.terminated) == ("running", [])
    assert ended(system) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)


@pytest.mark.parametrize("when", ["before we have answered", "after we have answered"])
def test_what_another_team_has_not_finished_keeps_the_instance_although_we_have(when):
    theirs = LifecycleHook(name="their-backup", group=GROUP, transition=FOREIGN.transition)
    system = scaled_in(hooks=[theirs], allowed=1)

    def their_backup_fails(state, _input):
        answered = [hook for _, hook, *_ in system.groups.answered]
        if state == "Terminate" if when.startswith("before") else answered == ["leeward-terminate"]:
            abandon(system, "their-backup")

    assert Walker(system, before=their_backup_fails).run(I).ended == "Cancelled"
    assert system.groups.terminated == []
    assert system.instances.known[I].state == "running"


def test_manually_a_retained_instance_is_drained_and_ended_without_decrement():
    """It does not count for the group's size any more."""
    system = a_system(pods=[a_pod()], drain=SHORT, group=RETAINS)
    system.groups.set_lifecycle(GROUP, I, "Terminating:Retained")
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert system.groups.terminated == [(I, False)]
    assert system.groups.by_name[GROUP].desired == 1


def test_a_spot_instance_that_ec2_takes_is_let_go_all_the_same():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)], drain=SHORT, group=RETAINS)
    claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(minutes=2))
    assert Walker(system).run(I).ended == "Terminated"
    assert system.clock.now() < START + timedelta(minutes=3)
