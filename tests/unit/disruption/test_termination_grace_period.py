"""What a terminationGracePeriod and `safe-to-evict: "true"` open to voluntary disruption, and what they do not."""

from datetime import timedelta

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption
from leeward.policy.document import DrainPolicy
from tests.unit.disruption.fleet import a_fleet, a_policy, rules

KEPT = {"karpenter.sh/do-not-disrupt": "true"}
SAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}


def a_policy_of(hours=None, **drain):
    grace = None if hours is None else timedelta(hours=hours)
    expired = rules(expire_after=timedelta(days=1))
    return a_policy(disruption=expired, drain=DrainPolicy(termination_grace_period=grace, **drain))


def a_held_fleet(policy, held):
    fleet = a_fleet(policy).node("n1")
    if held == "pdb":
        return fleet.pod("a", "n1", cpu="100m").pdb("a", 0, app="a")
    return fleet.pod("a", "n1", cpu="100m", annotations=KEPT)


def methods(fleet):
    """The methods that would take n1."""
    found = {
        name: plan_disruption(fleet.snapshot(), only=name) for name in MethodName if name is not MethodName.UNHEALTHY
    }
    return {name.value for name, plan in found.items() if plan.commands}


@pytest.mark.parametrize("held", ["pdb", "do-not-disrupt"])
def test_expiration_selects_a_node_whose_pods_are_blocked_only_with_a_termination_grace_period(held):
    assert methods(a_held_fleet(a_policy_of(), held)) == set()
    assert methods(a_held_fleet(a_policy_of(hours=1), held)) == {"expiration"}


@pytest.mark.parametrize("held", ["pdb", "do-not-disrupt"])
def test_consolidation_and_emptiness_never_select_a_node_whose_pods_are_blocked(held):
    fleet = a_held_fleet(a_policy_of(hours=1), held).node("n2").pod("b", "n2", cpu="100m", annotations=KEPT)
    verdicts = plan_disruption(fleet.snapshot()).verdicts["n1"]
    for method in (MethodName.CONSOLIDATION, MethodName.EMPTINESS):
        assert not verdicts[method].candidate
        assert "shop/a" in verdicts[method].reason


def test_an_empty_node_with_a_daemon_pod_that_asks_to_stay_is_kept_by_emptiness():
    fleet = a_fleet(a_policy_of(hours=1)).node("n1").pod("d", "n1", owner="DaemonSet", annotations=KEPT)
    assert methods(fleet) == {"expiration"}


def test_a_termination_grace_period_does_not_lift_what_the_drain_refuses():
    fleet = a_fleet(a_policy_of(hours=1, evict_unmanaged=False)).node("n1").pod("a", "n1", owner=None)
    assert methods(fleet) == set()


@pytest.mark.parametrize(
    ("drain", "pod"),
    [
        ({"evict_unmanaged": False}, {"owner": None}),
        ({"delete_local_data": False}, {"volumes": [{"name": "tmp", "emptyDir": {}}]}),
    ],
)
def test_safe_to_evict_lifts_the_refusal_of_unmanaged_pods_and_local_data(drain, pod):
    policy = a_policy_of(**drain)
    assert methods(a_fleet(policy).node("n1").pod("a", "n1", cpu="100m", **pod)) == set()
    safe = a_fleet(policy).node("n1").pod("a", "n1", cpu="100m", annotations=SAFE, **pod)
    assert methods(safe) >= {"expiration"}


@pytest.mark.parametrize(("named", "lifted"), [("tmp", True), ("cache, tmp", True), ("cache", False), ("", False)])
def test_an_emptydir_that_the_pod_names_as_safe_keeps_no_node(named, lifted):
    annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": named}
    pod = {"volumes": [{"name": "tmp", "emptyDir": {}}], "annotations": annotations}
    fleet = a_fleet(a_policy_of(delete_local_data=False)).node("n1").pod("a", "n1", cpu="100m", **pod)
    assert ("expiration" in methods(fleet)) is lifted
