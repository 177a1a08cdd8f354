"""Topology spread constraints: what must hold, what would be nice, and which nodes count."""

import pytest

from tests.local.cluster.builders import Lab, a_pod, a_workload

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def rule(key: str = ZONE, skew: int = 1, **more) -> dict:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


def spread(lab: Lab, replicas: int, *rules: dict, **template) -> dict[str, int]:
    """How many pods of the Deployment each zone has got."""
    lab.create("deployments", a_workload(replicas=replicas, topologySpreadConstraints=list(rules), **template))
    lab.run(2)
    return by_zone(lab)


def by_zone(lab: Lab) -> dict[str, int]:
    zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE][-1] for node in lab.cluster.list("nodes")}
    placed = [zones[node] for node in lab.nodes_of().values() if node is not None]
    return {zone: placed.count(zone) for zone in sorted(set(zones.values()))}


def test_pods_are_even_over_the_zones_however_many_nodes_each_has():
    lab = Lab(nodes=3)
    for index in range(3):
        lab.add_node(f"more-{index}", zone="us-east-1a")
    assert spread(lab, 9, rule()) == {"a": 3, "b": 3, "c": 3}


def test_a_zone_without_room_holds_the_others_back_up_to_the_skew(lab):
    lab.cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    assert spread(lab, 9, rule(skew=2)) == {"a": 2, "b": 2, "c": 0}
    pending = next(name for name, node in lab.nodes_of().items() if node is None)
    assert "2 node(s) didn't match pod topology spread constraints" in lab.unschedulable_message(pending)


def test_a_pod_that_waits_is_placed_when_the_emptiest_zone_fills_up(lab):
    lab.cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    spread(lab, 5, rule())
    assert by_zone(lab) == {"a": 1, "b": 1, "c": 0}
    lab.cluster.patch("nodes", "n2", {"spec": {"unschedulable": False}})
    lab.run(2)
    assert sorted(by_zone(lab).values()) == [1, 2, 2]


def test_nodes_that_the_pod_cannot_choose_make_no_domain_unless_the_rule_ignores_affinity(lab):
    only = {"nodeSelector": {"kubernetes.io/os": "linux"}}
    lab.cluster.patch("nodes", "n2", {"metadata": {"labels": {"kubernetes.io/os": "windows"}}})
    assert spread(lab, 4, rule(), **only) == {"a": 2, "b": 2, "c": 0}
    lab.cluster.delete("deployments", "web")
    lab.run(31)
    assert spread(lab, 4, rule(nodeAffinityPolicy="Ignore"), **only) == {"a": 1, "b": 1, "c": 0}


def test_tainted_nodes_count_unless_the_rule_honours_taints(lab):
    taint = {"key": "leeward.dev/disrupted", "effect": "NoSchedule"}
    lab.cluster.patch("nodes", "n2", {"spec": {"taints": [taint]}})
    assert spread(lab, 4, rule()) == {"a": 1, "b": 1, "c": 0}
    lab.cluster.delete("deployments", "web")
    lab.run(31)
    assert spread(lab, 4, rule(nodeTaintsPolicy="Honor")) == {"a": 2, "b": 2, "c": 0}


@pytest.mark.parametrize(("domains", "placed"), [(3, 4), (4, 3)])
def test_too_few_domains_count_as_an_empty_one(lab, domains, placed):
    assert sum(spread(lab, 4, rule(minDomains=domains)).values()) == placed


def test_a_node_without_the_label_is_no_place_for_the_pod():
    lab = Lab(nodes=1)
    lab.create("pods", a_pod("web", topologySpreadConstraints=[rule("rack")]))
    assert "missing required label" in lab.unschedulable_message("web")


def test_only_nodes_with_the_keys_of_all_rules_count():
    lab = Lab()
    for index, labels in enumerate(({"rack": "r1"}, {"rack": "r2"}, {})):
        lab.add_node(f"n{index}", zone=f"us-east-1{'abc'[index]}", labels=labels)
    assert spread(lab, 4, rule(), rule("rack")) == {"a": 2, "b": 2, "c": 0}


def test_pods_on_their_way_out_do_not_count(lab):
    spread(lab, 3, rule(), grace=60)
    first = next(name for name, node in lab.nodes_of().items() if node == "n0")
    lab.cluster.delete("pods", first)
    lab.run(2)
    assert sorted(node or "" for node in lab.nodes_of().values()) == ["n0", "n0", "n1", "n2"]


def test_match_label_keys_spread_each_revision_by_itself(lab):
    keyed = rule(matchLabelKeys=["pod-template-hash"])
    lab.cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    lab.cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    for index, digest in enumerate(("one", "two", "two")):
        pod = a_pod(f"p{index}", topologySpreadConstraints=[keyed])
        pod["metadata"]["labels"]["pod-template-hash"] = digest
        lab.create("pods", pod)
    lab.run()
    assert [lab.pod(f"p{index}")["spec"].get("nodeName") for index in range(3)] == ["n0", "n0", None]


def test_a_pod_that_its_own_rule_does_not_select_adds_nothing(lab):
    lab.create("pods", a_pod("stranger", app="other", nodeSelector={ZONE: "us-east-1a"}))
    other = [rule()]
    for index in range(3):
        selector = {ZONE: "us-east-1a"}
        lab.create("pods", a_pod(f"p{index}", app="other", topologySpreadConstraints=other, nodeSelector=selector))
    lab.run()
    assert set(lab.nodes_of("other").values()) == {"n0"}


def test_a_soft_rule_prefers_the_emptier_zone_and_refuses_none():
    lab = Lab()
    for index in range(4):
        lab.add_node(f"a{index}", zone="us-east-1a")
    lab.add_node("b0", zone="us-east-1b", cpu="1")
    soft = rule(whenUnsatisfiable="ScheduleAnyway")
    assert spread(lab, 6, soft, cpu="300m") == {"a": 3, "b": 3}
    lab.cluster.scale("deployments", "web", {"spec": {"replicas": 9}})
    lab.run(2)
    assert by_zone(lab) == {"a": 6, "b": 3}
