"""Who leaves when, in the running machine: waves, last calls, several budgets, pods that would come back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.node import Taint
from leeward.model.pod import Owner, Toleration
from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import GROUP, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim
from tests.state_machines.walker import Walker

REPLICA_SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
TEN_MINUTES = DrainPolicy(termination_grace_period=timedelta(minutes=10))


def a_critical_pod(name="dns", **changes):
    return replace(a_pod(name, labels={"app": "dns"}), priority_class="system-cluster-critical", **changes)


def each_deletion(system):
    """When each pod was first seen leaving, filled in while the machine runs."""
    seen = {}

    def look(_state, _input):
        for pod in system.kubernetes.by_key.values():
            if pod.deletion:
                seen.setdefault(pod.name, (system.clock.now(), pod.deletion))

    return seen, look


def test_a_wave_starts_when_the_last_pod_of_the_one_before_is_gone():
    system = a_system(pods=[a_pod(grace=90), a_critical_pod()])
    claim(system, CauseKind.MANUAL)
    at_eviction = []
    evict = system.kubernetes.evict

    def watched(pod, grace_seconds=None):
        at_eviction.append((pod.name, sorted(system.kubernetes.by_key)))
        evict(pod, grace_seconds)

    system.kubernetes.evict = watched
    Walker(system).run(I)
    assert at_eviction == [("web-1", ["shop/dns", "shop/web-1"]), ("dns", ["shop/dns"])]
    assert system.claims.records[I].times["drained"] >= START + timedelta(seconds=90)


def test_a_pod_past_its_grace_holds_up_the_next_wave_for_a_minute_and_no_longer():
    """Karpenter: a pod more than a minute past its deletion deadline is not waited for."""
    system = a_system(pods=[a_pod(grace=5), a_critical_pod()])
    system.kubernetes.stuck.add("shop/web-1")
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    assert system.kubernetes.done == ["evict shop/web-1", "evict shop/dns"]
    gap = system.claims.records[I].times["drained"] - START
    assert timedelta(seconds=65) < gap < timedelta(seconds=120)


UNINITIALIZED = Taint(key="node.cloudprovider.kubernetes.io/uninitialized", value="true", effect="NoSchedule")


def withhold_provider_id(system):
    """The node has registered; the cloud controller has not told yet which instance it is."""
    (node,) = system.kubernetes.nodes()
    known = system.kubernetes.by_name[node.name]
    system.kubernetes.by_name[node.name] = replace(known, provider_id="", taints=(UNINITIALIZED,))
    return known


def test_a_node_that_is_not_initialized_yet_is_waited_for_and_drained():
    """Between the look and the termination it would take pods."""
    system = a_system(pods=[a_pod(grace=5)])
    known = withhold_provider_id(system)
    claim(system, CauseKind.MANUAL)

    def initialize(_state, _input):
        there = system.kubernetes.by_name.get(known.name)
        if there is not None and there.uninitialized and system.clock.now() >= START + timedelta(seconds=20):
            system.kubernetes.by_name[known.name] = known

    Walker(system, before=initialize).run(I)
    assert system.kubernetes.done[0] == "evict shop/web-1"
    assert system.claims.records[I].times["drained"] >= START + timedelta(seconds=20)


def test_a_node_that_is_never_initialized_is_not_waited_for_longer_than_a_minute():
    system = a_system(pods=[])
    withhold_provider_id(system)
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    waited = system.claims.records[I].times["terminating"] - START
    assert timedelta(seconds=60) <= waited < timedelta(seconds=70)


def test_an_instance_whose_node_is_deleted_while_it_drains_keeps_its_pods_and_its_settle_time():
    """The kubelet goes on stopping the pods, and load balancers go on sending requests to the instance."""
    system = a_system(pods=[a_pod("first", grace=60), a_critical_pod()])
    claim(system, CauseKind.MANUAL)
    left = {}

    def delete_node(*_):
        if "evict shop/first" in system.kubernetes.done:
            system.kubernetes.by_name.pop(f"node-{I}", None)
        if not system.kubernetes.by_key:
            left.setdefault("last pod", system.clock.now())

    assert Walker(system, before=delete_node).run(I).ended == "Terminated"
    assert system.kubernetes.done[:2] == ["evict shop/first", "evict shop/dns"]
    assert left["last pod"] >= START + timedelta(seconds=60)
    assert system.claims.records[I].times["terminating"] >= left["last pod"] + timedelta(seconds=60)


def test_a_pod_that_is_blocked_on_a_deleted_node_holds_its_instance_no_longer_than_the_drain_lasts():
    """A node that is no more cannot return to service."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=DrainPolicy(timeout=timedelta(minutes=5)))
    claim(system, CauseKind.MANUAL)

    def delete_node(*_):
        if system.clock.now() >= START + timedelta(minutes=1):
            system.kubernetes.by_name.clear()

    assert Walker(system, before=delete_node).run(I).ended == "Terminated"
    waited = system.claims.records[I].times["terminating"] - START
    assert timedelta(minutes=5) <= waited < timedelta(minutes=6)


def test_a_last_call_waits_for_no_wave():
    """Whatever blocks the wave before, a critical pod is evicted before it would have to be deleted."""
    system = a_system(
        pods=[a_pod(grace=30), a_critical_pod(grace_seconds=120)], budgets=[a_budget(0)], drain=TEN_MINUTES
    )
    claim(system, CauseKind.MANUAL)
    seen, look = each_deletion(system)
    assert Walker(system, before=look).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/dns", "delete shop/web-1"]
    assert seen["dns"][1] <= START + timedelta(minutes=10, seconds=2)
    assert seen["dns"][1] >= START + timedelta(minutes=9, seconds=55)


@pytest.mark.parametrize(
    ("ends", "done"), [(True, ["evict shop/dns"]), (False, [])], ids=["ended by its group", "returns to service"]
)
def test_a_critical_pod_leaves_before_the_instance_ends_with_a_pod_that_is_blocked(ends, done):
    system = a_system(hooks=[our_hook()], pods=[a_pod(), a_critical_pod()], budgets=[a_budget(0)])
    if ends:
        system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE if ends else CauseKind.EXPIRED)
    evicted, until = [], system.clock.now() + timedelta(minutes=14)

    def note(*_):
        evicted.extend(system.kubernetes.done if system.clock.now() < until else ())

    walker = Walker(system, before=note)
    assert walker.run(I).ended == ("Terminated" if ends else "PodEvictionFailure")
    assert (evicted, system.kubernetes.done) == ([], done)


def test_a_spot_warning_tightens_the_policys_termination_grace_period():
    """The earliest deadline wins: two minutes, not the policy's ten."""
    system = a_system(pods=[a_pod(grace=30)], budgets=[a_budget(0)], drain=TEN_MINUTES)
    claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(minutes=2))
    Walker(system).run(I)
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert system.claims.records[I].times["drained"] <= START + timedelta(seconds=122)


def test_a_pod_already_leaving_is_reported_of_a_deadline_that_has_come_nearer_once():
    system = a_system(pods=[a_pod(grace=500)], drain=TEN_MINUTES)
    claim(system, CauseKind.MANUAL)

    def a_spot_warning_joins(_state, _input):
        if system.kubernetes.done and system.claims.records[I].version == 1:
            at = START + timedelta(minutes=3)
            joined = claim(system, CauseKind.SPOT_INTERRUPTION, deadline=at, id_="event-2")
            system.ports.executions.wake(joined.token or "")

    Walker(system, before=a_spot_warning_joins).run(I)
    assert system.kubernetes.done == ["evict shop/web-1", "delete shop/web-1"]
    assert system.claims.records[I].times["drained"] <= START + timedelta(minutes=3, seconds=2)
    assert system.claims.records[I].pods_evicted == 1


@pytest.mark.parametrize("drain", [DrainPolicy(force=True), TEN_MINUTES])
def test_the_time_out_of_a_hook_that_is_heartbeaten_deletes_no_pod(drain):
    """The hook of 300 s is kept waiting, so the pods keep the policy's time."""
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(0)], drain=drain)
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate", deadline=START + timedelta(seconds=300))
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["delete shop/web-1"]
    assert system.claims.records[I].times["drained"] > START + timedelta(minutes=9)
    assert len(system.groups.heartbeats) >= 3


@pytest.mark.parametrize(
    "toleration", [Toleration(operator="Exists"), Toleration(key="leeward.dev/disrupted", operator="Exists")]
)
def test_a_pod_that_tolerates_the_mark_is_left_and_does_not_hold_up_the_drain(toleration):
    """Evicted, its controller would put it back on the same node for ever."""
    system = a_system(pods=[replace(a_pod(), owner=REPLICA_SET, tolerations=(toleration,)), a_pod("web-2")])
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-2"]


def test_several_budgets_on_a_pod_are_named_at_once_as_what_can_never_be_allowed():
    system = a_system(pods=[a_pod()], budgets=[a_budget(5), a_budget(5, "also")])
    claim(system, CauseKind.MANUAL)
    reported = []

    def look(_state, _input):
        reported.extend(
            (event.at, event.message) for event in system.kubernetes.events if event.reason == "DrainBlocked"
        )

    Walker(system, before=look).run(I)
    at, message = reported[0]
    assert timedelta(seconds=30) <= at - START < timedelta(seconds=45)  # before, it might only wait for its turn
    assert message == (
        "cannot drain yet: shop/web-1: pdb shop/also, pdb shop/web "
        "(several select it, which the Eviction API never allows)"
    )


def test_a_budget_that_can_never_allow_is_distinguished_from_one_that_does_not_allow_now():
    hopeless = replace(a_budget(0), max_unavailable=0, current_healthy=2, desired_healthy=2, expected_pods=2)
    system = a_system(pods=[a_pod()], budgets=[hopeless])
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    blocked = next(event for event in system.kubernetes.events if event.reason == "DrainBlocked")
    assert blocked.message.endswith("shop/web-1: pdb shop/web (maxUnavailable 0: it never allows any)")


def test_a_drain_that_gives_up_is_not_said_to_be_blocked_still():
    """The time-out comes in the same step in which the drain is found blocked for the first time."""
    at_once = DrainPolicy(timeout=timedelta(seconds=30))
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=at_once)
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert [event.reason for event in system.kubernetes.events] == ["PodEvictionFailure"]


def test_a_pod_that_took_the_name_of_an_evicted_one_is_another_pod():
    """The uid is the precondition of every eviction and deletion."""
    system = a_system(pods=[a_pod()])
    planned = system.kubernetes.by_key["shop/web-1"]
    system.kubernetes.put_pod(replace(planned, uid="uid-new"))
    system.kubernetes.evict(planned)
    system.kubernetes.delete_pod(planned)
    assert system.kubernetes.by_key["shop/web-1"].deletion is None


class TestAGraceLongerThanTheDrainsTime:
    """The time-out is for pods that do not go, not for those that are going."""

    def test_a_pod_that_has_been_reported_gets_all_of_its_grace(self):
        system = a_system(pods=[a_pod(grace=1800)])
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        drained = system.claims.records[I].times["drained"] - START
        assert timedelta(minutes=30) <= drained <= timedelta(minutes=31)

    def test_it_is_said_until_when(self):
        system = a_system(pods=[a_pod(grace=1800)])
        claim(system, CauseKind.MANUAL)
        said = set()
        Walker(system, before=lambda state, data: said.add(data.get("why", ""))).run(I)
        leaving = "1 pod is terminating, the last one (shop/web-1) until 2026-03-02T10:30:00Z"
        assert leaving in said
        assert f"drain.timeout of 900 s has passed, but {leaving}" in said

    def test_one_that_is_blocked_beside_it_ends_the_drain_all_the_same(self):
        long = a_pod("long", labels={"app": "long"}, grace=1800)
        system = a_system(pods=[long, a_pod()], budgets=[a_budget(0)])
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "PodEvictionFailure"
        assert system.clock.now() - START < timedelta(minutes=17)

    def test_one_whose_kubelet_does_not_answer_is_not_waited_for_after_a_minute(self):
        system = a_system(pods=[a_pod(grace=1200)])
        system.kubernetes.stuck.add("shop/web-1")
        claim(system, CauseKind.MANUAL)
        assert Walker(system).run(I).ended == "Terminated"
        assert system.claims.records[I].times["drained"] - START <= timedelta(minutes=22)

    def test_a_hook_of_ours_is_heartbeaten_for_as_long(self):
        system = a_system(hooks=[our_hook()], pods=[a_pod(grace=1800)])
        system.groups.begin_terminating(GROUP, I)
        claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate", deadline=START + timedelta(seconds=300))
        assert Walker(system).run(I).ended == "Terminated"
        assert system.claims.records[I].times["drained"] - START >= timedelta(minutes=30)

    def test_a_spot_instance_is_taken_whatever_the_grace(self):
        system = a_system(pods=[a_pod(grace=1800)])
        claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START + timedelta(minutes=2))
        Walker(system).run(I)
        assert system.claims.records[I].times["drained"] - START <= timedelta(minutes=2)
