"""Nodes with pods that pods elsewhere keep out of their zones."""

import pytest

from leeward.disruption.annotations import annotation_changes
from leeward.model import well_known
from tests.unit.disruption.fleet import ZONES, a_fleet
from tests.unit.scheduling.raw import ZONE, a_term, away, near

ZONE_ID, HOST = "topology.k8s.aws/zone-id", "kubernetes.io/hostname"


def noted(*pods, annotations=None):
    """Return what the planner writes on the node of pod `web`, beside pods on a node of another zone."""
    fleet = a_fleet().node("n1", annotations=annotations or {}).node("n2", zone=ZONES[1])
    fleet.pod("web", "n1", labels={"app": "web"})
    for number, (namespace, rule) in enumerate(pods):
        fleet.pod(f"other-{number}", "n2", **rule)
        fleet.pods[-1]["metadata"]["namespace"] = namespace
    snapshot = fleet.snapshot()
    changes = {change.node.name: change for change in annotation_changes(snapshot, snapshot.now)}
    return changes["n1"].set.get(well_known.KEPT_APART_BY), changes["n1"].remove


@pytest.mark.parametrize("key", [ZONE, ZONE_ID])
def test_namespaces_whose_anti_affinity_by_zone_means_a_pod_are_noted_on_its_node(key):
    guard, elsewhere = away(a_term(key, "web")), away(a_term(key, "web", namespaces=["shop"]))
    assert noted(("shop", guard), ("data", elsewhere)) == ("data,shop", ())


@pytest.mark.parametrize(
    "pod",
    [
        ("shop", away(a_term(HOST, "web"))),
        ("shop", away(a_term(ZONE, "db"))),
        ("data", away(a_term(ZONE, "web"))),
        ("shop", near(a_term(ZONE, "web"))),
    ],
    ids=["by host", "other pods", "another namespace", "affinity"],
)
def test_other_rules_are_not_noted_and_a_note_goes_when_the_rule_has_gone(pod):
    assert noted(pod, annotations={well_known.KEPT_APART_BY: "shop"}) == (None, (well_known.KEPT_APART_BY,))


def test_a_pod_with_a_rule_of_its_own_is_compared_in_its_namespace_without_a_note():
    fleet = a_fleet().node("n1").node("n2", zone=ZONES[1])
    for name in ("n1", "n2"):
        fleet.pod(f"web-{name}", name, labels={"app": "web"}, **away(a_term(ZONE, "web")))
    snapshot = fleet.snapshot()
    assert all(well_known.KEPT_APART_BY not in one.set for one in annotation_changes(snapshot, snapshot.now))
