"""What planning reads of one pod, whatever its author writes into it."""

import pytest

from leeward.model import pod_limits
from tests.unit.scheduling.raw import (
    HOST,
    PREFERRED,
    REQUIRED,
    a_daemon_set,
    a_line,
    a_node,
    a_pod,
    a_template,
    a_term,
    a_world,
    away,
    fit_error,
    near,
    on_nodes,
    went,
)

LIMIT = pod_limits.POD_AFFINITY_TERMS


def terms(count):
    return [a_term(app=f"other-{number}") for number in range(count)]


def preferred(count):
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms(count)]
    return {"affinity": {"podAntiAffinity": {PREFERRED: weighted}}}


def alternatives(count):
    one = {"matchExpressions": [a_line(HOST, "Exists")]}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [one] * count}}}}


def tolerations(count):
    return {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]}


def constraints(count):
    one = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    return {"topologySpreadConstraints": [one] * count}


def ports(count):
    listed = [{"containerPort": 1 + number, "hostPort": 1 + number} for number in range(count)]
    return {"containers": [{"name": "main", "ports": listed}]}


def lines(count):
    return on_nodes(*(a_line(f"k{number}", "DoesNotExist") for number in range(count)))


def values(count):
    return on_nodes(a_line(HOST, "NotIn", *(f"host-{number}" for number in range(count))))


def resources(count):
    requests = {f"example.com/r{number}": "0" for number in range(count)}
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


LISTS = {
    "pod affinity terms": (LIMIT, lambda count: away(*terms(count))),
    "node affinity terms": (pod_limits.NODE_AFFINITY_TERMS, alternatives),
    "tolerations": (pod_limits.TOLERATIONS, tolerations),
    "topology spread constraints": (pod_limits.SPREAD_CONSTRAINTS, constraints),
    "host ports": (pod_limits.HOST_PORTS, ports),
    "resources": (pod_limits.RESOURCES, resources),
    "label requirements": (pod_limits.REQUIREMENTS, lines),
    "label values": (pod_limits.VALUES, values),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_pod_at_a_limit_is_placed_and_one_beyond_it_is_not(name):
    limit, made = LISTS[name]
    assert went([a_node()], [a_pod(**made(limit))]) == {"p1": "n1"}
    why = f"a pod with {limit + 1:,} {name}, more than the {limit:,} that planning reads"
    assert fit_error([a_node()], [a_pod(**made(limit + 1))]) == f"0/1 nodes are available: 1 {why}."


@pytest.mark.parametrize("made", [near, away], ids=["affinity", "anti-affinity"])
def test_required_and_preferred_terms_count_together(made):
    affinity = {**preferred(1)["affinity"], **made(*terms(LIMIT))["affinity"]}
    affinity["podAntiAffinity"] = {**preferred(1)["affinity"]["podAntiAffinity"], **affinity["podAntiAffinity"]}
    assert "33 pod affinity terms" in fit_error([a_node()], [a_pod(affinity=affinity)])


def test_the_lines_of_every_selector_count_together():
    term = {"topologyKey": HOST, "labelSelector": {"matchExpressions": [a_line("k", "Exists")] * 400}}
    spread = {**constraints(1)["topologySpreadConstraints"][0], "labelSelector": term["labelSelector"]}
    pod = a_pod(**away(term), topologySpreadConstraints=[spread])
    assert "800 label requirements" in fit_error([a_node()], [pod])


def test_its_requests_still_take_their_place():
    nodes = [a_node(cpu="2"), a_node("n2", cpu="2")]
    full = a_pod("old", node="n1", cpu="2", **tolerations(65))
    assert went(nodes, [full, a_pod(cpu="2")]) == {"p1": "n2"}


def test_its_node_takes_no_pod_where_it_may_keep_others_away():
    beyond = a_pod("old", node="n1", **away(*terms(LIMIT + 1)))
    why = "0/1 nodes are available: 1 node(s) had a pod beyond the limits of planning."
    assert fit_error([a_node()], [beyond, a_pod()]) == why


@pytest.mark.parametrize("made", [lambda: near(*terms(LIMIT + 1)), lambda: tolerations(65)], ids=["near", "tolerant"])
def test_its_node_takes_others_where_its_lists_mean_itself_alone(made):
    assert went([a_node()], [a_pod("old", node="n1", **made()), a_pod()]) == {"p1": "n1"}


def test_a_daemon_set_beyond_a_limit_takes_its_place_on_a_new_node():
    nodes, template = [], a_template(cpu="4", pods="110")
    world = a_world(nodes, [a_pod()], daemons=[a_daemon_set(cpu="1", **tolerations(65))])
    number = world.open(world.free_slots.of([template])[0])
    assert world.free(world.fleet.nodes[number].name)["cpu"] == 3000


def test_a_list_of_the_wrong_type_is_left_to_the_reader():
    assert pod_limits.beyond_limit({"tolerations": 5, "affinity": [], "containers": {"a": 1}}) == ""
