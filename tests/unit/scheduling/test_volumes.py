"""VolumeBinding, VolumeZone and NodeVolumeLimits."""

import pytest

from tests.unit.scheduling.raw import (
    ZONE,
    a_claim,
    a_class,
    a_csi_node,
    a_line,
    a_node,
    a_pod,
    a_volume,
    fit_error,
    went,
    with_claims,
)

AB = [a_node("a1", zone="a"), a_node("b1", zone="b")]
POD = a_pod(**with_claims("data"))


def bound(volume):
    return {"claims": [a_claim(volume=volume["metadata"]["name"])], "volumes": [volume]}


def test_a_bound_claim_ties_the_pod_to_its_volumes_zone_volume_binding():
    assert went(AB, [POD], storage=bound(a_volume(zone="b"))) == {"p1": "b1"}
    why = fit_error(AB[:1], [POD], storage=bound(a_volume(zone="b")))
    assert why == "0/1 nodes are available: 1 node(s) had volume node affinity conflict."


@pytest.mark.parametrize("label", [ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_the_zone_label_of_a_volume_ties_the_pod_too_volume_zone(label):
    storage = bound(a_volume(labels={label: "b"}))
    assert went(AB, [POD], storage=storage) == {"p1": "b1"}
    assert fit_error(AB[:1], [POD], storage=storage) == (
        "0/1 nodes are available: 1 node(s) had no available volume zone."
    )


def test_a_regional_volume_lists_its_zones_volume_zone():
    assert went(AB, [POD], storage=bound(a_volume(labels={ZONE: "b__c"}))) == {"p1": "b1"}


def test_a_node_without_any_zone_label_passes_volume_zone():
    bare = a_node("bare")
    del bare["metadata"]["labels"][ZONE]
    assert went([bare], [POD], storage=bound(a_volume(labels={ZONE: "b"}))) == {"p1": "bare"}


def test_a_claim_that_waits_for_its_pod_may_come_up_where_its_class_allows_volume_binding():
    storage = {"claims": [a_claim()], "classes": [a_class(zones=["b"])]}
    assert went(AB, [POD], storage=storage) == {"p1": "b1"}
    assert went(AB, [POD], storage={"claims": [a_claim()], "classes": [a_class()]}) == {"p1": "a1"}


def test_a_claim_that_is_missing_or_not_bound_stops_the_pod_volume_binding():
    assert fit_error(AB, [POD]) == '0/2 nodes are available: 2 persistentvolumeclaim "data" not found.'
    immediate = {"claims": [a_claim()], "classes": [a_class(mode="Immediate")]}
    assert fit_error(AB, [POD], storage=immediate) == (
        "0/2 nodes are available: 2 pod has unbound immediate PersistentVolumeClaims."
    )


def test_an_ephemeral_volume_has_the_claim_of_its_name_volume_binding():
    pod = a_pod("p1", volumes=[{"name": "scratch", "ephemeral": {}}])
    storage = {"claims": [a_claim("p1-scratch", volume="pv-1")], "volumes": [a_volume(zone="b")]}
    assert went(AB, [pod], storage=storage) == {"p1": "b1"}


def test_a_node_attaches_no_more_volumes_than_its_driver_can_node_volume_limits():
    pods = [a_pod("there", node="a1", **with_claims("one")), a_pod("p1", **with_claims("two"))]
    storage = {
        "claims": [a_claim("one", volume="pv-1"), a_claim("two", volume="pv-2")],
        "volumes": [a_volume("pv-1"), a_volume("pv-2")],
    }
    assert went(AB, pods, storage=storage, csi={"a1": a_csi_node(2), "b1": a_csi_node(2)}) == {"p1": "a1"}
    assert went(AB, pods, storage=storage, csi={"a1": a_csi_node(1), "b1": a_csi_node(1)}) == {"p1": "b1"}
    assert fit_error(AB[:1], pods, storage=storage, csi={"a1": a_csi_node(1)}) == (
        "0/1 nodes are available: 1 node(s) exceed max volume count."
    )


def test_the_limit_is_by_driver_node_volume_limits():
    storage = {
        "claims": [a_claim("one", volume="pv-1"), a_claim("two", volume="pv-2")],
        "volumes": [a_volume("pv-1"), a_volume("pv-2", driver="efs.csi.aws.com")],
    }
    pods = [a_pod("there", node="a1", **with_claims("one")), a_pod("p1", **with_claims("two"))]
    assert went(AB[:1], pods, storage=storage, csi={"a1": a_csi_node(1)}) == {"p1": "a1"}


def test_a_volume_may_ask_for_its_node_by_name_volume_binding():
    volume = a_volume()
    terms = [{"matchFields": [a_line("metadata.name", "In", "b1")]}]
    volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    assert went(AB, [POD], storage=bound(volume)) == {"p1": "b1"}
