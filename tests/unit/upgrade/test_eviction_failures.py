"""Why pods did not leave: one cause a pod, with its way out (U14)."""

from dataclasses import replace

import pytest

from leeward.model.pod import Toleration
from leeward.upgrade.eviction_failures import MAX_FAILURES, EvictionCause, eviction_failures
from tests.unit.upgrade.builders import NOON, a_node, a_pdb, a_pod, an_upgrade

NEVER, FREE = a_pdb("web", allowed=0), a_pdb("web", allowed=1)
OTHER = a_pdb("other", allowed=1)
EVERYTHING = (Toleration(operator="Exists"),)


def causes(*pods, budgets=(), failed=("i-o1",)):
    upgrade = an_upgrade(a_node("o1"), pods=pods, budgets=budgets)
    return eviction_failures(upgrade, failed)


@pytest.mark.parametrize(
    ("pod", "budgets", "cause"),
    [
        (a_pod("p", "o1"), (NEVER,), EvictionCause.BUDGET_ALLOWS_NONE),
        (a_pod("p", "o1"), (FREE, OTHER), EvictionCause.SEVERAL_BUDGETS),
        (a_pod("p", "o1", tolerations=EVERYTHING), (), EvictionCause.TOLERATES_EVERYTHING),
        (replace(a_pod("p", "o1"), deletion=NOON), (NEVER,), EvictionCause.STILL_STOPPING),
    ],
)
def test_each_cause_is_distinguished(pod, budgets, cause):
    (found,) = causes(pod, budgets=budgets)
    assert (found.cause, found.node, found.pod) == (cause, "o1", pod.key)
    assert found.fix


def test_a_pod_that_could_leave_by_now_is_not_blamed():
    assert causes(a_pod("p", "o1"), budgets=(FREE,)) == ()


def test_only_nodes_that_failed_are_reported_and_no_more_than_a_few_pods():
    pods = tuple(a_pod(f"p{number}", "o1") for number in range(2 * MAX_FAILURES))
    assert causes(*pods, budgets=(NEVER,), failed=()) == ()
    assert len(causes(*pods, budgets=(NEVER,))) == MAX_FAILURES
