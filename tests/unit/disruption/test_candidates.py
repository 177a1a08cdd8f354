"""Who is not a candidate, and why: rows K3, K17 and K18 of docs/features.md."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known
from leeward.disruption.candidates import candidates
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import shifted
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules


def why(fleet, node="n1"):
    return candidates(fleet.snapshot())[1].get(node, "")


def test_an_ordinary_node_is_one():
    assert why(a_fleet().node("n1").pod("a", "n1")) == ""


BEYOND = {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(5_000)]}


def test_a_pod_beyond_a_limit_of_planning_keeps_its_node_and_no_other():
    fleet = a_fleet().node("n1").node("n2").pod("a", "n1", **BEYOND).pod("b", "n2")
    said = "pod shop/a counts as unmovable: it has 5,000 tolerations, more than the 64 that planning reads"
    assert (why(fleet), why(fleet, "n2")) == (said, "")


@pytest.mark.parametrize("grace", [None, timedelta(hours=1)])
def test_it_keeps_its_node_whatever_the_policy_does_to_pods_that_stay(grace):
    fleet = a_fleet(a_policy(drain=DrainPolicy(termination_grace_period=grace)))
    assert "counts as unmovable" in why(fleet.node("n1").pod("a", "n1", **BEYOND))


def test_the_pod_of_a_daemon_set_keeps_no_node():
    assert why(a_fleet().node("n1").pod("a", "n1", owner="DaemonSet", **BEYOND)) == ""


@pytest.mark.parametrize(
    ("node", "reported"),
    [
        ({"labels": {"eks.amazonaws.com/compute-type": "fargate"}}, "it is a Fargate node"),
        ({"labels": {"eks.amazonaws.com/compute-type": "hybrid"}}, "it is a hybrid node"),
        ({"labels": {"eks.amazonaws.com/compute-type": "auto"}}, "EKS Auto Mode manages it"),
        ({"labels": {"karpenter.sh/nodepool": "default"}}, "Karpenter manages it"),
        ({"ready": False}, "it is NotReady"),
        ({"taints": [{"key": "leeward.dev/disrupted", "effect": "NoSchedule"}]}, "it is terminating already"),
        (
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
            "it is terminating already",
        ),
        ({"lifecycle": "Standby"}, "its group web says Standby"),
        ({"protected": True}, "its instance is protected from scale-in in group web"),
        ({"state": "stopping"}, "EC2 says its instance is stopping"),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "the node opts out of disruption"),
        ({"annotations": {"leeward.dev/do-not-disrupt": "true"}}, "the node opts out of disruption"),
        ({"annotations": {"leeward.dev/do-not-disrupt": "false"}}, ""),
    ],
)
def test_nodes_that_are_left_alone(node, reported):
    found = why(a_fleet().node("n1", **node))
    assert found.startswith(reported)
    assert bool(found) == bool(reported)


def test_a_node_in_a_zone_with_a_zonal_shift_stays_and_others_do_not():
    fleet = a_fleet().node("n1", zone="us-east-1a").node("n2", zone="us-east-1b")
    fleet = fleet.having(shifts=Known(shifted("us-east-1a")))
    assert why(fleet).startswith("zonal shift away from us-east-1a (autoshift since")
    assert why(fleet, "n2") == ""


def test_a_group_that_no_policy_selects_is_not_ours():
    assert why(a_fleet(a_policy("web", "other")).node("n1")) == "no policy selects its group web"


def test_a_policy_can_keep_a_whole_group():
    assert why(a_fleet(a_policy(disruption=rules(do_not_disrupt=True))).node("n1")) == "policy web says doNotDisrupt"


@pytest.mark.parametrize(
    ("annotations", "owner", "stays"),
    [
        ({"karpenter.sh/do-not-evict": "true"}, "ReplicaSet", True),
        ({"karpenter.sh/do-not-evict": "1h"}, "ReplicaSet", False),
        ({"karpenter.sh/do-not-disrupt": "true"}, "DaemonSet", True),
        ({"karpenter.sh/do-not-disrupt": "2h"}, "ReplicaSet", True),
        ({"karpenter.sh/do-not-disrupt": "30m"}, "ReplicaSet", False),
        ({"leeward.dev/do-not-disrupt": "2h"}, "ReplicaSet", True),
        ({"karpenter.sh/do-not-disrupt": "soon"}, "ReplicaSet", False),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, "ReplicaSet", True),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"}, "ReplicaSet", True),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, "DaemonSet", False),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, "ReplicaSet", False),
    ],
)
def test_pods_with_an_opt_out_keep_their_node(annotations, owner, stays):
    fleet = a_fleet().node("n1").pod("a", "n1", started="2026-05-01T11:00:00Z", owner=owner, annotations=annotations)
    assert bool(why(fleet)) is stays


def test_a_finished_or_terminating_pod_keeps_no_node():
    asks = {"karpenter.sh/do-not-disrupt": "true"}
    assert why(a_fleet().node("n1").pod("a", "n1", phase="Succeeded", annotations=asks)) == ""
    assert why(a_fleet().node("n1").pod("a", "n1", leaving=True, annotations=asks)) == ""


def test_a_budget_at_zero_holds_the_node_and_is_named():
    fleet = a_fleet().node("n1").pod("a", "n1").pdb("guard", 0, app="a")
    assert why(fleet) == "pdb shop/guard prevents pod evictions (shop/a)"
    assert why(a_fleet().node("n1").pod("a", "n1").pdb("guard", 1, app="a")) == ""


def test_several_budgets_on_a_pod_hold_the_node_whatever_they_allow():
    fleet = a_fleet().node("n1").pod("a", "n1").pdb("one", 1, app="a").pdb("two", 5, app="a")
    assert why(fleet) == "pdb shop/one, pdb shop/two all select pod shop/a: the API evicts no such pod"


def test_a_pod_that_a_drain_would_refuse_keeps_the_node():
    drain = DrainPolicy(evict_unmanaged=False, delete_local_data=False)
    policy = a_policy(drain=drain)
    assert "has no controller" in why(a_fleet(policy).node("n1").pod("a", "n1", owner=None))
    volumes = [{"name": "tmp", "emptyDir": {}}]
    assert "keeps data in an emptyDir" in why(a_fleet(policy).node("n1").pod("a", "n1", volumes=volumes))


def test_a_group_is_in_cooldown_after_a_run():
    fleet = a_fleet().node("n1").having(last_disruptions={"web": NOON - timedelta(minutes=4)})
    assert why(fleet) == "its group web is in cooldown after the last run (360 s of disruption.cooldown left)"
    assert why(a_fleet().node("n1").having(last_disruptions={"web": NOON - timedelta(minutes=10)})) == ""


def test_a_node_whose_termination_is_under_way_is_none():
    assert why(a_fleet().node("n1").having(claims=Known(frozenset({"i-n1"})))) == "a termination of it is under way"


def test_the_cost_counts_pods_priority_deletion_cost_and_the_life_that_is_left():
    """Karpenter v0.30, GetPodEvictionCost and disruptionCost."""

    def cost(policy=None, **pod):
        fleet = a_fleet(*(() if policy is None else (policy,))).node("n1", created="2026-04-26T12:00:00Z")
        return candidates(fleet.pod("a", "n1", **pod).snapshot())[0]["n1"].cost

    assert cost() == 1
    assert cost(priority=2**25) == 2
    assert cost(priority=2_000_000_000) == 10
    assert cost(annotations={"controller.kubernetes.io/pod-deletion-cost": str(2**27)}) == 2
    assert cost(annotations={"controller.kubernetes.io/pod-deletion-cost": "-1342177280"}) == -9
    assert cost(annotations={"controller.kubernetes.io/pod-deletion-cost": "much"}) == 1
    assert cost(a_policy(disruption=replace(rules(), expire_after=timedelta(days=10)))) == 0.5
