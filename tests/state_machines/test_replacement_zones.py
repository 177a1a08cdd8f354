"""A replacement is launched where the pods that move may run, and where AZRebalance has nothing to do afterwards."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.model import well_known
from leeward.model.group import AZ_REBALANCE, GroupInstance
from leeward.model.pod import Pod
from leeward.ports.kubernetes import Listed
from leeward.termination.run import NoticeKind
from tests.fakes.builders import GROUP, zone_id_of
from tests.state_machines.test_replacements import A, B, C, I, a_system, ask, short_in, subnets_launched_in
from tests.unit.scheduling.raw import ZONE, a_node, a_pod, a_term, away, near, spread

ZONE_ID = "topology.k8s.aws/zone-id"
LEAVES = f"node-{I}"
WEB = {"owner": "ReplicaSet", "namespace": "shop"}
OTHERS = {"web-node-b", "web-node-c"}
READS = {"read nodes": 1, "read pods": 1}


def a_fleet(rule, *others, raised=(), nodes=(), **facts):
    """A node in each zone with one pod of the app; the others take no pods. Its own zone is short."""
    places = {LEAVES: A, "node-b": B, "node-c": C, "other-a": A, **dict(nodes)}
    raw_nodes = [a_node(name, zone=zone, labels={ZONE_ID: zone_id_of(zone)}) for name, zone in places.items()]
    pods = [a_pod(f"web-{name}", node=name, **WEB, **rule) for name in (LEAVES, "node-b", "node-c")]
    leaving = replace(Pod.from_json(pods[0]), uid="uid-web")
    system = a_system(leaving, **facts)
    system.kubernetes.raw = {Listed.NODES: raw_nodes, Listed.PODS: [*pods, *others, *raised]}
    group = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(group, suspended=(AZ_REBALANCE,))
    short_in(system, A)
    return system


def zones_tried(system):
    """Zones in the order in which they are tried."""
    ask(system)
    return [option.zone[-1] for option in system.claims.read(I).plan.options]


def raw_reads(system):
    return {name: count for name, count in system.kubernetes.asked.items() if name.startswith("read ")}


def test_without_a_rule_about_zones_nothing_is_asked_and_the_short_zone_comes_last():
    system = a_fleet(spread(hard=False))
    assert zones_tried(system)[-1] == "a"
    assert raw_reads(system) == {}


def test_a_spread_pod_gets_its_node_in_the_zone_where_it_may_run_although_that_is_short():
    system = a_fleet(spread())
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert f"pod shop/web-{LEAVES} may not run in us-east-1b and us-east-1c" in run.why
    assert raw_reads(system) == READS


@pytest.mark.parametrize("key", [ZONE, ZONE_ID])
@pytest.mark.parametrize(
    ("rule", "first"), [(spread, "a"), (lambda key: away(a_term(key)), "a"), (lambda key: near(a_term(key, "db")), "c")]
)
def test_spread_affinity_and_anti_affinity_by_name_or_id_of_the_zone_decide(rule, key, first):
    database = a_pod("db-0", app="db", node="node-c", **WEB)
    assert zones_tried(a_fleet(rule(key=key), database))[0] == first


def test_zones_where_the_pods_may_not_run_are_still_tried_when_the_others_refuse():
    assert sorted(zones_tried(a_fleet(spread()))) == ["a", "b", "c"]


def test_the_zone_of_the_last_node_is_no_domain_once_its_node_is_gone():
    """A short zone where the pod may run at once is tried first, then those where it may run a moment later."""
    system = a_fleet(spread(), nodes={"other-a": B})
    assert zones_tried(system)[0] == "a"
    system = a_fleet(spread(), nodes={"other-a": B})
    system.groups.short_of_capacity = {"subnet-a"}
    run = ask(system)
    assert subnets_launched_in(system) in (["subnet-b"], ["subnet-c"])
    assert "may run there only when the old node is gone" in run.why


@pytest.mark.parametrize(("stays", "first"), [(True, "c"), (False, "b")])
def test_a_zone_whose_only_pod_to_run_beside_leaves_too_comes_after_one_where_it_stays(stays, first):
    """The scheduler may put that pod anywhere; where it is the only one, every zone is as good."""
    databases = [a_pod(f"db-{node}", app="db", node=node, **WEB) for node in (LEAVES, *["node-c"] * stays)]
    system = a_fleet(near(a_term(ZONE, "db")), *databases)
    short_in(system, C)
    short_in(system, A)
    assert zones_tried(system)[0] == first


def test_a_term_that_names_another_namespace_is_compared_there():
    database = a_pod("db-0", app="db", node="node-c", namespace="data")
    system = a_fleet(near(a_term(ZONE, "db", namespaces=["data"])), database)
    assert zones_tried(system)[0] == "c"
    assert raw_reads(system) == {"read nodes": 1, "read pods": 2}


def test_a_term_about_every_namespace_is_compared_with_all_pods():
    database = a_pod("db-0", app="db", node="node-c", namespace="data")
    assert zones_tried(a_fleet(near(a_term(ZONE, "db", namespaceSelector={})), database))[0] == "c"


def test_a_volume_of_the_pod_does_not_keep_its_rule_from_being_compared():
    claim = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    assert zones_tried(a_fleet({**spread(), **claim}))[0] == "a"


@pytest.mark.parametrize("call", READS)
def test_without_an_answer_the_order_is_as_before_and_says_so(call):
    system = a_fleet(spread())
    system.kubernetes.fail(call, ClusterUnreachableError("503"))
    run = ask(system)
    assert subnets_launched_in(system) != ["subnet-a"]
    assert run.notices[0].kind is NoticeKind.STALE_FACTS
    assert "the zones in which its pods may run were not compared: 503" in run.notices[0].text


def test_an_api_server_that_takes_longer_than_its_share_of_the_notice_delays_no_launch():
    system = a_fleet(spread())
    read = system.kubernetes.read

    def slowly(*what, **where):
        system.clock.advance(seconds=3)
        return read(*what, **where)

    system.kubernetes.read = slowly
    run = ask(system)
    assert subnets_launched_in(system) != ["subnet-a"]
    assert "the zones in which its pods may run were not compared within 5 s" in run.notices[0].text


def test_an_object_that_cannot_be_read_spoils_no_answer():
    odd = a_pod("odd", node="node-b", namespace="shop", **spread(maxSkew="wide"))
    assert zones_tried(a_fleet(spread(), odd))[0] == "a"


def members(system, *zones):
    group = system.groups.by_name[GROUP]
    more = tuple(GroupInstance(id=f"i-0m{n}", zone=zone, lifecycle="InService") for n, zone in enumerate(zones))
    system.groups.by_name[GROUP] = replace(group, instances=(*group.instances, *more), suspended=())


def test_where_the_group_balances_its_zones_a_launch_that_it_would_undo_comes_after_the_others():
    system = a_fleet({})
    members(system, B, C)
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert "AZRebalance would move a node otherwise" in run.why


def test_zones_that_are_uneven_whatever_is_launched_keep_their_order():
    system = a_fleet({})
    members(system, B, B, B, C, C)
    assert zones_tried(system)[-1] == "a"


def test_members_that_are_ending_are_not_balanced():
    system = a_fleet({})
    members(system, A, B, C)
    group = system.groups.by_name[GROUP]
    ending = tuple(replace(one, lifecycle="Terminating:Wait") if one.id == "i-0m0" else one for one in group.instances)
    system.groups.by_name[GROUP] = replace(group, instances=ending)
    assert zones_tried(system)[0] == "a"


def test_the_pods_outweigh_the_balance_of_the_zones():
    database = a_pod("db-0", app="db", node="node-c", **WEB)
    system = a_fleet(near(a_term(ZONE, "db")), database)
    members(system, B, C)
    assert zones_tried(system)[0] == "c"


def test_the_answer_is_kept_in_the_plan_so_that_a_step_that_is_run_again_asks_nothing():
    system = a_fleet(spread())
    system.groups.fail("launch", ClusterUnreachableError("killed"), times=1)
    with pytest.raises(ClusterUnreachableError):
        ask(system)
    system.clock.advance(seconds=timedelta(seconds=5).total_seconds())
    ask(system)
    assert raw_reads(system) == READS
    assert subnets_launched_in(system)[-1] == "subnet-a"


BY_LABEL = {"namespaceSelector": {"matchLabels": {"team": "data"}}}


@pytest.mark.parametrize("rule", [near, away])
def test_a_namespace_selector_by_labels_is_told_as_not_compared_and_refuses_no_zone(rule):
    """The function may not read namespaces: which pods such a term means is not known."""
    database = a_pod("db-0", app="db", node="node-c", namespace="data")
    system = a_fleet(rule(a_term(ZONE, "db", **BY_LABEL)), database)
    run = ask(system)
    assert "may not run" not in run.why
    assert "a namespaceSelector asks for labels of namespaces" in run.notices[0].text
    assert f"shop/web-{LEAVES}" in run.notices[0].text


def test_a_namespace_selector_by_name_needs_no_namespace_to_be_read():
    database = a_pod("db-0", app="db", node="node-c", namespace="data")
    named = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "data"}}}
    system = a_fleet(near(a_term(ZONE, "db", **named)), database)
    assert zones_tried(system)[0] == "c"
    assert raw_reads(system) == {"read nodes": 1, "read pods": 2}


@pytest.mark.parametrize("labelled", [True, False])
def test_without_the_ids_of_the_zones_nodes_show_them_else_no_zone_is_refused_by_its_id(labelled):
    system = a_fleet(spread(key=ZONE_ID))
    subnets = system.network.by_id
    subnets.update({name: replace(subnet, zone_id="") for name, subnet in subnets.items()})
    if not labelled:
        for node in system.kubernetes.raw[Listed.NODES]:
            node["metadata"]["labels"].pop(ZONE_ID)
    run = ask(system)
    assert ("may not run" in run.why) == labelled
    assert (subnets_launched_in(system) == ["subnet-a"]) == labelled


def kept_apart(*namespaces):
    """A leaving pod without a rule; pods in zones b and c whose anti-affinity means it, as the planner has noted."""
    rule = away(a_term(ZONE, "web", namespaces=["shop"]))
    guards = [
        a_pod(f"guard-{name}", app="guard", node=name, **{**WEB, "namespace": "data"}, **rule)
        for name in ("node-b", "node-c")
    ]
    system = a_fleet({}, *guards)
    alone = [pod for pod in system.kubernetes.raw[Listed.PODS] if pod["metadata"]["name"] not in OTHERS]
    system.kubernetes.raw[Listed.PODS] = alone
    node = system.kubernetes.by_name[LEAVES]
    system.kubernetes.annotate(node, {well_known.KEPT_APART_BY: ",".join(namespaces)})
    return system


def test_other_pods_anti_affinity_against_a_pod_without_a_rule_decides_too():
    """kube-scheduler honours it from both sides; the planner has noted where such pods are."""
    system = kept_apart("data")
    run = ask(system)
    assert subnets_launched_in(system) == ["subnet-a"]
    assert f"pod shop/web-{LEAVES} may not run in us-east-1b and us-east-1c" in run.why
    assert raw_reads(system) == {"read nodes": 1, "read pods": 2}


def test_without_that_note_nothing_is_asked():
    system = kept_apart()
    assert zones_tried(system)[-1] == "a"
    assert raw_reads(system) == {}
