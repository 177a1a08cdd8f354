"""Pods that get a second replica before they leave are known before a drain begins."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.budgets.pdb import Forbids, refusal_beside_second
from leeward.errors import AccessDeniedError
from leeward.model.pod import Deployment, Owner, Pod, PodDisruptionBudget
from leeward.model.termination import DrainOptions
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import DrainTerms, PodRemoval, lone_pods, plan_drain, with_surges
from leeward.termination.replica_surge import surged
from tests.fakes.builders import a_node
from tests.fakes.system import FakeSystem

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NODE = a_node("i-0a")


def a_pod(name="web-5d4-x", *, app="web", **changes):
    pod = Pod(
        namespace="shop",
        name=name,
        uid=name,
        node=NODE.name,
        phase="Running",
        labels={"app": app, "pod-template-hash": "5d4"},
        owner=Owner(api_version="apps/v1", kind="ReplicaSet", name=f"{app}-5d4"),
        ready=True,
    )
    return replace(pod, **changes)


def a_budget(name="web", **written):
    counted = {"current_healthy": 1, "desired_healthy": 1, "expected_pods": 1} | written
    selector = {"matchLabels": {"app": "web"}}
    return PodDisruptionBudget(namespace="shop", name=name, selector=selector, disruptions_allowed=0, **counted)


def a_deployment(**changes):
    fields = {"namespace": "shop", "name": "web", "resource_version": "1", "replicas": 1, "available": 1}
    return Deployment(**{**fields, "settled": True, "recreate": False, **changes})


def test_the_only_pod_of_a_deployment_is_alone_wherever_its_replicas_are():
    web, elsewhere, db = a_pod(), a_pod("web-5d4-y", node="other"), a_pod("db-5d4-x", app="db")
    assert lone_pods([web, db], [web, elsewhere, db]) == (db,)
    assert lone_pods([web], [web, replace(elsewhere, phase="Succeeded")]) == (web,)


def test_during_a_rollout_the_pods_of_both_replica_sets_are_counted():
    old = a_pod()
    new = a_pod("web-77b-x", labels={"app": "web", "pod-template-hash": "77b"})
    new = replace(new, owner=replace(new.owner, name="web-77b"))
    assert lone_pods([old, new], [old, new]) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"ready": False},
        {"deletion": NOON},
        {"claims": ("data",)},
        {"owner": None},
        {"owner": Owner(api_version="apps/v1", kind="StatefulSet", name="web")},
        {"labels": {"app": "web"}},
    ],
    ids=["not-ready", "leaving", "volume", "unmanaged", "stateful-set", "replica-set-without-deployment"],
)
def test_pods_that_get_no_second_replica_are_not_alone(changes):
    pod = a_pod(**changes)
    assert lone_pods([pod], [pod]) == ()


@pytest.mark.parametrize("written", [{"min_available": 1}, {"min_available": "50%"}, {"max_unavailable": 1}])
def test_a_budget_that_two_replicas_satisfy_forbids_nothing(written):
    assert refusal_beside_second(a_pod(), [a_budget(**written)]) is None


@pytest.mark.parametrize("written", [{"min_available": "100%"}, {"min_available": 2}, {"max_unavailable": 0}])
def test_a_budget_that_forbids_every_eviction_forbids_it_beside_a_second_replica(written):
    refused = refusal_beside_second(a_pod(), [a_budget(**written)])
    assert refused is not None
    assert refused.why is Forbids.NEVER


def test_several_budgets_forbid_it_whatever_they_allow():
    refused = refusal_beside_second(a_pod(), [a_budget(min_available=1), a_budget("too", min_available=1)])
    assert refused is not None
    assert refused.why is Forbids.SEVERAL


def planned(**rest):
    pod, budgets = a_pod(), (a_budget(min_available=1),)
    terms = DrainTerms(**{"policy": DrainPolicy(), "now": NOON, **rest})
    plan = plan_drain(node=NODE, pods=(pod,), budgets=budgets, daemon_sets=frozenset(), terms=terms)
    (eviction,) = with_surges(plan, frozenset({pod.key}), budgets).evict
    return eviction


def test_a_pod_that_surges_is_not_blocked_and_one_that_is_deleted_does_not_surge():
    assert (planned().removal, planned().blocked_by) == (PodRemoval.SURGE, ())
    assert planned(options=DrainOptions(disable_eviction=True)).removal is PodRemoval.DELETE
    due = planned(deadline=NOON + timedelta(seconds=1), options=DrainOptions(deadline=NOON + timedelta(seconds=1)))
    assert due.removal is PodRemoval.DELETE


def test_live_the_deployment_says_whether_it_gets_a_second_replica():
    system = FakeSystem()
    kubernetes = system.kubernetes
    for deployment, expected in (
        (a_deployment(), {"shop/web-5d4-x"}),
        (a_deployment(replicas=2), set()),
        (a_deployment(recreate=True), set()),
        (a_deployment(settled=False), set()),
    ):
        kubernetes.put_deployment(deployment)
        assert surged([a_pod()], kubernetes) == expected
    kubernetes.put_deployment(a_deployment())
    kubernetes.autoscaled_keys = {"shop/web"}
    assert surged([a_pod()], kubernetes) == set()
    assert kubernetes.done == []


def test_live_a_deployment_that_may_not_be_read_is_not_scaled():
    class Denied:
        def deployment_of(self, pod):
            raise AccessDeniedError("deployments may not be read")

    assert surged([a_pod()], Denied()) == frozenset()
