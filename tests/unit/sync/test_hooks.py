"""fn sync keeps our terminate hook on selected groups and never touches what is not its own."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import ThrottledError
from leeward.model.group import HookResult, LifecycleHook
from leeward.model.well_known import hook_mark
from leeward.policy.document import Heartbeat, InterruptionPolicy
from leeward.policy.hooks import is_ours
from leeward.sync.controller import sync_once
from tests.fakes.builders import GROUP, PUT_BY_SYNC, a_group, a_node, a_policy, an_instance, our_hook, policies
from tests.fakes.system import QUEUE_ARN, FakeSystem


def a_hook(name, **changes):
    hook = LifecycleHook(name=name, group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")
    return replace(hook, **changes)


def a_system(*hooks, policy=None, groups=None, **written):
    return FakeSystem(
        groups=groups or [a_group(GROUP, "i-0abc")], hooks=hooks, written=policies(policy or a_policy(), **written)
    )


def test_a_selected_group_gets_our_terminate_hook_once():
    system = a_system()
    assert sync_once(system.ports).hooks == [GROUP]
    assert sync_once(system.ports).hooks == []
    assert system.groups.hooks_of[GROUP] == [our_hook(heartbeat_timeout=PUT_BY_SYNC)]


def test_a_group_that_no_policy_selects_is_left_alone():
    system = a_system(policy=a_policy("other", "batch-*"))
    assert sync_once(system.ports).hooks == []
    assert system.groups.asked["put_hook"] == 0


def test_foreign_hooks_stay_as_they_are_beside_ours():
    foreign = a_hook("other-team")
    system = a_system(foreign)
    sync_once(system.ports)
    assert system.groups.hooks_of[GROUP] == [foreign, our_hook(heartbeat_timeout=PUT_BY_SYNC)]


def test_a_named_deployment_and_the_usual_one_leave_each_others_hooks_alone():
    of_the_usual = our_hook(heartbeat_timeout=PUT_BY_SYNC)
    system = a_system(of_the_usual, policy=a_policy("other", "batch-*"))
    assert sync_once(replace(system.ports, hook_mark=hook_mark("trial"))).hooks_taken_off == []
    assert system.groups.hooks_of[GROUP] == [of_the_usual]

    system = a_system()
    assert sync_once(replace(system.ports, hook_mark=hook_mark("trial"))).hooks == [GROUP]
    (put,) = system.groups.hooks_of[GROUP]
    assert put.metadata == "leeward.dev/v1/trial"
    assert is_ours(put, a_policy(), frozenset())
    system.clusters.policies_of["blue"] = policies(a_policy("other", "batch-*"))
    assert sync_once(system.ports).hooks_taken_off == []
    assert sync_once(replace(system.ports, hook_mark=hook_mark("trial"))).hooks_taken_off == [GROUP]


def test_a_foreign_hook_of_our_name_is_not_overwritten():
    foreign = a_hook("leeward-terminate", metadata="another owner's")
    system = a_system(foreign)
    assert sync_once(system.ports).hooks == []
    assert system.groups.hooks_of[GROUP] == [foreign]


def test_a_hook_that_the_policy_names_or_that_notifies_our_queue_is_enough():
    named = a_policy(hooks=["theirs-but-ours"])
    assert sync_once(a_system(a_hook("theirs-but-ours"), policy=named).ports).hooks == []
    assert sync_once(a_system(a_hook("direct", target_arn=QUEUE_ARN)).ports).hooks == []


def test_our_own_hook_with_another_time_out_is_put_right():
    system = a_system(our_hook(heartbeat_timeout=60))
    assert sync_once(system.ports).hooks == [GROUP]


def test_the_time_out_of_our_hook_lets_a_group_wait_for_as_long_as_heartbeats_are_sent():
    """Auto Scaling ends a hook after min(48 h, 100 x HeartbeatTimeout), whatever was heartbeaten."""
    for until, seconds in ((60, 300), (30_000, 300), (30_001, 301), (172_800, 1728)):
        heartbeat = Heartbeat(until=timedelta(seconds=until))
        system = a_system(policy=replace(a_policy(), interruption=InterruptionPolicy(heartbeat=heartbeat)))
        sync_once(system.ports)
        (hook,) = system.groups.hooks_of[GROUP]
        assert hook.heartbeat_timeout == seconds
        assert min(48 * 3600, 100 * hook.heartbeat_timeout) >= until


def test_a_group_that_retains_instances_keeps_those_without_an_answer():
    """Its instance lifecycle policy acts on abandoned hooks alone: the default result has to be ABANDON there."""
    retaining = replace(a_group(GROUP, "i-0abc"), retains=True)
    system = a_system(our_hook(heartbeat_timeout=PUT_BY_SYNC), groups=[retaining])
    assert sync_once(system.ports).hooks == [GROUP]
    assert [hook.default for hook in system.groups.hooks_of[GROUP]] == [HookResult.ABANDON]
    assert sync_once(system.ports).hooks == []
    system.groups.by_name[GROUP] = replace(retaining, retains=False)
    assert sync_once(system.ports).hooks == [GROUP]
    assert [hook.default for hook in system.groups.hooks_of[GROUP]] == [HookResult.CONTINUE]


def test_with_interruption_handling_off_no_hook_is_put():
    off = replace(a_policy(), interruption=InterruptionPolicy(enabled=False))
    assert sync_once(a_system(policy=off).ports).hooks == []
    assert sync_once(a_system(interruption=False).ports).hooks == []


def test_in_a_paused_cluster_no_hook_is_put_and_no_node_labelled():
    system = a_system(paused="all")
    system.kubernetes.put_node(a_node("i-0abc"))
    system.instances.put(an_instance("i-0abc"))
    outcome = sync_once(system.ports)
    assert (outcome.hooks, outcome.labelled) == ([], [])


def test_a_pause_of_voluntary_work_takes_no_hook_away():
    system = a_system(paused="voluntary")
    assert sync_once(system.ports).hooks == [GROUP]


def test_our_hook_comes_off_a_group_that_no_policy_selects_any_more():
    foreign = a_hook("other-team")
    system = a_system(our_hook(heartbeat_timeout=PUT_BY_SYNC), foreign, policy=a_policy("other", "batch-*"))
    assert sync_once(system.ports).hooks_taken_off == [GROUP]
    assert system.groups.hooks_of[GROUP] == [foreign]
    assert sync_once(system.ports).hooks_taken_off == []


def test_but_not_while_it_holds_an_instance_that_a_run_is_draining():
    ending = a_group(GROUP, "i-0abc", lifecycle="Terminating:Wait")
    system = a_system(our_hook(heartbeat_timeout=PUT_BY_SYNC), policy=a_policy("other", "batch-*"), groups=[ending])
    assert sync_once(system.ports).hooks_taken_off == []


def test_a_hook_of_our_name_that_is_not_ours_never_comes_off():
    foreign = a_hook("leeward-terminate", metadata="another owner's")
    system = a_system(foreign, policy=a_policy("other", "batch-*"))
    assert sync_once(system.ports).hooks_taken_off == []
    assert system.groups.hooks_of[GROUP] == [foreign]


def test_the_hook_of_a_selected_group_stays_though_interruption_handling_is_off():
    """Its instances would wait for no answer: it is answered at once there."""
    assert sync_once(a_system(our_hook(heartbeat_timeout=PUT_BY_SYNC), interruption=False).ports).hooks_taken_off == []


def test_a_group_that_fails_is_named_and_does_not_stop_the_others():
    system = a_system(groups=[a_group("web-a", "i-0abc"), a_group("web-b", "i-0def")])
    system.groups.fail("put_hook", ThrottledError("slow down"), times=1)
    outcome = sync_once(system.ports)
    assert (outcome.hooks, outcome.errors) == (["web-b"], ["web-a: slow down"])
