"""NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit."""

import pytest

from leeward.errors import InvalidInputError
from tests.unit.scheduling.raw import (
    HOST,
    PREFERRED,
    a_line,
    a_node,
    a_pod,
    a_taint,
    a_template,
    a_term,
    fit_error,
    near,
    on_nodes,
    packed,
    went,
)


def test_a_pod_with_room_is_placed():
    assert went([a_node("n1")], [a_pod("p1")]) == {"p1": "n1"}


def test_a_pod_without_room_stays_pending_node_resources_fit():
    pods = [a_pod("there", node="n1", cpu="3500m"), a_pod("p1", cpu="1")]
    assert fit_error([a_node("n1", cpu="4")], pods) == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_more_important_pod_evicts_none_no_preemption():
    pods = [a_pod("there", node="n1", cpu="4", priority=0), a_pod("p1", cpu="1", priority=1_000_000)]
    assert fit_error([a_node("n1", cpu="4")], pods) == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_gated_pod_is_not_placed_and_delays_no_other_scheduling_gates():
    gated = a_pod("gated", schedulingGates=[{"name": "quota"}, {"name": "example.com/license"}], **near(a_term()))
    result = packed([a_node("n1")], [gated, a_pod("p1")])
    assert result.placements == {"default/p1": "n1"}
    assert [(one.pod, one.why) for one in result.unplaced] == [
        ("default/gated", "0/1 nodes are available: 1 waiting for scheduling gates: example.com/license, quota.")
    ]


def test_no_new_node_is_opened_for_a_gated_pod_scheduling_gates():
    result = packed([], [a_pod(schedulingGates=[{"name": "quota"}])], templates=[a_template()])
    assert result.new_nodes == ()


def test_sidecars_and_overhead_take_room_on_the_node_node_resources_fit():
    sidecar = {"name": "mesh", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
    pod = a_pod(cpu="1", initContainers=[sidecar], overhead={"cpu": "250m"})
    assert went([a_node("n1", cpu="1749m"), a_node("n2", cpu="1750m")], [pod]) == {"p1": "n2"}


def test_each_resource_that_is_short_is_reported_node_resources_fit():
    why = fit_error([a_node("n1", cpu="1", memory="1Gi")], [a_pod(cpu="2", memory="2Gi")])
    assert why == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."


def test_a_node_with_all_its_places_taken_has_too_many_pods_node_resources_fit():
    pods = [a_pod("there", node="n1"), a_pod("p1")]
    assert fit_error([a_node("n1", pods="1")], pods) == "0/1 nodes are available: 1 Too many pods."


def test_a_resource_that_a_node_does_not_offer_is_short_node_resources_fit():
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    nodes = [a_node("n1"), a_node("n2", **{"nvidia.com/gpu": "1"})]
    assert went(nodes, [pod]) == {"p1": "n2"}
    assert fit_error(nodes[:1], [pod]) == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_a_pod_that_asks_for_nothing_fits_on_an_overcommitted_node_node_resources_fit():
    empty = a_pod("p1")
    empty["spec"]["containers"] = [{}]
    assert went([a_node("n1", cpu="1")], [a_pod("there", node="n1", cpu="3"), empty]) == {"p1": "n1"}


def test_finished_pods_hold_nothing():
    finished = {**a_pod("job", node="n1", cpu="4"), "status": {"phase": "Succeeded"}}
    assert went([a_node("n1")], [finished, a_pod("p1")]) == {"p1": "n1"}


def test_a_pod_that_is_being_deleted_still_holds_its_room():
    leaving = a_pod("old", node="n1", cpu="4")
    leaving["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    assert "Insufficient cpu" in fit_error([a_node("n1")], [leaving, a_pod("p1")])


def test_a_pod_that_names_its_node_is_there_whether_it_fits_or_not_node_name():
    result = packed([a_node("n1", cpu="1")], [a_pod("bound", node="n1", cpu="8")])
    assert result.placements == {}
    assert result.unplaced == ()


def test_a_cordoned_node_takes_no_pods_node_unschedulable():
    why = fit_error([a_node("n1", cordoned=True)], [a_pod()])
    assert why == "0/1 nodes are available: 1 node(s) were unschedulable."


def test_a_cordon_is_tolerated_like_its_taint_node_unschedulable():
    tolerations = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert went([a_node("n1", cordoned=True)], [a_pod(tolerations=tolerations)]) == {"p1": "n1"}


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_an_untolerated_taint_is_named_taint_toleration(effect):
    why = fit_error([a_node("n1", taints=[a_taint(effect=effect)])], [a_pod()])
    assert why == "0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: x}."


@pytest.mark.parametrize(
    ("toleration", "placed"),
    [
        ({"key": "dedicated", "value": "x"}, True),
        ({"key": "dedicated", "value": "y"}, False),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_toleration_matches_by_key_value_and_effect_taint_toleration(toleration, placed):
    assert bool(went([a_node("n1", taints=[a_taint()])], [a_pod(tolerations=[toleration])])) is placed


def test_a_soft_taint_is_avoided_and_taken_when_nothing_else_is_left_taint_toleration():
    nodes = [a_node("n1", cpu="2", taints=[a_taint(effect="PreferNoSchedule")]), a_node("n2", cpu="1")]
    assert went(nodes, [a_pod("p1"), a_pod("p2")]) == {"p1": "n2", "p2": "n1"}


def test_the_node_selector_needs_every_label_node_affinity():
    nodes = [a_node("n1", labels={"disk": "ssd"}), a_node("n2", labels={"disk": "ssd", "gen": "5"})]
    assert went(nodes, [a_pod(nodeSelector={"disk": "ssd", "gen": "5"})]) == {"p1": "n2"}
    why = fit_error(nodes, [a_pod(nodeSelector={"disk": "hdd"})])
    assert why == "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        (a_line("gen", "In", "4", "5"), {"n4", "n5"}),
        (a_line("gen", "NotIn", "4"), {"n5", "none"}),
        (a_line("gen", "Exists"), {"n4", "n5"}),
        (a_line("gen", "DoesNotExist"), {"none"}),
        (a_line("gen", "Gt", "4"), {"n5"}),
        (a_line("gen", "Lt", "5"), {"n4"}),
    ],
)
def test_each_operator_of_required_node_affinity_node_affinity(line, nodes):
    fleet = [a_node("n4", labels={"gen": "4"}), a_node("n5", labels={"gen": "5"}), a_node("none")]
    pods = [a_pod(f"p{i}", cpu="3", **on_nodes(line)) for i in range(3)]
    assert set(went(fleet, pods).values()) == nodes


def test_an_unknown_operator_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInputError, match="found 'Like', expected one of In, NotIn"):
        went([a_node()], [a_pod(**on_nodes(a_line("gen", "Like", "4")))])


def test_fields_choose_a_node_by_name_node_affinity():
    pod = a_pod(**on_nodes(fields=[a_line("metadata.name", "In", "n2")]))
    assert went([a_node("n1"), a_node("n2")], [pod]) == {"p1": "n2"}


def test_one_of_several_terms_is_enough_and_an_empty_one_matches_nothing_node_affinity():
    pod = a_pod(**on_nodes(a_line(HOST, "In", "n2")))
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"].append({})
    assert went([a_node("n1"), a_node("n2")], [pod]) == {"p1": "n2"}


def test_the_heaviest_preferred_node_affinity_that_can_be_met_wins_node_affinity():
    def preferring(**weights):
        terms = [
            {"weight": weight, "preference": {"matchExpressions": [a_line(HOST, "In", name)]}}
            for name, weight in weights.items()
        ]
        return {"affinity": {"nodeAffinity": {PREFERRED: terms}}}

    pods = [a_pod(name, cpu="4", **preferring(n2=1, n3=50)) for name in ("p1", "p2", "p3")]
    assert went([a_node("n1"), a_node("n2"), a_node("n3")], pods) == {"p1": "n3", "p2": "n2", "p3": "n1"}


def a_port(**more):
    return {"containers": [{"ports": [{"containerPort": 80, "hostPort": 80, **more}]}]}


@pytest.mark.parametrize(
    ("there", "wanted", "clash"),
    [
        ({}, {}, True),
        ({}, {"protocol": "UDP"}, False),
        ({}, {"hostPort": 81}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({"hostIP": "0.0.0.0"}, {"hostIP": "10.0.0.1"}, True),
    ],
)
def test_a_host_port_that_is_taken_clashes_by_port_protocol_and_address_node_ports(there, wanted, clash):
    pods = [a_pod("there", node="n1", **a_port(**there)), a_pod("p1", **a_port(**wanted))]
    unplaced = packed([a_node("n1")], pods).unplaced
    assert [one.why for one in unplaced] == [
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    ] * clash


def test_reasons_are_counted_by_node_as_kube_scheduler_does():
    nodes = [a_node(f"small{i}", cpu="500m") for i in range(3)]
    nodes += [a_node(f"gpu{i}", taints=[a_taint("gpu", "yes")]) for i in range(9)]
    why = fit_error(nodes, [a_pod()])
    assert why == "0/12 nodes are available: 3 Insufficient cpu, 9 node(s) had untolerated taint {gpu: yes}."


def test_without_nodes_the_reason_says_so():
    assert fit_error([], [a_pod()]) == "no nodes available to schedule pods"
