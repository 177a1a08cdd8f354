"""A termination while parts of the Kubernetes API fail: admission webhooks, single pods, marks, Events, permissions
for a moment. The rest of the node is drained as if nothing had happened."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, ClusterUnreachableError, ThrottledError
from leeward.model.blocked import Obstacle, Stage
from leeward.model.termination import CauseKind, Outcome
from leeward.policy.document import DrainPolicy
from leeward.ports.kubernetes import EvictionRefusedError
from tests.fakes.builders import GROUP, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ended, spot
from tests.state_machines.walker import Walker

DEAD = Obstacle(stage=Stage.WEBHOOK, name="guard.example.com", denies=False, said="connection refused")
LINE = "aaa/guarded: webhook guard.example.com fails: connection refused"
OTHERS = {"evict shop/web-1", "evict shop/web-2"}


def guarded(name="guarded"):
    """A pod of the namespace whose webhook is dead; it is the first in every order."""
    return replace(a_pod(name, labels={"app": name}), namespace="aaa")


def a_guarded_system(**more):
    pods = [guarded(), a_pod("web-1", labels={"app": "a"}), a_pod("web-2", labels={"app": "b"})]
    system = a_system(pods=pods, **more)
    system.kubernetes.guarded["aaa"] = DEAD
    return system


class When:
    """At which moment each pod was sent away."""

    def __init__(self, system):
        self.at, self._system, self._evict = {}, system, system.kubernetes.evict
        system.kubernetes.evict = self

    def __call__(self, pod, grace_seconds=None):
        self._evict(pod, grace_seconds)
        self.at.setdefault(pod.key, self._system.clock.now())


def broken(system, *names, error=None, seconds=0.0, tries=None):
    """The API server answers the evictions of these pods with a failure, after so many seconds."""
    evict, left = system.kubernetes.evict, {"tries": tries}

    def fail(pod, grace_seconds=None):
        if pod.name in names and left["tries"] != 0:
            left["tries"] = None if left["tries"] is None else left["tries"] - 1
            system.clock.advance(seconds=seconds)
            raise error or EvictionRefusedError("eviction fails: etcd is away (HTTP 500)")
        evict(pod, grace_seconds)

    system.kubernetes.evict = fail


def taken_after_two_minutes(system):
    def world(_state, _):
        if system.clock.now() >= START + timedelta(minutes=2):
            system.instances.set_state(I, "shutting-down")

    return world


@pytest.mark.parametrize("force", [False, True])
def test_a_dead_webhook_of_one_namespace_delays_no_other_pod_of_a_spot_instance(force):
    system = a_guarded_system(drain=DrainPolicy(force=force))
    when = When(system)
    spot(system)
    lines = []

    def world(state, _):
        taken_after_two_minutes(system)(state, _)
        lines.extend(system.claims.records[I].blocked_by)

    Walker(system, before=world).run(I)
    assert set(when.at) == {"shop/web-1", "shop/web-2"}
    assert max(when.at.values()) - START <= timedelta(seconds=3)
    assert set(lines) == {LINE}


def test_a_dead_webhook_does_not_keep_a_scale_in_from_its_time_out():
    system = a_guarded_system(hooks=[our_hook()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert set(system.kubernetes.done) == OTHERS
    assert system.claims.records[I].times["drained"] - START <= timedelta(minutes=16)
    failure = next(event for event in system.kubernetes.events if event.reason == "PodEvictionFailure")
    assert LINE in failure.message


def test_a_drain_that_a_dead_webhook_blocks_is_returned_naming_the_webhook():
    system = a_guarded_system()
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert ended(system)[1] is Outcome.RETURNED_TO_SERVICE
    assert LINE in next(event.message for event in system.kubernetes.events if event.reason == "PodEvictionFailure")


def test_force_deletes_at_the_time_out_what_is_still_blocked_and_nothing_else():
    """The budget lets one pod go at a time: by force alone both would have been deleted at once."""
    system = a_guarded_system(drain=DrainPolicy(force=True, timeout=timedelta(minutes=2)))
    system.kubernetes.guarded.clear()
    broken(system, "guarded")
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1", "evict shop/web-2", "delete aaa/guarded"]


def test_force_evicts_a_later_wave_whose_turn_comes_after_the_time_out():
    system = a_guarded_system(drain=DrainPolicy(force=True, timeout=timedelta(minutes=2)))
    system.kubernetes.guarded.clear()
    broken(system, "guarded")
    critical = replace(a_pod("dns", labels={"app": "dns"}), priority_class="system-cluster-critical")
    system.kubernetes.put_pod(critical)
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done[-2:] == ["delete aaa/guarded", "evict shop/dns"]


def test_force_gives_the_node_back_where_only_pods_are_left_that_the_policy_keeps():
    local = replace(a_pod("cache"), empty_dir=True)
    policy = DrainPolicy(force=True, delete_local_data=False, timeout=timedelta(minutes=2))
    system = a_system(pods=[local, a_pod("web-1")], budgets=[a_budget(0)], drain=policy)
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert ended(system)[1] is Outcome.RETURNED_TO_SERVICE
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert "shop/cache: it keeps data in an emptyDir" in _reported_of_failure(system)


def test_a_forced_drain_that_only_kept_pods_hold_up_leaves_them_until_ec2_takes_the_instance():
    local = replace(a_pod("cache"), empty_dir=True)
    policy = DrainPolicy(force=True, delete_local_data=False, timeout=timedelta(seconds=30))
    system = a_system(pods=[local], hooks=[our_hook()], drain=policy)
    system.groups.begin_terminating(GROUP, I)
    spot(system)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    answered = []

    def look(*_):
        if system.groups.answered and not answered:
            answered.append(system.clock.now())

    assert Walker(system, before=look).run(I).ended == "Terminated"
    assert answered[0] >= START + timedelta(seconds=115)


def _reported_of_failure(system):
    return next(event.message for event in system.kubernetes.events if event.reason == "PodEvictionFailure")


def test_force_looks_seldom_at_a_pod_whose_deletion_fails():
    """As long as nothing moves the pauses grow: a standard execution may have 25,000 events."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=DrainPolicy(force=True))

    def fail(*_):
        raise ClusterUnreachableError("delete pods: webhook guard.example.com fails")

    system.kubernetes.delete_pod = fail
    claim(system, CauseKind.MANUAL)

    def look(*_):
        if system.clock.now() >= START + timedelta(hours=12):
            system.kubernetes.by_key.clear()

    walk = Walker(system, before=look).run(I)
    assert walk.ended == "Terminated"
    assert len(walk.states) < 1000


def test_the_order_of_waves_stays_behind_a_pod_whose_eviction_fails():
    system = a_guarded_system()
    critical = replace(a_pod("dns", labels={"app": "dns"}), priority_class="system-cluster-critical")
    system.kubernetes.put_pod(critical)
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    assert set(system.kubernetes.done) == OTHERS


@pytest.mark.parametrize(
    "error", [None, ClusterUnreachableError("no answer in time"), ThrottledError("slow down")], ids=str
)
def test_an_eviction_that_hangs_delays_the_others_once(error):
    """Each request for a pod of the namespace takes as long as a webhook may."""
    pods = [*(guarded(f"g{n}") for n in range(8)), *(a_pod(f"web-{n}", labels={"app": f"a{n}"}) for n in range(8))]
    system = a_system(pods=pods)
    when = When(system)
    broken(system, *(f"g{n}" for n in range(8)), error=error, seconds=12)
    spot(system)
    Walker(system, before=taken_after_two_minutes(system)).run(I)
    assert set(when.at) == {f"shop/web-{n}" for n in range(8)}
    assert max(when.at.values()) - START <= timedelta(seconds=15)


def test_a_failure_that_passes_is_tried_again_within_the_step():
    system = a_system(pods=[a_pod()])
    when = When(system)
    broken(system, "web-1", tries=2)
    spot(system)
    Walker(system).run(I)
    assert when.at["shop/web-1"] - START <= timedelta(seconds=6)


def test_a_pod_whose_eviction_fails_is_asked_some_times_a_minute():
    system = a_guarded_system()
    spot(system)
    Walker(system, before=taken_after_two_minutes(system)).run(I)
    assert system.kubernetes.asked["evict"] <= 25


def test_a_node_that_cannot_be_tainted_is_drained_before_ec2_takes_it():
    system = a_system(pods=[a_pod()])
    system.kubernetes.fail("taint", ClusterUnreachableError("failed calling webhook on nodes (HTTP 500)"))
    spot(system)
    Walker(system, before=taken_after_two_minutes(system)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_node_that_cannot_be_tainted_is_waited_for_no_longer_than_the_drain_may_take():
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)])
    system.kubernetes.fail("taint", ThrottledError("patch nodes: conflicts in a row"))
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    assert Walker(system).run(I).ended == "Terminated"
    assert system.claims.records[I].times["drained"] - START <= timedelta(minutes=16)


def denied_for(system, seconds, *methods):
    """An API server that has just started knows no permissions."""
    for method in methods:
        act = getattr(system.kubernetes, method)

        def call(*arguments, _act=act, **named):
            if system.clock.now() < START + timedelta(seconds=seconds):
                raise AccessDeniedError('not allowed to list pods: User "leeward" cannot list resource "pods"')
            return _act(*arguments, **named)

        setattr(system.kubernetes, method, call)


def test_an_api_server_that_denies_everything_for_seconds_after_its_start_fails_no_termination():
    system = a_system(pods=[a_pod()])
    denied_for(system, 5, "node", "nodes", "taint", "pods_on", "budgets", "evict")
    spot(system)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_permission_that_is_missing_for_longer_fails_the_run_and_is_named():
    system = a_system(pods=[a_pod()])
    denied_for(system, 3600, "pods_on")
    claim(system, CauseKind.MANUAL)
    walk = Walker(system).run(I)
    assert walk.ended == "NodeTerminationFailure"
    assert "cannot list resource" in system.claims.records[I].failure
    assert timedelta(seconds=30) <= system.clock.now() - START <= timedelta(seconds=90)


def test_events_that_are_refused_fail_and_delay_nothing():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    system.kubernetes.fail("event", AccessDeniedError("events are denied here"))
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "PodEvictionFailure"


def test_no_warning_while_pods_still_move():
    """One pod at a time: the budget allows the next when the one before is gone."""
    pods = [a_pod(f"web-{n}", grace=20) for n in range(4)]
    system = a_system(pods=pods, budgets=[a_budget(1)])
    claim(system, CauseKind.MANUAL)

    def world(_state, _):
        if not any(pod.deletion for pod in system.kubernetes.by_key.values()):
            system.kubernetes.set_allowed("shop/web", 1)

    assert Walker(system, before=world).run(I).ended == "Terminated"
    assert [event.reason for event in system.kubernetes.events if event.warning] == []


def test_a_warning_once_nothing_has_moved_for_half_a_minute():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    first = next(event for event in system.kubernetes.events if event.reason == "DrainBlocked")
    assert timedelta(seconds=30) <= first.at - START <= timedelta(seconds=60)


def test_one_budget_is_asked_once_a_turn_however_many_pods_it_holds():
    system = a_system(pods=[a_pod(f"web-{n}") for n in range(30)], budgets=[a_budget(0)])
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    steps = system.kubernetes.asked["pods_on"]
    assert system.kubernetes.asked["evict"] <= steps
    assert len(system.claims.records[I].blocked_by) == 30
