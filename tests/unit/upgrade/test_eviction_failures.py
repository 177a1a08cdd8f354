"""Why pods did not leave: one cause a pod, with its way out (U14)."""

from dataclasses import replace

import pytest

from leeward.model.pod import Toleration
from leeward.policy.document import ClusterSettings
from leeward.termination.capacity_ledger import surplus
from leeward.upgrade.failures import MAX_FAILURES, EvictionCause, describe_blocked, eviction_failures
from leeward.upgrade.observation import Observation
from tests.fakes.builders import a_subject
from tests.fakes.ledger import a_surge
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import NOON, a_node, a_pdb, a_pod, an_upgrade
from tests.unit.upgrade.waves.test_early_starts import a_record

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


def test_a_surplus_that_waits_for_its_turn_is_said():
    system = FakeSystem()
    system.claims.claim(a_subject("i-o1"), surplus(a_surge("i-0new"), NOON), NOON)
    preflight = an_upgrade(a_node("o1"), pods=(a_pod("p", "o1"),))
    observation = Observation(preflight=preflight, instances={}, settings=ClusterSettings(name="blue"))
    waits = "it drains within maxUnavailable and the budgets for Upgrade, after other nodes of the policy"
    assert waits in describe_blocked(["i-o1"], a_record(), observation, system.claims)
    system.claims.note_attempt("i-o1", 1, times={"draining": NOON})
    assert waits not in describe_blocked(["i-o1"], a_record(), observation, system.claims)
