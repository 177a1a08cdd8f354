"""Sentences of a drain about the pods that are left."""

from dataclasses import replace

from leeward.model.pod import Owner, Pod
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import DrainTerms, plan_drain
from leeward.termination.drain_reports import DrainProgress, forced, leaving
from tests.fakes.builders import a_node
from tests.fakes.clock import START as NOW

SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
WEB = Pod(namespace="shop", name="web-1", uid="web-1", node="n", phase="Running", ready=True, owner=SET)
BARE = Pod(namespace="shop", name="bare", uid="bare", node="n", phase="Running", ready=True)
BLOCKED = {"shop/web-1": ("pdb shop/web", "webhook"), "shop/bare": ("no controller: nothing would start it again",)}


def a_plan(*pods):
    policy = DrainPolicy(force=True, evict_unmanaged=False)
    return plan_drain(
        node=a_node(), pods=pods, budgets=(), daemon_sets=frozenset(), terms=DrainTerms(policy=policy, now=NOW)
    )


def test_a_forced_drain_names_the_pods_that_it_deletes_and_those_that_the_policy_protects():
    assert forced(a_plan(WEB, BARE), DrainProgress(blocked_by=BLOCKED)) == (
        "deleting shop/web-1: pdb shop/web, webhook; "
        "not deleting shop/bare: no controller: nothing would start it again"
    )


def test_a_forced_drain_whose_pods_are_all_terminating_says_so():
    assert forced(a_plan(WEB), DrainProgress()) == "1 pod is terminating"


def test_a_pod_of_a_later_wave_is_not_called_terminating():
    critical = replace(WEB, name="dns", uid="dns", priority_class="system-cluster-critical")
    assert leaving(a_plan(WEB, critical), DrainProgress()) == "1 pod is terminating; 1 of a later wave leave after that"
