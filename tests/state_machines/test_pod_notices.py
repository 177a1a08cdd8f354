"""Pods that have to leave a node say when it ends, where a deadline leaves time to save work."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError
from leeward.model.pod import Owner
from leeward.model.termination import Cause, CauseKind, DrainOptions
from leeward.model.times import format_instant
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import a_subject
from tests.fakes.clock import START
from tests.state_machines.test_detach_deadlines import Happens, spot
from tests.state_machines.test_lists_of_a_drain import Asked
from tests.state_machines.test_periods import join
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim
from tests.state_machines.walker import Walker

KEY = "leeward.dev/terminates-at"
TEN_MINUTES = START + timedelta(minutes=10)


def on(system, pod="shop/web-1"):
    return system.kubernetes.by_key[pod].annotations.get(KEY)


class Seen:
    """The annotation of a pod while the walk goes on, each value once."""

    def __init__(self, system, *events, pod="shop/web-1"):
        self.system, self.pod, self.values, self._happens = system, pod, [], Happens(system, *events)

    def __call__(self, state, data):
        self._happens(state, data)
        pod = self.system.kubernetes.by_key.get(self.pod)
        value = pod.annotations.get(KEY) if pod else None
        if value not in {None, *self.values}:
            self.values.append(value)


def walk(system, *events):
    seen = Seen(system, *events)
    Walker(system, before=seen).run(I)
    return seen.values


def ask(system, deadline, kind=CauseKind.MANUAL):
    options = DrainOptions(deadline=deadline) if kind is CauseKind.MANUAL else None
    cause = Cause(id="event-1", kind=kind, at=START, deadline=deadline, options=options)
    system.claims.claim(a_subject(I), cause, START)


@pytest.mark.parametrize(
    "kind", [CauseKind.CAPACITY_BLOCK, CauseKind.SCHEDULED_CHANGE, CauseKind.MANUAL], ids=lambda kind: kind.value
)
def test_a_pod_that_a_budget_keeps_says_when_its_node_ends(kind):
    system = a_system(pods=[a_pod(grace=1)], budgets=[a_budget(0)])
    ask(system, TEN_MINUTES, kind)
    assert walk(system) == [format_instant(TEN_MINUTES)]


def test_the_owners_grace_period_counts_from_the_begin_of_the_drain():
    policy = DrainPolicy(termination_grace_period=timedelta(minutes=5))
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=policy)
    claim(system, CauseKind.EXPIRED)
    values = walk(system)
    assert values == [format_instant(system.claims.records[I].times["begun"] + timedelta(minutes=5))]


def test_a_drain_without_a_deadline_annotates_nothing_and_calls_nothing():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.EXPIRED)
    assert walk(system) == []
    assert system.kubernetes.asked["annotate_pods"] == 0


@pytest.mark.parametrize("kind", [CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION], ids=lambda k: k.value)
def test_the_two_minutes_of_an_interruption_are_for_evictions_alone(kind):
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    ask(system, START + timedelta(minutes=2), kind)
    assert walk(system) == []
    assert system.kubernetes.asked["annotate_pods"] == 0


def test_a_spot_warning_corrects_the_later_time_that_a_pod_carries():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    ask(system, TEN_MINUTES)
    warned = START + timedelta(minutes=3)
    values = walk(system, (warned, lambda: spot(system)))
    assert values[0] == format_instant(TEN_MINUTES)
    assert len(values) == 2
    assert values[1] <= format_instant(warned + timedelta(minutes=2, seconds=30))


def test_a_date_that_aws_has_moved_is_moved_on_the_pods():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    ask(system, TEN_MINUTES, CauseKind.SCHEDULED_CHANGE)
    later, moved = TEN_MINUTES + timedelta(hours=1), START + timedelta(minutes=2)

    def announce():
        join(system, CauseKind.SCHEDULED_CHANGE, deadline=later, id_="event-1#2")

    assert walk(system, (moved, announce))[:2] == [format_instant(TEN_MINUTES), format_instant(later)]


def test_a_drain_costs_one_call_for_each_pod_that_has_to_leave_however_long_it_takes():
    agent = replace(a_pod("agent-1"), owner=Owner(api_version="apps/v1", kind="DaemonSet", name="agent"))
    finished = replace(a_pod("done"), phase="Succeeded")
    system = a_system(pods=[agent, finished, *(a_pod(f"web-{n}") for n in range(20))], budgets=[a_budget(0)])
    system.kubernetes.daemon_set_names = frozenset({"shop/agent"})
    ask(system, TEN_MINUTES)
    Walker(system).run(I)
    assert sum(call.startswith("delete ") for call in system.kubernetes.done) == 20, (
        "at the deadline the pods were deleted"
    )
    assert system.kubernetes.asked["annotate_pods"] == 20


def test_pods_that_the_policy_keeps_say_it_as_well():
    kept = replace(a_pod("scratch"), empty_dir=True)
    system = a_system(pods=[kept], drain=DrainPolicy(delete_local_data=False))
    ask(system, TEN_MINUTES, CauseKind.CAPACITY_BLOCK)
    seen = Seen(system, pod="shop/scratch")
    Walker(system, before=seen).run(I)
    assert seen.values == [format_instant(TEN_MINUTES)]


def test_evictions_are_asked_for_before_the_annotations_are_waited_for():
    system = a_system(pods=[a_pod(f"web-{n}", labels={"app": "other"}) for n in range(3)])
    order = []
    evict, reach = system.kubernetes.evict, system.kubernetes.annotate_pods

    def evicts(pod, grace_seconds=None):
        order.append("evict")
        evict(pod, grace_seconds)

    def annotates(pods, annotations):
        wait = reach(pods, annotations)
        return lambda: (order.append("annotated"), wait())[1]

    system.kubernetes.evict, system.kubernetes.annotate_pods = evicts, annotates
    ask(system, TEN_MINUTES)
    assert Walker(system).run(I).ended == "Terminated"
    assert order[:3] == ["evict"] * 3


def test_a_denied_annotation_stops_nothing():
    system = a_system(pods=[a_pod()])
    system.kubernetes.fail("annotate_pods", AccessDeniedError("patch pods/status: forbidden"))
    ask(system, TEN_MINUTES)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_the_annotation_leaves_with_the_taint_when_the_node_returns_to_service():
    policy = DrainPolicy(timeout=timedelta(minutes=3))
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=policy)
    ask(system, START + timedelta(hours=5), CauseKind.SCHEDULED_CHANGE)
    seen = Seen(system)
    assert Walker(system, before=seen).run(I).ended == "PodEvictionFailure"
    assert seen.values == [format_instant(START + timedelta(hours=5))]
    assert on(system) is None
    assert not system.kubernetes.nodes()[0].tainted


def test_a_node_returns_to_service_where_the_annotation_cannot_be_removed():
    policy = DrainPolicy(timeout=timedelta(minutes=3))
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=policy)
    ask(system, START + timedelta(hours=5), CauseKind.SCHEDULED_CHANGE)

    def break_lists(state, _):
        if state == "ReturnNodeToService":
            system.kubernetes.fail("pods_on", AccessDeniedError("list pods: forbidden"))

    assert Walker(system, before=break_lists).run(I).ended == "PodEvictionFailure"
    assert not system.kubernetes.nodes()[0].tainted


def test_annotations_are_asked_for_once_a_step():
    """A pod whose annotation was lost is tried again by the next step, not by each look of the same."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    system.kubernetes.fail("annotate_pods", AccessDeniedError("patch pods/status: forbidden"))
    looks = Asked(system, "pods_on")
    ask(system, START + timedelta(minutes=4))
    Walker(system).run(I)
    assert 1 < system.kubernetes.asked["annotate_pods"] < len(looks.at)
