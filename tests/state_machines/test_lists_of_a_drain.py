"""How often a drain asks the API server, and which answers it goes by: lists are paced, budgets are read where one has
refused an eviction, and a node counts as drained only by a consistent list."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError
from leeward.model.pod import Owner
from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, spot
from tests.state_machines.walker import Walker

AGENT = Owner(api_version="apps/v1", kind="DaemonSet", name="agent")


class Asked:
    """When a method of the API was called, and with what."""

    def __init__(self, system, method):
        self.at, self.arguments, call = [], [], getattr(system.kubernetes, method)

        def noted(*arguments, **named):
            self.at.append((system.clock.now() - START).total_seconds())
            self.arguments.append((arguments, named))
            return call(*arguments, **named)

        setattr(system.kubernetes, method, noted)


def drained(system, kind=CauseKind.MANUAL):
    claim(system, kind)
    assert Walker(system).run(I).ended == "Terminated"


def test_no_budget_is_read_where_none_refuses_an_eviction():
    system = a_system(pods=[a_pod(f"web-{n}") for n in range(5)], budgets=[a_budget(9)])
    drained(system)
    assert system.kubernetes.asked["budgets"] == 0


def test_budgets_are_read_in_the_namespace_of_the_pod_that_was_refused():
    elsewhere = replace(a_pod("other"), namespace="blog")
    counted = replace(a_budget(0), current_healthy=1, desired_healthy=1, max_unavailable=0)
    system = a_system(pods=[a_pod(), elsewhere], budgets=[counted])
    asked = Asked(system, "budgets")
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    assert {arguments for arguments, _ in asked.arguments} == {("shop",)}
    assert system.claims.records[I].blocked_by == ("shop/web-1: pdb shop/web (maxUnavailable 0: it never allows any)",)


def test_a_budget_that_cannot_be_read_is_named_by_what_the_eviction_said():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])

    def denied(namespace=None):
        raise AccessDeniedError("list poddisruptionbudgets: forbidden")

    system.kubernetes.budgets = denied
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    assert system.claims.records[I].blocked_by == ("shop/web-1: pdb shop/web",)


def test_daemon_sets_are_asked_for_once_a_step_where_a_pod_names_one():
    agent = replace(a_pod("agent-1"), owner=AGENT)
    system = a_system(pods=[agent, a_pod(grace=25)])
    system.kubernetes.daemon_set_names = frozenset({"shop/agent"})
    asked, steps = Asked(system, "daemon_sets"), Asked(system, "taint")
    drained(system)
    assert 0 < len(asked.at) <= len(steps.at)
    assert all(named == {"among": frozenset({"shop/agent"})} for _, named in asked.arguments)


def test_no_daemon_set_is_read_where_no_pod_names_one():
    system = a_system(pods=[a_pod()])
    drained(system)
    assert system.kubernetes.asked["daemon_sets"] == 0


def test_pods_that_stop_are_looked_at_after_one_two_and_four_seconds():
    system = a_system(pods=[a_pod(grace=300)])
    asked = Asked(system, "pods_on")
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    first = asked.at[0]
    assert [at - first for at in asked.at[:4]] == [0, 1, 3, 7]


def test_a_node_is_drained_by_a_consistent_list_alone():
    system = a_system(pods=[a_pod(grace=30)])
    list_pods = system.kubernetes.pods_on

    def stale(node, *, cached=False):
        """The API server's cache knows of no pod."""
        return () if cached else list_pods(node)

    system.kubernetes.pods_on = stale
    evicted = Asked(system, "evict")
    drained(system)
    assert system.claims.records[I].times["drained"] >= START + timedelta(seconds=evicted.at[0] + 30)


def test_a_refused_eviction_is_asked_again_after_growing_pauses():
    moving = a_pod("moving", labels={"app": "other"}, grace=9)
    system = a_system(pods=[moving, *(a_pod(f"web-{n}") for n in range(30))], budgets=[a_budget(0)])
    asked = Asked(system, "evict")
    claim(system, CauseKind.MANUAL)
    Walker(system).run(I)
    first = asked.at[0]
    within = [
        at - first
        for at, (arguments, _) in zip(asked.at, asked.arguments, strict=True)
        if arguments[0].name != "moving" and at - first < 9
    ]
    assert within == [0, 1, 3, 7]


def test_a_budget_that_allows_one_more_is_noticed_within_two_seconds():
    system = a_system(pods=[a_pod("web-1", grace=1), a_pod("web-2", grace=1)], budgets=[a_budget(1)])
    freed = START + timedelta(seconds=4)
    evict, at = system.kubernetes.evict, {}

    def evicts(pod, grace_seconds=None):
        if system.clock.now() >= freed and len(at) == 1:
            system.kubernetes.set_allowed("shop/web", 1)
        evict(pod, grace_seconds)
        at.setdefault(pod.name, system.clock.now())

    system.kubernetes.evict = evicts
    drained(system)
    assert at["web-2"] - freed <= timedelta(seconds=4)


@pytest.mark.parametrize("grace", [5, 30])
def test_a_blocked_pod_is_deleted_punctually_at_its_last_moment(grace):
    policy = DrainPolicy(termination_grace_period=timedelta(seconds=97))
    system = a_system(pods=[a_pod(grace=grace)], budgets=[a_budget(0)], drain=policy)
    deleted = Asked(system, "delete_pod")
    drained(system)
    began = (system.claims.records[I].times["begun"] - START).total_seconds()
    assert 0 <= deleted.at[0] - (began + 97 - grace) <= 1


def test_a_spot_warning_is_released_as_punctually_as_before():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    spot(system)
    Walker(system).run(I)
    let_go = (system.claims.records[I].times["drained"] - START).total_seconds()
    assert 115 <= let_go <= 116
