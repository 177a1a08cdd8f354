"""Whose wish a subnet has to meet. Source: Cast AI, "Available subnets detection"; Kubernetes' node affinity and
volume affinity."""

import pytest

from leeward.model.pod import Pod
from leeward.placement.restrictions import by_claim, of_claimed, of_pod, of_volume, only_subnets, only_zones
from tests.unit.placement.builders import a_subnet

A = a_subnet("subnet-a", zone="us-east-1a", zone_id="use1-az4")
B = a_subnet("subnet-b", zone="us-east-1b", zone_id="use1-az6")


def allowed(restrictions):
    return [subnet.id for subnet in (A, B) if all(one.allows(subnet) for one in restrictions)]


def affinity(*terms):
    required = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def preference(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize("key", ["leeward.dev/subnet-id", "topology.cast.ai/subnet-id"])
def test_a_node_selector_on_the_subnet_label_is_honoured(key):
    found = of_pod("shop/db-0", {"nodeSelector": {key: "subnet-b", "disk": "ssd"}})
    assert allowed(found) == ["subnet-b"]
    assert found[0].source == "the node selector of pod shop/db-0"


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"])
def test_a_node_selector_on_the_zone_is_honoured(key):
    assert allowed(of_pod("shop/db-0", {"nodeSelector": {key: "us-east-1a"}})) == ["subnet-a"]


def test_the_id_of_a_zone_restricts_as_its_name_does():
    key = "topology.k8s.aws/zone-id"
    assert allowed(of_pod("shop/db-0", {"nodeSelector": {key: "use1-az6"}})) == ["subnet-b"]
    assert allowed(of_pod("shop/db-0", affinity([preference(key, "NotIn", "use1-az6")]))) == ["subnet-a"]
    unknown = a_subnet("subnet-c", zone="us-east-1c")
    assert of_pod("shop/db-0", {"nodeSelector": {key: "use1-az6"}})[0].allows(unknown), "its id is not known"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (preference("topology.cast.ai/subnet-id", "In", "subnet-a", "subnet-x"), ["subnet-a"]),
        (preference("leeward.dev/subnet-id", "NotIn", "subnet-a"), ["subnet-b"]),
        (preference("topology.kubernetes.io/zone", "In", "us-east-1b"), ["subnet-b"]),
        (preference("leeward.dev/subnet-id", "Exists"), ["subnet-a", "subnet-b"]),
        (preference("leeward.dev/subnet-id", "DoesNotExist"), []),
        (preference("leeward.dev/subnet-id", "Gt", "1"), []),
        (preference("disk", "In", "ssd"), ["subnet-a", "subnet-b"]),
    ],
)
def test_node_affinity_on_subnet_and_zone_is_honoured(expression, expected):
    assert allowed(of_pod("shop/db-0", affinity([expression]))) == expected


def test_terms_are_alternatives_and_expressions_of_a_term_all_hold():
    both = [
        preference("topology.kubernetes.io/zone", "In", "us-east-1a"),
        preference("leeward.dev/subnet-id", "In", "subnet-b"),
    ]
    assert allowed(of_pod("shop/db-0", affinity(both))) == []
    assert allowed(of_pod("shop/db-0", affinity(both, [both[1]]))) == ["subnet-b"]
    assert allowed(of_pod("shop/db-0", affinity([both[0]], [preference("disk", "In", "ssd")]))) == [
        "subnet-a",
        "subnet-b",
    ]


def test_an_empty_term_matches_no_node():
    assert allowed(of_pod("shop/db-0", affinity([], [preference("leeward.dev/subnet-id", "In", "subnet-b")]))) == [
        "subnet-b"
    ]


def test_only_empty_terms_match_no_node_at_all():
    assert allowed(of_pod("shop/db-0", affinity([]))) == []


def test_preferred_affinity_binds_no_pod():
    preferred = [
        {"weight": 1, "preference": {"matchExpressions": [preference("leeward.dev/subnet-id", "In", "subnet-b")]}}
    ]
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}
    assert of_pod("shop/db-0", spec) == ()


@pytest.mark.parametrize("key", ["topology.ebs.csi.aws.com/zone", "topology.kubernetes.io/zone"])
def test_a_volume_binds_its_pod_to_its_zone(key):
    required = {"nodeSelectorTerms": [{"matchExpressions": [preference(key, "In", "us-east-1b")]}]}
    found = of_volume("shop/db-0", {"metadata": {"name": "pv-1"}, "spec": {"nodeAffinity": {"required": required}}})
    assert allowed(found) == ["subnet-b"]
    assert found[0].source == "volume pv-1 of pod shop/db-0"


def test_an_old_volume_is_bound_by_its_label():
    label = {"failure-domain.beta.kubernetes.io/zone": "us-east-1a__us-east-1c"}
    assert allowed(of_volume("shop/db-0", {"metadata": {"name": "pv-1", "labels": label}})) == ["subnet-a"]


def test_a_volume_without_a_zone_binds_no_pod():
    assert of_volume("shop/db-0", {"metadata": {"name": "nfs"}, "spec": {}}) == ()


def test_a_group_keeps_to_its_subnets_and_a_caller_to_the_zones_it_names():
    assert allowed([only_subnets("group web", ["subnet-a"])]) == ["subnet-a"]
    assert allowed([only_zones("--zones", ["us-east-1b"])]) == ["subnet-b"]


RESTARTED_POD = Pod(namespace="shop", name="db-0", uid="db-0", node="", phase="Pending", claims=("data-db-0",))


@pytest.mark.parametrize("phase", ["Released", "Failed"])
@pytest.mark.parametrize("released_last", [False, True])
def test_a_released_volume_does_not_bind_the_pod_of_a_new_claim_with_the_old_name(phase, released_last):
    released = a_claimed_volume("pv-old", "us-east-1a", phase)
    bound = a_claimed_volume("pv-new", "us-east-1b", "Bound")
    volumes = by_claim([bound, released] if released_last else [released, bound])
    found = of_claimed(RESTARTED_POD, volumes)
    assert [one.source for one in found] == ["volume pv-new of pod shop/db-0"]
    assert allowed(found) == ["subnet-b"]


def a_claimed_volume(name, zone, phase):
    terms = [{"matchExpressions": [preference("topology.kubernetes.io/zone", "In", zone)]}]
    return {
        "metadata": {"name": name},
        "spec": {
            "claimRef": {"namespace": "shop", "name": "data-db-0"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": phase},
    }
