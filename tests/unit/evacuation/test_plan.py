"""Which nodes of a zone leave, wait and stay, and which pods hold them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known
from leeward.cluster.state import ClusterState
from leeward.evacuation.plan import EvacuationStanding, plan_evacuation, volume_id
from leeward.model.pod import PodDisruptionBudget
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord
from leeward.policy.document import Budget, DisruptionPolicy, DrainPolicy
from leeward.reconcile.evacuations import inputs_of
from tests.fakes.builders import GROUP, a_policy, a_subject
from tests.fakes.clock import START
from tests.unit.reconcile.zones import CLUSTER, IN_A, NODES, ZONES, A, B, C, a_group_in, a_pod, a_system, node_in

ALL = Budget(nodes=100)


def inputs_for(system, **more):
    """What the minute reconciler reads."""
    state = ClusterState(
        cluster=CLUSTER,
        policies=system.clusters.policies_of[CLUSTER],
        groups=system.groups.by_name,
        node_list=Known(tuple(system.kubernetes.by_name.values())),
        claims=Known(frozenset()),
    )
    return replace(inputs_of(state, system.ports, NODES), **more)


def standings(inputs, zone=A, groups=()):
    return {one.node.instance_id: one.standing for one in plan_evacuation(inputs, zone, groups)}


def verdict_on(inputs, instance=IN_A[0], zone=A):
    return next(one for one in plan_evacuation(inputs, zone) if one.node.instance_id == instance)


def a_volume(claim="data", zone=A, name="pv-1", **spec):
    terms = [{"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}]}]
    known = {
        "claimRef": {"namespace": "shop", "name": claim},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0123"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return {"metadata": {"name": name}, "spec": {**known, **spec}, "status": {"phase": "Bound"}}


def test_nodes_leave_as_the_budget_allows_and_the_others_wait_for_it():
    found = plan_evacuation(inputs_for(a_system(at_once=2)), A)
    assert [one.standing for one in found] == [
        EvacuationStanding.LEAVES,
        EvacuationStanding.LEAVES,
        EvacuationStanding.WAITS,
    ]
    assert found[2].reason == "the disruption budgets of policy web allow no more nodes now"


def test_nodes_of_other_zones_are_not_in_the_plan():
    assert set(standings(inputs_for(a_system()))) == set(IN_A)


def test_a_budget_of_the_zone_counts_beside_that_of_all_zones():
    budgets = (Budget(nodes=5, percent=False), Budget(nodes=1, percent=False, zone=A))
    policy = replace(a_policy(), disruption=DisruptionPolicy(budgets=budgets))
    found = standings(inputs_for(a_system(policy=policy)))
    assert list(found.values()).count(EvacuationStanding.LEAVES) == 1


def test_a_node_that_is_disrupted_elsewhere_uses_the_budget_up():
    system = a_system(at_once=1)
    system.kubernetes.put_node(node_in("i-0c1", C, deleting=True))
    assert set(standings(inputs_for(system)).values()) == {EvacuationStanding.WAITS}


def test_nodes_of_the_zone_that_are_not_ready_do_not_hold_each_other():
    system = a_system(at_once=1)
    for name in IN_A:
        system.kubernetes.put_node(node_in(name, A, ready=False))
    assert list(standings(inputs_for(system)).values()).count(EvacuationStanding.LEAVES) == 1


def test_a_pod_bound_to_a_volume_of_the_zone_holds_its_node_and_is_named_with_the_volume():
    system = a_system(a_pod("db-0", claims=("data",)), at_once=3)
    system.kubernetes.volume_list = [a_volume()]
    verdict = verdict_on(inputs_for(system))
    (pod,) = verdict.pods
    assert (verdict.standing, pod.pod, pod.volume) == (EvacuationStanding.STAYS, "shop/db-0", "vol-0123")
    assert pod.reason == "its volume is bound to the zone"
    assert standings(inputs_for(system))[IN_A[1]] is EvacuationStanding.LEAVES


def test_a_pod_whose_volume_is_in_a_zone_that_stays_open_holds_nothing():
    system = a_system(a_pod("db-0", claims=("data",)))
    system.kubernetes.volume_list = [a_volume(zone=B)]
    assert verdict_on(inputs_for(system)).standing is EvacuationStanding.LEAVES


def test_a_pod_on_a_local_volume_holds_its_node():
    system = a_system(a_pod("db-0", claims=("data",)))
    system.kubernetes.volume_list = [a_volume(csi=None, nodeAffinity=None, local={"path": "/mnt/ssd"})]
    (pod,) = verdict_on(inputs_for(system)).pods
    assert (pod.reason, pod.volume) == ("its local volume is on the node", "pv-1")


def test_a_pod_whose_node_selector_names_the_zone_holds_its_node():
    system = a_system(a_pod("web-1", node_selector={"topology.kubernetes.io/zone": A}))
    (pod,) = verdict_on(inputs_for(system)).pods
    assert pod.reason == "not allowed in us-east-1b, us-east-1c by the node selector of pod shop/web-1"


def test_pods_that_a_drain_refuses_hold_their_node():
    system = a_system(a_pod("bare", owner=None), a_pod("cache", "i-0a2", empty_dir=True))
    policy = replace(a_policy(), drain=DrainPolicy(evict_unmanaged=False, delete_local_data=False))
    system.clusters.policies_of[CLUSTER] = replace(system.clusters.policies_of[CLUSTER], policies=(policy,))
    found = plan_evacuation(inputs_for(system), A)
    assert [one.standing for one in found[:2]] == [EvacuationStanding.STAYS, EvacuationStanding.STAYS]
    assert "drain.unmanagedPods" in found[0].reason
    assert "drain.localData" in found[1].reason


def test_a_group_with_no_other_zone_keeps_its_nodes_and_names_their_pods():
    system = a_system(a_pod("web-1"), groups=[a_group_in((A,))])
    verdict = verdict_on(inputs_for(system))
    assert verdict.reason == f"its group {GROUP} has no subnet in another zone that is open"
    assert [(one.pod, one.reason) for one in verdict.pods] == [("shop/web-1", verdict.reason)]


def test_a_zone_that_is_closed_itself_is_no_place():
    system = a_system(groups=[a_group_in((A, B))])
    assert verdict_on(inputs_for(system, closed=frozenset({A, B}))).standing is EvacuationStanding.STAYS


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"suspended": ("Launch",)}, "launches of its group are suspended"),
        ({"capacity_units": "units"}, f"its group {GROUP} launches no replacement first: units"),
        ({"tags": {"kubernetes.io/cluster/prod": "owned"}, "name": "other"}, "no policy selects its group other"),
    ],
)
def test_a_node_whose_group_cannot_launch_or_is_not_ours_stays(changed, reason):
    system = a_system(groups=[replace(a_group_in(ZONES), **changed)])
    assert verdict_on(inputs_for(system)).reason == reason


def test_a_node_of_another_manager_stays():
    system = a_system()
    node = node_in(IN_A[0], A)
    system.kubernetes.put_node(replace(node, labels={**node.labels, "karpenter.sh/nodepool": "default"}))
    assert verdict_on(inputs_for(system)).reason == "Karpenter manages it"


def a_record(status, **more):
    cause = Cause(id="evacuation#1", kind=CauseKind.EVACUATION, at=START)
    subject = a_subject(IN_A[0])
    return TerminationRecord(subject=subject, status=status, attempt=1, version=1, causes=(cause,), **more)


def test_a_node_whose_termination_is_under_way_is_leaving_and_uses_the_budget():
    inputs = inputs_for(a_system(at_once=1), records={IN_A[0]: a_record(Status.OPEN)})
    assert list(standings(inputs).values()) == [
        EvacuationStanding.LEAVING,
        EvacuationStanding.WAITS,
        EvacuationStanding.WAITS,
    ]


def test_a_node_that_was_returned_to_service_waits_for_ten_minutes():
    returned = a_record(
        Status.CLOSED, outcome=Outcome.RETURNED_TO_SERVICE, failure="no capacity", times={"closed": START}
    )
    at_once = inputs_for(a_system(at_once=3), records={IN_A[0]: returned}, now=START + timedelta(minutes=9))
    assert verdict_on(at_once).reason == "no capacity; tried again at 2026-03-02T10:10:00Z"
    later = replace(at_once, now=START + timedelta(minutes=10))
    assert verdict_on(later).standing is EvacuationStanding.LEAVES


def test_only_nodes_of_the_named_groups_are_in_the_plan():
    assert standings(inputs_for(a_system()), groups=("other",)) == {}
    assert set(standings(inputs_for(a_system()), groups=(GROUP,))) == set(IN_A)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"csi": {"volumeHandle": "vol-1"}}, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}}, "vol-2"),
        ({"nfs": {}}, "pv-1"),
    ],
)
def test_a_volume_is_named_by_the_id_that_its_driver_knows(spec, expected):
    assert volume_id({"metadata": {"name": "pv-1"}, "spec": spec}) == expected


@pytest.mark.parametrize(
    ("budget", "drain", "standing"),
    [
        ({"max_unavailable": 0}, {}, EvacuationStanding.STAYS),
        ({"max_unavailable": 1}, {}, EvacuationStanding.LEAVES),
        ({"max_unavailable": 0}, {"force": True}, EvacuationStanding.LEAVES),
        ({"max_unavailable": 0}, {"termination_grace_period": timedelta(hours=1)}, EvacuationStanding.LEAVES),
    ],
)
def test_a_pod_that_its_budget_never_lets_go_holds_its_node_unless_the_policy_deletes_it(budget, drain, standing):
    policy = replace(a_policy(), drain=DrainPolicy(**drain), disruption=DisruptionPolicy(budgets=(ALL,)))
    system = a_system(a_pod("web-1", labels={"app": "web"}, ready=True), policy=policy)
    selector = {"matchLabels": {"app": "web"}}
    known = {"namespace": "shop", "name": "web", "selector": selector, "disruptions_allowed": 0, "expected_pods": 1}
    system.kubernetes.budget_list = [PodDisruptionBudget(**known, **budget)]
    verdict = verdict_on(inputs_for(system))
    assert verdict.standing is standing
    assert [one.pod for one in verdict.pods] == (["shop/web-1"] if standing is EvacuationStanding.STAYS else [])
