"""Pods that want company, pods that want none, and pods that those already there do not want."""

import pytest

from tests.local.cluster.builders import Lab, a_pod, a_workload

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def term(app: str, key: str = HOST, **more) -> dict:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: dict) -> dict:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict) -> dict:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def on(lab: Lab, name: str, node: str, app: str = "web", namespace: str | None = None, **more) -> None:
    """A pod that is bound to a node manually."""
    lab.create("pods", a_pod(name, app=app, schedulerName="own", **more), namespace)
    lab.cluster.bind(name, node, namespace or "default")


def node_of(lab: Lab, name: str, namespace: str = "default") -> str | None:
    lab.run()
    return lab.cluster.get("pods", name, namespace)["spec"].get("nodeName")


def test_a_pod_goes_where_its_company_is_and_waits_where_there_is_none(lab):
    lab.create("pods", a_pod("guest", app="guest", affinity=near(term("web", ZONE))))
    assert "3 node(s) didn't match pod affinity rules" in lab.unschedulable_message("guest")
    on(lab, "host", "n1")
    assert node_of(lab, "guest") == "n1"


def test_the_first_of_a_kind_that_wants_its_own_company_may_go_anywhere_and_the_others_follow(lab):
    lab.create("deployments", a_workload(replicas=3, affinity=near(term("web"))))
    lab.run(2)
    assert len(set(lab.nodes_of().values())) == 1
    assert None not in lab.nodes_of().values()


def test_company_has_to_match_all_terms_at_once(lab):
    on(lab, "one", "n0")
    on(lab, "two", "n1", app="db")
    wants = near(term("web", ZONE), {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "gold"}}})
    lab.create("pods", a_pod("guest", app="guest", affinity=wants))
    assert node_of(lab, "guest") is None
    both = a_pod("both", app="web", schedulerName="own")
    both["metadata"]["labels"]["tier"] = "gold"
    lab.create("pods", both)
    lab.cluster.bind("both", "n2")
    assert node_of(lab, "guest") == "n2"


def test_a_pod_keeps_away_from_what_it_cannot_stand_zone_by_zone():
    lab = Lab(nodes=6)
    on(lab, "one", "n0")
    on(lab, "two", "n4")
    lab.create("pods", a_pod("shy", app="shy", affinity=apart(term("web", ZONE))))
    assert node_of(lab, "shy") in ("n2", "n5")


def test_pods_already_there_keep_others_out_even_those_that_ask_for_nothing(lab):
    on(lab, "shy", "n0", app="shy", affinity=apart(term("web", ZONE)))
    for index in range(2):
        lab.create("pods", a_pod(f"p{index}", nodeSelector={ZONE: "us-east-1a"}))
    lab.create("pods", a_pod("other", app="other", nodeSelector={ZONE: "us-east-1a"}))
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in lab.unschedulable_message("p0")
    assert node_of(lab, "other") == "n0"
    lab.cluster.delete("pods", "shy")
    lab.run(31)
    assert (node_of(lab, "p0"), node_of(lab, "p1")) == ("n0", "n0")


def test_a_pod_on_its_way_out_still_counts(lab):
    for name in ("n1", "n2"):
        lab.cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
    on(lab, "old", "n0", grace=30)
    lab.run(2)
    lab.cluster.delete("pods", "old")
    lab.create("pods", a_pod("shy", app="shy", affinity=apart(term("web"))))
    lab.run(29)
    assert node_of(lab, "shy") is None
    lab.run(2)
    assert node_of(lab, "shy") == "n0"


@pytest.mark.parametrize(
    ("more", "sees"),
    [
        ({}, False),
        ({"namespaces": ["team"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"of": "us"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"of": "them"}}}, False),
    ],
    ids=["own", "named", "all", "selected", "not selected"],
)
def test_a_term_speaks_of_its_own_namespace_unless_it_names_or_selects_others(lab, more, sees):
    lab.create("namespaces", {"metadata": {"name": "team", "labels": {"of": "us"}}})
    on(lab, "host", "n2", namespace="team")
    lab.create("pods", a_pod("guest", app="guest", affinity=near(term("web", ZONE, **more))))
    assert node_of(lab, "guest") == ("n2" if sees else None)


def test_match_label_keys_distinguish_revisions(lab):
    def revision(name: str, number: str) -> dict:
        pod = a_pod(name, affinity=apart(term("web", matchLabelKeys=["pod-template-hash"])))
        pod["metadata"]["labels"]["pod-template-hash"] = number
        pod["spec"]["nodeSelector"] = {ZONE: "us-east-1a"}
        return pod

    lab.create("pods", revision("old", "1"))
    lab.create("pods", revision("new", "2"))
    lab.create("pods", revision("again", "2"))
    assert (node_of(lab, "old"), node_of(lab, "new")) == ("n0", "n0")
    assert node_of(lab, "again") is None


def test_preferences_decide_between_nodes_that_fit(lab):
    on(lab, "host", "n1")
    preference = {"weight": 50, "podAffinityTerm": term("web", ZONE)}
    lab.create("pods", a_pod("friend", app="x", affinity={"podAffinity": {_PREFERRED: [preference]}}))
    lab.create("pods", a_pod("loner", app="x", affinity={"podAntiAffinity": {_PREFERRED: [preference]}}))
    zone_c = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["us-east-1c"]}]}
    node_wish = {"nodeAffinity": {_PREFERRED: [{"weight": 10, "preference": zone_c}]}}
    lab.create("pods", a_pod("southerner", app="x", affinity=node_wish))
    assert node_of(lab, "friend") == "n1"
    assert node_of(lab, "loner") in ("n0", "n2")
    assert node_of(lab, "southerner") == "n2"


def test_no_node_is_refused_for_a_preference(lab):
    preference = {"weight": 100, "podAffinityTerm": term("absent", ZONE)}
    lab.create("pods", a_pod("friend", affinity={"podAffinity": {_PREFERRED: [preference]}}))
    assert node_of(lab, "friend") is not None


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd"]}, {"n0"}),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, {"n1", "n2"}),
        ({"key": "disk", "operator": "Exists"}, {"n0", "n1"}),
        ({"key": "disk", "operator": "DoesNotExist"}, {"n2"}),
        ({"key": "size", "operator": "Gt", "values": ["4"]}, {"n1"}),
        ({"key": "size", "operator": "Lt", "values": ["5"]}, {"n0"}),
    ],
    ids=lambda value: value["operator"] if isinstance(value, dict) else "",
)
def test_node_affinity_knows_six_operators(expression, nodes):
    lab = Lab()
    lab.add_node("n0", labels={"disk": "ssd", "size": "4"})
    lab.add_node("n1", labels={"disk": "hdd", "size": "16"})
    lab.add_node("n2")
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    lab.create("deployments", a_workload(replicas=9, affinity=affinity))
    lab.run(2)
    assert set(lab.nodes_of().values()) == nodes


def test_match_fields_name_the_node(lab):
    field = {"key": "metadata.name", "operator": "NotIn", "values": ["n0", "n2"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    lab.create("pods", a_pod("fussy", affinity=affinity))
    assert node_of(lab, "fussy") == "n1"


def ports(number: int, protocol: str = "TCP", address: str = "") -> list[dict]:
    return [{"name": "c", "image": "i", "ports": [{"hostPort": number, "protocol": protocol, "hostIP": address}]}]


@pytest.mark.parametrize(
    ("containers", "fits"),
    [
        (ports(80), False),
        (ports(81), True),
        (ports(80, "UDP"), True),
        (ports(80, address="10.0.0.1"), False),
    ],
    ids=["the same", "another number", "another protocol", "one of all addresses"],
)
def test_a_host_port_is_taken_once_on_each_node(containers, fits):
    lab = Lab(nodes=1)
    lab.create("pods", {"metadata": {"name": "holder"}, "spec": {"containers": ports(80)}})
    lab.create("pods", {"metadata": {"name": "late"}, "spec": {"containers": containers}})
    assert node_of(lab, "holder") == "n0"
    assert (node_of(lab, "late") == "n0") is fits
    if not fits:
        assert "didn't have free ports for the requested pod ports" in lab.unschedulable_message("late")
        lab.cluster.delete("pods", "holder")
        lab.run(31)
        assert node_of(lab, "late") == "n0"


def test_every_port_of_a_pod_on_the_hosts_network_is_a_host_port():
    lab = Lab(nodes=1)
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]
    for name in ("inside", "holder", "late"):
        host = name != "inside"
        lab.create("pods", {"metadata": {"name": name}, "spec": {"containers": containers, "hostNetwork": host}})
    assert [node_of(lab, name) for name in ("inside", "holder", "late")] == ["n0", "n0", None]


def test_prefer_no_schedule_is_the_last_resort(lab):
    for name in ("n0", "n1"):
        lab.cluster.patch("nodes", name, {"spec": {"taints": [{"key": "leaving", "effect": "PreferNoSchedule"}]}})
    for index in range(5):
        lab.create("pods", a_pod(f"p{index}", cpu="500m"))
    nodes = [node_of(lab, f"p{index}") for index in range(5)]
    assert nodes[:4] == ["n2"] * 4
    assert nodes[4] in ("n0", "n1")
