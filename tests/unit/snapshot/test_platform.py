"""Plans keep pods on the operating system of their node, and on its architecture unless others are allowed."""

from dataclasses import replace

from leeward.scheduling.packing import attempt
from leeward.scheduling.world import World
from leeward.snapshot.gather import with_platforms
from tests.unit.disruption.fleet import Fleet, a_policy, rules

OS, ARCH = "kubernetes.io/os", "kubernetes.io/arch"
BOTH = [{"key": ARCH, "operator": "In", "values": ["amd64", "arm64"]}]


def labels(system="linux", architecture="amd64"):
    return {OS: system, ARCH: architecture}


def place(fleet, *, templates=()):
    """Where the pod of node n1 goes, or why it goes nowhere."""
    snapshot = fleet.snapshot()
    world = World(snapshot.node_specs, with_platforms(snapshot))
    found = attempt(world, ["n1"], templates=[snapshot.launchables[name].template for name in templates])
    return found.placements.get("shop/a") or found.unplaced[0].why


def a_fleet(other, *, policy=None, pod=None):
    fleet = Fleet([policy] if policy else ()).node("n1", labels=labels()).node("n2", labels=other)
    return fleet.pod("a", "n1", **(pod or {}))


def test_a_pod_stays_on_its_platform():
    assert place(a_fleet(labels())) == "n2"
    assert "node(s) were of another operating system or architecture" in place(a_fleet(labels("windows")))
    assert "node(s) were of another operating system or architecture" in place(a_fleet(labels(architecture="arm64")))


def test_a_policy_may_allow_every_architecture_but_no_operating_system():
    policy = a_policy(disruption=rules(architecture="any"))
    assert place(a_fleet(labels(architecture="arm64"), policy=policy)) == "n2"
    assert "another operating system" in place(a_fleet(labels("windows"), policy=policy))


def test_a_pod_that_names_its_architectures_may_have_each_of_them():
    required = {"nodeSelectorTerms": [{"matchExpressions": BOTH}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert place(a_fleet(labels(architecture="arm64"), pod={"affinity": affinity})) == "n2"


def test_pods_of_a_group_of_both_architectures_may_have_each_of_them():
    fleet = a_fleet(labels(architecture="arm64"))
    launchables = fleet.snapshot().launchables
    first = next(iter(launchables["web"].expected.values()))
    both = {name: replace(first, labels={**first.labels, ARCH: name}) for name in ("amd64", "arm64")}
    assert place(fleet.having(launchables={"web": replace(launchables["web"], expected=both)})) == "n2"


def test_a_new_node_has_to_be_of_the_platform():
    fleet = Fleet().node("n1", labels=labels()).pod("a", "n1").group("win", labels=labels("windows"))
    fleet.group("plain", labels=labels())
    assert "another operating system" in place(fleet, templates=["win"])
    assert place(fleet, templates=["win", "plain"]).startswith("new-plain")


def test_pending_pods_daemons_and_nodes_without_labels_keep_every_choice():
    fleet = Fleet().node("n1").node("n2", labels=labels("windows")).pod("a", "n1").pod("waits").daemon("agent")
    snapshot = fleet.snapshot()
    assert with_platforms(snapshot) == snapshot.pod_specs


def test_equal_pods_share_their_needs():
    fleet = Fleet().node("n1", labels=labels()).pod("a", "n1").pod("b", "n1")
    first, second = with_platforms(fleet.snapshot())
    assert first.needs is second.needs
