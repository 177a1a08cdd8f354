"""A launch does not wait for the node affinity of a pod beyond the limits of planning."""

from leeward.model.pod import Pod
from leeward.placement.replacement import LeavingInstance, _restrictions


def restrictions(alternatives):
    line = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [line]}] * alternatives}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    raw = {"metadata": {"namespace": "shop", "name": "p"}, "spec": {"nodeName": "n", "affinity": affinity}}
    pods = (Pod.from_json(raw),)
    return _restrictions(
        LeavingInstance(instance="i-1", zone="us-east-1a", subnet="subnet-a", type="m5.large", pods=pods)
    )


def test_terms_at_the_limit_restrict_the_zones():
    (restriction,) = restrictions(64)
    assert len(restriction.terms) == 64


def test_terms_beyond_it_are_not_read():
    assert restrictions(65) == ()
