"""node-termination from end to end on fakes: the story of each path, with the world changing underneath."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, ClusterUnreachableError, ThrottledError
from leeward.model.group import LifecycleHook
from leeward.model.launch_refusal import fix_for
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import Cause, CauseKind, Outcome, Replacement, Status
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, a_subject, an_instance, our_hook, policies
from tests.fakes.clock import START
from tests.fakes.refusals import REFUSALS
from tests.fakes.system import FakeSystem
from tests.state_machines.walker import Walker

I = "i-0abc"  # noqa: E741  (the instance of every story)
DEFAULTS = DrainPolicy()
FOREIGN = LifecycleHook(name="other-team", group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")


def a_pod(name="web-1", *, labels=None, grace=5, node=f"node-{I}"):
    return Pod(
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        node=node,
        phase="Running",
        labels=labels or {"app": "web"},
        ready=True,
        grace_seconds=grace,
    )


def a_budget(allowed, name="web"):
    return PodDisruptionBudget(
        namespace="shop", name=name, selector={"matchLabels": {"app": "web"}}, disruptions_allowed=allowed
    )


def a_system(*, hooks=(), pods=(), budgets=(), drain=DEFAULTS, group=None):
    policy = replace(a_policy(), drain=drain)
    system = FakeSystem(
        instances=[an_instance(I)],
        groups=[group or a_group(GROUP, I)],
        hooks=hooks,
        nodes=[a_node(I)],
        written=policies(policy),
    )
    for pod in pods:
        system.kubernetes.put_pod(pod)
    system.kubernetes.budget_list = list(budgets)
    return system


def claim(system, kind, *, deadline=None, id_="event-1", hook=None):
    cause = Cause(id=id_, kind=kind, at=START, deadline=deadline, hook=hook, hook_ours=hook is not None)
    node = f"node-{I}" if f"node-{I}" in system.kubernetes.by_name else None
    return system.claims.claim(a_subject(I, node=node), cause, system.clock.now())


def spot(system):
    return claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(minutes=2))


def ec2_says(system, state):
    """EC2 changes the instance, and fn interruption handles the message about it."""
    system.instances.set_state(I, state)
    cause = Cause(id=f"state-{state}", kind=CauseKind.STATE_CHANGE, at=system.clock.now(), state=state)
    return system.claims.claim(a_subject(I), cause, system.clock.now())


def ended(system):
    record = system.claims.records[I]
    return record.status, record.outcome


def test_a_spot_warning_replaces_drains_settles_terminates_and_removes_the_node():
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)])
    spot(system)
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)
    assert [launch[1] for launch in system.groups.launches] == ["subnet-a"]
    assert system.groups.terminated == [(I, True)]  # the launch is paid for
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert system.kubernetes.by_name == {}
    assert system.clock.now() - START < timedelta(minutes=2)


def test_the_replacement_is_asked_for_before_the_first_eviction():
    system = a_system(pods=[a_pod()])
    spot(system)
    asked = []
    Walker(system, before=lambda *_: asked.append((len(system.groups.launches), len(system.kubernetes.done)))).run(I)
    assert (0, 1) not in asked
    assert (1, 0) in asked


def test_with_a_hook_of_ours_the_group_is_reported_first_and_holds_the_instance_while_it_drains():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    spot(system)
    walk = Walker(system).run(I)
    assert walk.states.index("TerminateBeforeDrain") < walk.states.index("Drain")
    assert system.groups.terminated == [(I, True)]
    assert [(hook, str(result)) for _, hook, _, result in system.groups.answered] == [("leeward-terminate", "CONTINUE")]
    assert walk.ended == "Terminated"


def test_where_launching_is_refused_the_group_replaces_it_itself():
    system = a_system(pods=[a_pod()])
    system.groups.refuse_launch = "mixed purchase options"
    spot(system)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.groups.terminated == [(I, False)]
    assert system.claims.records[I].replacement.reason == "mixed purchase options"


def test_a_group_whose_sizes_are_no_instance_counts_replaces_its_instances_itself():
    units = replace(a_group(GROUP, I), capacity_units="its sizes count vcpu (DesiredCapacityType)")
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)], group=units)
    spot(system)
    assert Walker(system).run(I).ended == "Terminated"
    assert (system.groups.launches, system.groups.terminated) == ([], [(I, False)])
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_scale_in_is_drained_and_its_hook_answered_without_a_replacement():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert system.groups.launches == []
    assert system.groups.terminated == []
    assert [hook for _, hook, _, _ in system.groups.answered] == ["leeward-terminate"]


def test_a_foreign_hook_on_the_same_group_is_neither_heartbeaten_nor_answered():
    system = a_system(hooks=[our_hook(), FOREIGN], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")

    def other_team_answers_in_the_end(state, _):
        if system.clock.now() > START + timedelta(minutes=20):
            system.groups.complete(group=GROUP, hook="other-team", instance=I, result="CONTINUE")

    Walker(system, before=other_team_answers_in_the_end).run(I)
    assert {hook for _, hook, _ in system.groups.heartbeats} <= {"leeward-terminate"}
    at_last = [hook for _, hook, _, _ in system.groups.answered]
    assert at_last == ["leeward-terminate", "other-team"]


def test_a_blocked_scale_in_heartbeats_its_hook_and_is_let_go_at_the_time_out_naming_the_budget():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert timedelta(minutes=15) < system.clock.now() - START < timedelta(minutes=18)
    assert len(system.groups.heartbeats) >= 6  # a hook of 300 s, heartbeaten at half of it
    assert system.kubernetes.done == []
    failure = next(event for event in system.kubernetes.events if event.reason == "PodEvictionFailure")
    assert "shop/web-1: pdb shop/web" in failure.message


def test_a_blocked_maintenance_gives_the_node_back_and_is_tried_again():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=3))
    walk = Walker(system).run(I)
    assert (walk.ended, walk.error) == ("PodEvictionFailure", "PodEvictionFailure")
    assert "pdb shop/web" in walk.cause
    node = system.kubernetes.by_name[f"node-{I}"]
    assert not node.tainted
    assert not node.unschedulable
    record = system.claims.records[I]
    assert record.status is Status.OPEN
    assert record.times["retry"] > system.clock.now()


def test_a_forced_drain_deletes_what_is_left_at_the_time_out():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=DrainPolicy(force=True))
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["delete shop/web-1"]


def test_a_forced_spot_drain_deletes_pods_early_enough_for_their_own_grace():
    system = a_system(pods=[a_pod(grace=30)], budgets=[a_budget(0)], drain=DrainPolicy(force=True))
    spot(system)
    Walker(system).run(I)
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert system.claims.records[I].times["drained"] <= START + timedelta(seconds=122)


def test_an_instance_that_is_gone_already_ends_at_once():
    system = a_system()
    spot(system)
    system.instances.set_state(I, "terminated")
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert "Drain" not in walk.states
    assert system.kubernetes.by_name == {}


def test_the_node_object_stays_until_ec2_says_that_the_instance_ends():
    system = a_system(hooks=[FOREIGN], pods=[])
    spot(system)
    present = []

    def watch(state, _):
        alive = system.instances.describe([I])[I].state == "running"
        present.append((alive, f"node-{I}" in system.kubernetes.by_name))
        if system.clock.now() > START + timedelta(minutes=10):
            system.groups.complete(group=GROUP, hook="other-team", instance=I, result="CONTINUE")

    Walker(system, before=watch).run(I)
    assert (True, False) not in present


def test_an_empty_node_that_settles_is_tainted_again_where_its_taint_was_removed_by_others():
    system = a_system(drain=DrainPolicy(settle=timedelta(minutes=30)))
    claim(system, CauseKind.MANUAL)
    tainted = [True]

    def remove_once(state, _):
        node = system.kubernetes.by_name.get(f"node-{I}")
        if node is not None and state == "Settle":
            tainted.append(node.tainted)
            if len(tainted) == 2:
                system.kubernetes.put_node(replace(node, taints=()))

    Walker(system, before=remove_once).run(I)
    assert len(tainted) > 2
    assert all(tainted)


def test_a_cause_that_joins_wakes_the_run_and_tightens_its_deadline():
    """A spot warning cannot sleep behind a settle of an hour."""
    system = a_system(pods=[a_pod()], drain=DrainPolicy(settle=timedelta(hours=1)))
    claim(system, CauseKind.MANUAL)

    def a_spot_warning_after_a_minute(_state, _input):
        record = system.claims.records[I]
        if system.clock.now() >= START + timedelta(minutes=1) and record.version == 1:
            joined = claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(minutes=3), id_="event-2")
            system.ports.executions.wake(joined.token or "")

    walk = Walker(system, before=a_spot_warning_after_a_minute).run(I)
    assert walk.ended == "Terminated"
    assert system.claims.records[I].times["terminating"] <= START + timedelta(minutes=3)


def test_a_cause_that_joins_at_the_last_moment_sends_the_run_round_once_more():
    system = a_system()
    spot(system)

    def at_the_end(state, _):
        if state == "Finish" and system.claims.records[I].version == 1:
            claim(system, CauseKind.STATE_CHANGE, id_="event-2")

    walk = Walker(system, before=at_the_end).run(I)
    assert walk.states.count("Claim") == 2
    assert walk.ended == "Terminated"


@pytest.mark.parametrize("step", ["claim", "replace", "terminate", "drain", "answer", "remove-node", "finish"])
def test_a_function_killed_after_its_effects_changes_nothing_about_the_end(step):
    system = a_system(hooks=[our_hook()], pods=[a_pod(), a_pod("web-2")], budgets=[a_budget(1)])
    spot(system)

    def the_budget_recovers(_state, _input):
        if not any(pod.deletion for pod in system.kubernetes.by_key.values()):
            system.kubernetes.set_allowed("shop/web", 1)

    walker = Walker(system, killed=[step], before=the_budget_recovers)
    walk = walker.run(I)
    assert walker.killed == []
    if step == "finish":  # closed by the killed call: the second finds nothing to close
        assert walk.ended in {"Terminated", "Delegated"}
    else:
        assert walk.ended == "Terminated"
    assert len(system.groups.launches) == 1
    assert system.groups.terminated == [(I, True)]
    assert len(system.groups.answered) == 1
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)
    assert sorted(system.kubernetes.done) == ["evict shop/web-1", "evict shop/web-2"]


def test_an_unreachable_api_server_never_terminates_anything_and_its_hooks_are_heartbeaten():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    system.kubernetes.down = True
    answered_while_down = []

    def two_hours_of_outage(_state, _input):
        if system.clock.now() > START + timedelta(hours=2):
            system.kubernetes.down = False
        if system.kubernetes.down:
            answered_while_down.extend(system.groups.answered)

    walk = Walker(system, before=two_hours_of_outage).run(I)
    assert answered_while_down == []
    assert len(system.groups.heartbeats) >= 2 * 60 / 2.5 - 5
    assert walk.ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_maintenance_never_ends_a_node_while_the_api_server_is_gone():
    system = a_system(pods=[a_pod()])
    claim(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=3))
    system.kubernetes.fail("pods_on", ClusterUnreachableError("500"))

    def heal_after_an_hour(_state, _input):
        if system.clock.now() > START + timedelta(hours=1):
            system.kubernetes.heal()
        else:
            assert system.groups.terminated == []

    assert Walker(system, before=heal_after_an_hour).run(I).ended in {"Terminated", "PodEvictionFailure"}


def test_throttled_aws_calls_are_retried():
    system = a_system(pods=[a_pod()])
    spot(system)
    system.instances.fail("describe", ThrottledError("RequestLimitExceeded"), times=6)
    assert Walker(system).run(I).ended == "Terminated"


def test_a_step_that_keeps_failing_leaves_an_open_record_that_says_when_to_try_again():
    system = a_system(pods=[a_pod()])
    spot(system)
    system.groups.fail("terminate", KeyError("a defect"))
    walk = Walker(system).run(I)
    assert (walk.ended, walk.error) == ("NodeTerminationFailure", "NodeTerminationFailure")
    assert "a defect" in walk.cause
    record = system.claims.records[I]
    assert record.status is Status.OPEN
    assert record.times["retry"] > system.clock.now()


def test_started_manually_it_claims_starts_the_named_execution_and_hands_over():
    system = a_system(pods=[a_pod()])
    walk = Walker(system).run(I, manual="console-run")
    assert walk.ended == "Delegated"
    assert system.executions.open == {f"{I}-1"}
    assert system.claims.records[I].causes[0].kind is CauseKind.MANUAL
    assert Walker(system).run(I).ended == "Terminated"
    assert system.groups.launches == []  # the group replaces a node drained manually


def test_manual_nonsense_fails_with_a_sentence():
    walk = Walker(a_system()).run("i-unknown", manual="console-run")
    assert walk.ended == "InvalidInput"
    assert "i-unknown" in walk.cause


def test_a_lost_table_loses_no_node():
    system = a_system(pods=[a_pod()])
    system.executions.open.add(f"{I}-1")
    assert Walker(system).run(I).ended == "Terminated"


def test_a_drain_waits_for_a_slow_pod_and_settles_before_it_terminates():
    system = a_system(pods=[a_pod(grace=90)])
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    times = system.claims.records[I].times
    assert times["drained"] - START >= timedelta(seconds=90)
    assert times["terminating"] - times["drained"] >= timedelta(seconds=60)


def test_an_instance_detached_from_its_group_meanwhile_is_spared():
    system = a_system(pods=[])
    claim(system, CauseKind.MANUAL)

    def an_operator_detaches_it(state, _):
        if state == "Settle":
            group = system.groups.by_name[GROUP]
            system.groups.by_name[GROUP] = replace(group, instances=())

    walk = Walker(system, before=an_operator_detaches_it).run(I)
    assert walk.ended == "Cancelled"
    assert ended(system) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    assert [event.reason for event in system.kubernetes.events] == ["TerminationCancelled"]
    assert not system.kubernetes.by_name[f"node-{I}"].tainted


def test_a_hook_that_came_straight_to_our_queue_is_answered_whatever_its_topic():
    system = a_system(hooks=[FOREIGN])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="other-team")
    assert Walker(system).run(I).ended == "Terminated"
    assert [hook for _, hook, _, _ in system.groups.answered] == ["other-team"]


@pytest.mark.parametrize(("cause", "refusal"), REFUSALS.items())
def test_a_group_that_launch_instances_does_not_serve_replaces_the_instance_itself(cause, refusal):
    system = a_system(pods=[a_pod()])
    spot(system)
    system.groups.refuse_launch = refusal
    assert Walker(system).run(I).ended == "Terminated"
    assert system.groups.terminated == [(I, False)]
    assert system.group_changes.asked["raise_to"] == 0
    assert system.claims.records[I].replacement == Replacement(reason=refusal, refused=True)
    (event,) = [event for event in system.kubernetes.events if event.reason == "LaunchRefused"]
    assert cause.value in event.message
    assert fix_for(cause) in event.message


def test_nothing_is_launched_for_an_instance_that_ended_meanwhile():
    """Nothing would offset it: the group replaces what ended by itself."""
    system = a_system(pods=[])
    spot(system)

    def it_ends(state, _):
        if state == "AskForReplacement":
            ec2_says(system, "shutting-down")

    assert Walker(system, before=it_ends).run(I).ended == "Terminated"
    assert system.groups.launches == []


def test_a_run_that_gives_up_heartbeats_the_hook_that_it_leaves_waiting():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    system.clock.advance(minutes=4)
    system.instances.fail("describe", AccessDeniedError("ec2:DescribeInstances"), times=6)
    assert Walker(system).run(I).ended == "NodeTerminationFailure"
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", I)]


def test_a_hook_that_joins_while_the_node_is_removed_is_answered():
    """EC2 ended the instance first; its group notices later, and its hook holds what is already dead."""
    system = a_system(hooks=[our_hook()])
    claim(system, CauseKind.STATE_CHANGE)
    system.instances.set_state(I, "shutting-down")

    def meanwhile(state, _):
        if state == "RemoveNode" and not system.groups.history:
            system.groups.begin_terminating(GROUP, I)
            claim(system, CauseKind.ASG_TERMINATE, id_="lifecycle", hook="leeward-terminate")

    walk = Walker(system, before=meanwhile).run(I)
    assert walk.ended == "Terminated"
    assert [hook for _, hook, _, _ in system.groups.answered] == ["leeward-terminate"]


def test_a_hook_that_joins_while_a_node_with_maintenance_ahead_is_returned_is_drained_for_and_answered():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=2))

    def meanwhile(state, _):
        if state == "Finish" and not system.groups.history:
            system.groups.begin_terminating(GROUP, I)
            claim(system, CauseKind.ASG_TERMINATE, id_="lifecycle", hook="leeward-terminate")

    walk = Walker(system, before=meanwhile).run(I)
    assert walk.ended == "Terminated"
    assert [hook for _, hook, _, _ in system.groups.answered] == ["leeward-terminate"]
