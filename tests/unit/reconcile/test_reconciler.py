"""What no Catch can finish: lost starts, orphan hooks, stale marks, and maintenance that waits for its budget."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, ClusterGoneError, ClusterUnreachableError, ThrottledError
from leeward.model.group import LAUNCHING, LifecycleHook
from leeward.model.instance_status import ScheduledEvent
from leeward.model.node import Taint, disruption_taint
from leeward.model.termination import Cause, CauseKind, Outcome
from leeward.policy.document import Budget, DesiredNode, DisruptionPolicy
from leeward.reconcile.reconciler import reconcile_once
from leeward.sync.controller import sync_once
from tests.fakes.builders import (
    DEPLOYMENT,
    GROUP,
    a_group,
    a_node,
    a_policy,
    a_subject,
    an_instance,
    our_hook,
    policies,
)
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem

NODE = "i-0abc"
TAINT = disruption_taint(DEPLOYMENT)
FOREIGN = LifecycleHook(name="other-team", group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")


def a_system(*, hooks=(), ids=(NODE,), policy=None, tainted=False, **switches):
    return FakeSystem(
        instances=[an_instance(name) for name in ids],
        groups=[a_group(GROUP, *ids)],
        hooks=hooks,
        nodes=[a_node(name, taints=(TAINT,) if tainted else ()) for name in ids],
        written=policies(policy or a_policy(), **switches),
    )


def claim(system, kind=CauseKind.SPOT_INTERRUPTION, *, instance=NODE, deadline=None):
    hook = "leeward-terminate" if kind is CauseKind.ASG_TERMINATE else None
    cause = Cause(id=f"event-{instance}", kind=kind, at=START, deadline=deadline, hook=hook, hook_ours=hook is not None)
    return system.claims.claim(a_subject(instance, node=f"node-{instance}"), cause, system.clock.now())


def test_a_claim_whose_start_was_lost_is_started():
    system = a_system()
    claim(system)
    assert reconcile_once(system.ports).restarted == [NODE]
    assert system.executions.open == {"i-0abc-1"}


def test_a_running_execution_is_left_alone():
    system = a_system()
    claim(system)
    system.executions.start(NODE, 1)
    assert reconcile_once(system.ports).restarted == []


def test_an_execution_that_was_stopped_is_started_again_under_the_next_name():
    system = a_system()
    claim(system)
    system.executions.end(NODE, 1)
    assert reconcile_once(system.ports).restarted == [NODE]
    assert system.executions.open == {"i-0abc-2"}
    assert reconcile_once(system.ports).restarted == []


def test_after_a_failure_it_rests_until_its_time_and_its_hooks_are_heartbeaten_meanwhile():
    system = a_system(hooks=[our_hook()])
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.end(NODE, 1)
    system.claims.note(NODE, times={"retry": START + timedelta(minutes=10)})
    system.clock.advance(minutes=4)
    assert reconcile_once(system.ports).restarted == []
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", NODE)]
    system.clock.advance(minutes=6)
    assert reconcile_once(system.ports).restarted == [NODE]


def test_an_instance_held_by_a_hook_of_ours_whose_event_was_lost_is_claimed_and_drained():
    system = a_system(hooks=[our_hook()])
    system.groups.begin_terminating(GROUP, NODE)
    assert reconcile_once(system.ports).claimed == [NODE]
    record = system.claims.records[NODE]
    assert record.causes[0].kind is CauseKind.ASG_TERMINATE
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", NODE)]  # it is unknown how long it has waited
    assert system.executions.open == {"i-0abc-1"}
    assert reconcile_once(system.ports).claimed == []


def test_a_hook_of_ours_is_answered_where_the_termination_was_already_brought_to_an_end():
    system = a_system(hooks=[our_hook()])
    system.groups.begin_terminating(GROUP, NODE)
    reconcile_once(system.ports)
    system.claims.close(NODE, version=1, outcome=Outcome.TERMINATED, now=START)
    system.instances.set_state(NODE, "shutting-down")
    assert reconcile_once(system.ports).answered == [NODE]
    assert [hook for _, hook, _, _ in system.groups.answered] == ["leeward-terminate"]


def test_an_instance_that_came_back_from_its_warm_pool_is_drained_again_whatever_its_last_termination_was():
    """The same hook waits again, and its event is lost again."""
    system = a_system(hooks=[our_hook()])
    for attempt in (1, 2, 3):
        system.groups.begin_terminating(GROUP, NODE)
        assert reconcile_once(system.ports).claimed == [NODE]
        assert system.executions.open == {f"i-0abc-{attempt}"}
        record = system.claims.records[NODE]
        system.executions.end(NODE, attempt)
        system.claims.close(NODE, version=record.version, outcome=Outcome.TERMINATED, now=START)
    assert system.groups.answered == []


@pytest.mark.parametrize(
    "switch", [{"paused": "all"}, {"interruption": False}, {}], ids=["paused", "cluster", "policy"]
)
def test_with_interruption_handling_off_a_hook_of_ours_is_answered_and_nothing_is_drained(switch):
    policy = a_policy(enabled=bool(switch))
    system = a_system(hooks=[our_hook()], policy=policy, **switch)
    system.groups.begin_terminating(GROUP, NODE)
    assert reconcile_once(system.ports).answered == [NODE]
    assert [(hook, result) for _, hook, _, result in system.groups.answered] == [("leeward-terminate", "CONTINUE")]
    assert NODE not in system.claims.records


def test_under_a_pause_of_voluntary_work_an_instance_in_our_hook_is_drained():
    system = a_system(hooks=[our_hook()], paused="voluntary")
    system.groups.begin_terminating(GROUP, NODE)
    assert reconcile_once(system.ports).claimed == [NODE]
    assert system.groups.answered == []


def test_under_any_pause_the_hook_of_a_drain_under_way_is_heartbeaten():
    system = a_system(hooks=[our_hook()], paused="all")
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.end(NODE, 1)
    system.claims.note(NODE, times={"retry": START + timedelta(minutes=10)})
    system.clock.advance(minutes=4)
    reconcile_once(system.ports)
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", NODE)]


def test_but_a_drain_that_has_begun_is_brought_to_its_end():
    system = a_system(hooks=[our_hook()], paused="all")
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    assert reconcile_once(system.ports).restarted == [NODE]
    assert system.groups.answered == []


def test_a_foreign_hook_is_never_touched():
    system = a_system(hooks=[FOREIGN])
    system.groups.begin_terminating(GROUP, NODE)
    found = reconcile_once(system.ports)
    assert (found.claimed, found.answered) == ([], [])
    assert system.groups.answered == []
    assert system.groups.heartbeats == []


@pytest.mark.parametrize("metadata", ["", "managed-by: leeward elsewhere"])
def test_on_a_group_that_no_policy_selects_a_hook_of_others_is_never_touched(metadata):
    hook = replace(our_hook(), metadata=metadata)
    system = a_system(hooks=[hook], policy=a_policy("other", "batch-*"))
    system.groups.begin_terminating(GROUP, NODE)
    found = reconcile_once(system.ports)
    assert (found.claimed, found.answered, system.groups.answered) == ([], [], [])


def test_on_a_group_that_no_policy_selects_any_more_our_hook_is_answered_unless_its_record_is_open():
    """Fn sync keeps the hook for as long as the group ends an instance."""
    system = a_system(hooks=[our_hook()], policy=a_policy("other", "batch-*"))
    system.groups.begin_terminating(GROUP, NODE)
    assert (reconcile_once(system.ports).answered, system.claims.records) == ([NODE], {})
    draining = a_system(hooks=[our_hook()], policy=a_policy("other", "batch-*"))
    draining.groups.begin_terminating(GROUP, NODE)
    claim(draining, CauseKind.ASG_TERMINATE)
    assert reconcile_once(draining.ports).answered == []


def test_a_launch_hook_is_answered_when_the_node_is_ready_and_kept_waiting_before():
    system = a_system(hooks=[our_hook(transition=LAUNCHING)])
    system.instances.put(replace(an_instance(NODE), launched=START))
    system.groups.begin_launching(GROUP, NODE)
    system.kubernetes.put_node(a_node(NODE, ready=False))
    reconcile_once(system.ports)
    assert system.groups.answered == []
    assert len(system.groups.heartbeats) == 1
    system.kubernetes.put_node(a_node(NODE))
    assert reconcile_once(system.ports).answered == [NODE]


def test_a_taint_without_a_termination_is_removed_at_the_second_observation():
    """fn interruption taints before it claims: the first sight proves nothing."""
    system = a_system(tainted=True)
    assert reconcile_once(system.ports).untainted == []
    system.clock.advance(minutes=1)
    assert reconcile_once(system.ports).untainted == ["node-i-0abc"]
    assert not system.kubernetes.by_name["node-i-0abc"].tainted


def test_a_label_of_ours_comes_off_though_another_tool_has_removed_the_taint():
    """Nothing would show why the node gets no requests any more."""
    system = a_system(tainted=True)
    left = system.kubernetes.taint(system.kubernetes.by_name["node-i-0abc"], TAINT, exclude=True)
    system.kubernetes.put_node(replace(left, taints=(), unschedulable=False))
    assert reconcile_once(system.ports).untainted == []
    system.clock.advance(minutes=1)
    assert reconcile_once(system.ports).untainted == ["node-i-0abc"]
    assert not system.kubernetes.by_name["node-i-0abc"].taken_out


@pytest.mark.parametrize("known", [True, False], ids=["of an open run", "while runs cannot be read"])
def test_the_taint_stays_on_nodes_of_a_disruption_run(known, monkeypatch):
    """A run taints its nodes while their replacements come, long before it claims them."""

    def reconcile_disruption(_cluster, _ports):
        if not known:
            raise ThrottledError("rate exceeded")
        return frozenset({NODE}), None

    monkeypatch.setattr("leeward.disruption.completion.reconcile_disruption", reconcile_disruption)
    system = a_system(tainted=True)
    for _ in range(3):
        reconcile_once(system.ports)
        system.clock.advance(minutes=1)
    assert system.kubernetes.by_name["node-i-0abc"].tainted


def test_the_taint_of_an_open_record_stays():
    system = a_system(tainted=True)
    claim(system)
    for _ in range(3):
        reconcile_once(system.ports)
        system.clock.advance(minutes=1)
    assert system.kubernetes.by_name["node-i-0abc"].tainted


def test_maintenance_more_than_a_day_away_is_paced_by_the_budgets():
    ids = ("i-0aa", "i-0ab", "i-0ac")
    one = replace(a_policy(), disruption=DisruptionPolicy(budgets=(Budget(nodes=1, percent=False),)))
    system = a_system(ids=ids, policy=one)
    for name in ids:
        claim(system, CauseKind.SCHEDULED_CHANGE, instance=name, deadline=START + timedelta(days=5))
    first = reconcile_once(system.ports)
    assert len(first.restarted) == 1
    assert len(first.deferred) == 2
    (begun,) = first.restarted
    system.kubernetes.taint(system.kubernetes.by_name[f"node-{begun}"], TAINT)
    assert reconcile_once(system.ports).restarted == []


@pytest.mark.parametrize("taint", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"])
def test_maintenance_waits_for_a_node_that_another_controller_terminates(taint):
    one = replace(a_policy(), disruption=DisruptionPolicy(budgets=(Budget(nodes=1, percent=False),)))
    system = a_system(ids=("i-0aa", "i-0ab"), policy=one)
    claim(system, CauseKind.SCHEDULED_CHANGE, instance="i-0aa", deadline=START + timedelta(days=5))
    other = system.kubernetes.by_name["node-i-0ab"]
    system.kubernetes.by_name[other.name] = replace(other, taints=(Taint(key=taint, effect="NoSchedule"),))
    assert reconcile_once(system.ports).restarted == []
    system.kubernetes.by_name[other.name] = other
    assert reconcile_once(system.ports).restarted == ["i-0aa"]


def test_maintenance_does_not_wait_for_a_taint_that_another_controller_forgot():
    """Karpenter's taint has no time: the reconciler notes when it saw it first."""
    one = replace(a_policy(), disruption=DisruptionPolicy(budgets=(Budget(nodes=1, percent=False),)))
    system, date = a_system(ids=("i-0aa", "i-0ab"), policy=one), START + timedelta(days=5)
    claim(system, CauseKind.SCHEDULED_CHANGE, instance="i-0aa", deadline=date)
    system.instances.scheduled["i-0aa"] = (
        ScheduledEvent(id="instance-event-1", instance="i-0aa", code="instance-retirement", starts=date),
    )
    other = system.kubernetes.by_name["node-i-0ab"]
    taint = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
    system.kubernetes.by_name[other.name] = replace(other, taints=(taint,))
    for _ in range(13):
        assert reconcile_once(system.ports).restarted == []
        system.clock.advance(minutes=10)
    assert reconcile_once(system.ports).restarted == ["i-0aa"]


def test_maintenance_whose_start_failed_after_its_taint_does_not_wait_for_itself():
    one = replace(a_policy(), disruption=DisruptionPolicy(budgets=(Budget(nodes=1, percent=False),)))
    system = a_system(policy=one)
    claim(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=5))
    system.executions.fail("start", ThrottledError("rate exceeded"), times=1)
    assert reconcile_once(system.ports).restarted == []
    assert system.kubernetes.by_name["node-i-0abc"].tainted
    found = reconcile_once(system.ports)
    assert (found.restarted, found.deferred) == ([NODE], [])


def test_maintenance_of_an_instance_that_has_ended_waits_for_no_budget():
    """A detached instance may end without a word that reaches its record."""
    one = replace(a_policy(), disruption=DisruptionPolicy(budgets=(Budget(nodes=0, percent=False),)))
    system = a_system(policy=one)
    claim(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(days=5))
    assert reconcile_once(system.ports).restarted == []
    system.instances.set_state(NODE, "terminated")
    found = reconcile_once(system.ports)
    assert (found.restarted, found.deferred) == ([NODE], [])


def test_maintenance_within_a_day_does_not_wait():
    one = replace(a_policy(), disruption=DisruptionPolicy(budgets=(Budget(nodes=0, percent=False),)))
    system = a_system(policy=one)
    claim(system, CauseKind.SCHEDULED_CHANGE, deadline=START + timedelta(hours=20))
    assert reconcile_once(system.ports).restarted == [NODE]


def test_an_unreachable_cluster_is_named_and_ends_nothing():
    system = a_system(hooks=[our_hook()], tainted=True)
    system.groups.begin_terminating(GROUP, NODE)
    system.kubernetes.fail("nodes", ClusterUnreachableError("no answer"))
    found = reconcile_once(system.ports)
    assert found.errors == ["blue: ClusterUnreachableError: no answer"]
    assert system.groups.answered == []


def test_an_execution_that_cannot_be_started_does_not_keep_the_others_from_it():
    system = a_system()
    claim(system, CauseKind.MANUAL)
    system.claims.claim(a_subject("i-0def"), Cause(id="x", kind=CauseKind.MANUAL, at=START), START)
    system.executions.fail("start", ThrottledError("rate exceeded"), times=1)
    found = reconcile_once(system.ports)
    assert [len(found.errors), len(found.restarted)] == [1, 1]


def test_while_records_cannot_be_read_nothing_under_way_is_taken_for_left_over():
    system = a_system(hooks=[our_hook()], tainted=True)
    system.groups.begin_terminating(GROUP, NODE)
    claim(system)
    system.claims.fail("read_all", ThrottledError("rate exceeded"))
    with pytest.raises(ThrottledError):
        reconcile_once(system.ports)
    assert system.kubernetes.by_name["node-i-0abc"].tainted
    assert system.groups.answered == []


def test_while_executions_cannot_be_listed_each_is_asked_for():
    system = a_system(ids=(NODE, "i-0def"))
    claim(system)
    claim(system, instance="i-0def")
    system.executions.start(NODE, 1)
    system.executions.fail("all_running", AccessDeniedError("states:ListExecutions"))
    found = reconcile_once(system.ports)
    assert found.restarted == ["i-0def"]
    assert len(found.errors) == 1


def test_one_that_began_after_the_list_was_made_is_not_started_again(monkeypatch):
    system = a_system()
    claim(system)
    system.executions.start(NODE, 1)
    monkeypatch.setattr(system.executions, "all_running", frozenset)
    assert reconcile_once(system.ports).restarted == []


def test_a_hook_whose_run_is_held_up_is_heartbeaten_once_that_is_due():
    """Retries of a step that keeps failing may last for minutes; a run that heartbeats by itself is left to do it."""
    system = a_system(hooks=[our_hook()])
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.start(NODE, 1)
    system.clock.advance(minutes=2)
    reconcile_once(system.ports)
    assert system.groups.heartbeats == []
    system.clock.advance(minutes=1)
    reconcile_once(system.ports)
    reconcile_once(system.ports)
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", NODE)]


def test_a_hook_of_a_minute_is_heartbeaten_by_the_reconciler_although_its_execution_runs():
    """Its step may hang on an API server that does not answer, and the next reconciliation would come too late."""
    system = a_system(hooks=[our_hook(heartbeat_timeout=60)])
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.start(NODE, 1)
    system.clock.advance(seconds=10)
    reconcile_once(system.ports)
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", NODE)]


def test_a_hook_of_two_minutes_outlives_a_step_that_hangs_and_a_throttled_heartbeat():
    """The execution heartbeats, and then its step hangs; of the next two passes the second is throttled."""
    system = a_system(hooks=[our_hook(heartbeat_timeout=120)])
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.start(NODE, 1)
    last = system.clock.now()
    system.claims.note(NODE, heartbeats={"leeward-terminate": last})
    for seconds, throttled in ((26, False), (59, True), (59, False)):
        system.clock.advance(seconds=seconds)
        assert system.clock.now() < last + timedelta(seconds=120)
        if throttled:
            system.groups.fail("heartbeat", ThrottledError("rate exceeded"))
        reconcile_once(system.ports)
        system.groups.heal()
        last = system.claims.records[NODE].heartbeats["leeward-terminate"]
    assert len(system.groups.heartbeats) == 2


@pytest.mark.parametrize("time_out", [240, 300, 1728])
def test_hooks_of_four_minutes_and_more_are_heartbeaten_at_half_of_their_time_out_and_not_oftener(time_out):
    """Auto Scaling answers few calls, and a storm has a thousand hooks."""
    system = a_system(hooks=[our_hook(heartbeat_timeout=time_out)])
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.start(NODE, 1)
    for _ in range(60):
        system.clock.advance(minutes=1)
        reconcile_once(system.ports)
    assert len(system.groups.heartbeats) == 60 // -(-time_out // 120)  # passes in half of a time-out, rounded up


def test_a_pass_that_dies_over_its_records_has_settled_the_hooks_before():
    """A zone that ends at once leaves hundreds of both: a hook that times out is lost, the rest is done next minute."""
    system = a_system(ids=(NODE, "i-0def"), hooks=[our_hook()])
    claim(system, instance="i-0def")
    system.groups.begin_terminating(GROUP, NODE)
    begun = system.executions.start

    def start(instance, attempt):
        if instance == "i-0def":
            raise SystemExit  # the function's time-out
        return begun(instance, attempt)

    system.executions.start = start
    with pytest.raises(SystemExit):
        reconcile_once(system.ports)
    assert system.executions.open == {"i-0abc-1"}


def test_what_a_storm_costs_beside_what_each_hook_needs_does_not_grow():
    ids = [f"i-{number:04}" for number in range(200)]
    system = a_system(ids=ids, hooks=[our_hook()])
    for name in ids:
        system.groups.begin_terminating(GROUP, name)
        claim(system, CauseKind.ASG_TERMINATE, instance=name)
        system.executions.start(name, 1)
    before = [Counter(port.asked) for port in (system.claims, system.executions, system.groups, system.instances)]
    reconcile_once(system.ports)
    after = [Counter(port.asked) for port in (system.claims, system.executions, system.groups, system.instances)]
    assert sum(((now - then).total() for now, then in zip(after, before, strict=True)), 0) < 20


def test_each_minute_begins_with_another_record():
    system = a_system()
    for number in range(3):
        cause = Cause(id="x", kind=CauseKind.MANUAL, at=START)
        system.claims.claim(a_subject(f"i-0{number}"), cause, START)
    firsts = []
    for _ in range(3):
        system.executions.open.clear()
        firsts.append(reconcile_once(system.ports).restarted[0])
        system.clock.advance(minutes=1)
    assert sorted(firsts) == ["i-00", "i-01", "i-02"]


def test_an_orphan_hook_is_claimed_and_heartbeaten_while_the_api_server_is_away():
    system = a_system(hooks=[our_hook()])
    system.groups.begin_terminating(GROUP, NODE)
    system.kubernetes.down = True
    found = reconcile_once(system.ports)
    assert found.claimed == [NODE]
    assert len(found.errors) == 1
    assert system.groups.heartbeats == [(GROUP, "leeward-terminate", NODE)]


def test_a_launch_hook_is_kept_waiting_while_the_api_server_is_away():
    system = a_system(hooks=[our_hook(transition=LAUNCHING)])
    system.groups.begin_launching(GROUP, NODE)
    system.kubernetes.down = True
    assert reconcile_once(system.ports).answered == []
    assert [instance for _, _, instance in system.groups.heartbeats] == [NODE]


def test_a_launch_hook_is_answered_when_eks_has_deleted_the_cluster():
    """No node can become Ready there, and the instance is not ended for it."""
    system = a_system(hooks=[our_hook(transition=LAUNCHING)])
    system.groups.begin_launching(GROUP, NODE)
    system.kubernetes.by_name.clear()
    system.kubernetes.fail("nodes", ClusterGoneError("No cluster found for name: blue."))
    assert reconcile_once(system.ports).answered == [NODE]
    assert system.groups.heartbeats == []


@pytest.mark.parametrize("hours", [1, 49])
def test_a_launch_hook_that_a_removed_policy_named_is_answered_at_once_for_two_days(hours):
    """Its default ABANDON would end each new instance, and the group would launch without end."""
    hook = LifecycleHook(name="wait-for-node", group=GROUP, transition=LAUNCHING, heartbeat_timeout=600)
    system = a_system(hooks=[hook], policy=a_policy(hooks=("wait-for-node",)))
    sync_once(system.ports)
    system.clusters.policies_of = dict.fromkeys(system.clusters.policies_of, policies(a_policy("batch", "batch-*")))
    system.clock.advance(hours=hours)
    sync_once(system.ports)
    system.kubernetes.by_name.clear()
    system.groups.begin_launching(GROUP, NODE)
    reconcile_once(system.ports)
    assert [(name, result) for _, name, _, result in system.groups.answered] == (
        [("wait-for-node", "CONTINUE")] if hours == 1 else []
    )


def test_a_launch_hook_that_no_policy_named_is_left_to_its_owner():
    hook = LifecycleHook(name="warm-up", group=GROUP, transition=LAUNCHING, heartbeat_timeout=600)
    system = a_system(hooks=[hook], policy=a_policy("batch", "batch-*"))
    system.groups.begin_launching(GROUP, NODE)
    reconcile_once(system.ports)
    assert system.groups.answered == []


class TestLaunchHooks:
    """A launch hook of the policy, with its default ABANDON, ends and replaces an instance that never joins."""

    def waiting(self, time_out=600, *, joined=False, down=False):
        hook = LifecycleHook(name="wait-for-node", group=GROUP, transition=LAUNCHING, heartbeat_timeout=time_out)
        system = a_system(hooks=[hook], policy=a_policy(hooks=("wait-for-node",)))
        system.instances.put(replace(an_instance(NODE), launched=START))
        system.kubernetes.by_name.clear()
        if joined:
            system.kubernetes.put_node(a_node(NODE, ready=False))
        system.kubernetes.down = down
        system.groups.begin_launching(GROUP, NODE)
        return system

    def last_heartbeat(self, system, minutes=120):
        """Minutes after the launch, None without one."""
        last, sent = None, 0
        for _ in range(minutes):
            reconcile_once(system.ports)
            if len(system.groups.heartbeats) > sent:
                sent, last = len(system.groups.heartbeats), (system.clock.now() - START) / timedelta(minutes=1)
            system.clock.advance(minutes=1)
        return last

    @pytest.mark.parametrize("joined", [False, True], ids=["without a Node", "NotReady"])
    def test_an_instance_that_does_not_come_up_is_left_to_the_hooks_own_time_out(self, joined):
        assert self.last_heartbeat(self.waiting(600, joined=joined)) == 7

    def test_a_boot_of_fourteen_minutes_is_served_under_a_short_hook(self):
        system = self.waiting(120)
        assert self.last_heartbeat(system) == 15

    @pytest.mark.parametrize("time_out", [120, 300, 600, 840])
    def test_a_hook_outlasts_a_boot_of_fifteen_minutes_where_two_passes_fail(self, time_out):
        last = self.last_heartbeat(self.waiting(time_out))
        assert last - 2 + time_out / 60 >= 15

    @pytest.mark.parametrize("time_out", [900, 3600])
    def test_a_hook_that_waits_long_enough_by_itself_is_not_heartbeaten(self, time_out):
        system = self.waiting(time_out)
        self.last_heartbeat(system)
        assert system.groups.heartbeats == []

    def test_an_api_server_that_does_not_answer_ends_no_instance(self):
        system = self.waiting(600, down=True)
        assert self.last_heartbeat(system) == 119

    def test_a_node_that_becomes_ready_late_is_answered_all_the_same(self):
        system = self.waiting(600)
        self.last_heartbeat(system, minutes=14)
        system.kubernetes.put_node(a_node(NODE))
        assert reconcile_once(system.ports).answered == [NODE]

    @pytest.mark.parametrize(
        ("ready", "call", "answered"), [(False, "heartbeat", []), (True, "complete", [NODE])], ids=["waits", "is Ready"]
    )
    def test_a_call_that_is_throttled_once_is_tried_again_in_the_same_pass(self, ready, call, answered, monkeypatch):
        """Of a hook of two minutes the next reconciliation is the last, or comes too late."""
        system = self.waiting(120, joined=True)
        system.kubernetes.put_node(a_node(NODE, ready=ready))
        there, calls = getattr(system.groups, call), list[str]()

        def throttled_once(**given):
            calls.append(given["instance"])
            if len(calls) == 1:
                raise ThrottledError("rate exceeded")
            return there(**given)

        monkeypatch.setattr(system.groups, call, throttled_once)
        found = reconcile_once(system.ports)
        assert (calls, found.errors, found.answered) == ([NODE, NODE], [], answered)


def test_a_node_that_joined_since_the_last_sync_gets_the_annotations_of_its_policy():
    system = a_system(policy=replace(a_policy(), node=DesiredNode(annotations={"example.com/owner": "web"})))
    for _ in range(2):
        reconcile_once(system.ports)
    assert system.kubernetes.by_name[f"node-{NODE}"].annotations["example.com/owner"] == "web"
    assert system.kubernetes.asked["annotate"] == 1
