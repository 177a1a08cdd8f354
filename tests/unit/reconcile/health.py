"""Clusters whose health is looked at: `a_cluster(3, ill={"a1": 45})` has three nodes, one NotReady for 45 minutes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from leeward.cluster.facets import Known
from leeward.cluster.state import ClusterState
from leeward.model import well_known
from leeward.model.group import Group, GroupInstance
from leeward.model.instance import CapacityType, Instance
from leeward.model.instance_status import Impairment
from leeward.model.node import Node
from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy
from leeward.policy.repair import RepairPolicy

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
REPAIR = RepairPolicy()


def minutes(count):
    return timedelta(minutes=count)


def a_node(name, *, ill=None, zone=ZONES[0], **rest):
    """`ill`: minutes for which it has been NotReady."""
    node = Node(
        name=name,
        uid=f"uid-{name}",
        resource_version="1",
        provider_id=f"aws:///{zone}/i-{name}",
        labels={well_known.ZONE_LABEL: zone},
        annotations={},
        taints=(),
        unschedulable=False,
        ready=ill is None,
        deleting=False,
        created=NOON - timedelta(days=30),
        not_ready_since=None if ill is None else NOON - minutes(ill),
        not_ready_why="" if ill is None else "NodeStatusUnknown",
    )
    return replace(node, **rest)


def an_instance(node, *, group="web", state="running"):
    return Instance(
        id=node.instance_id,
        state=state,
        type="m5.large",
        zone=node.labels[well_known.ZONE_LABEL],
        subnet="subnet-a",
        capacity_type=CapacityType.ON_DEMAND,
        tags={well_known.GROUP_TAG: group},
        launched=NOON - timedelta(days=30),
    )


def a_group(name="web", nodes=(), lifecycles=None):
    members = [
        GroupInstance(id=node.instance_id, zone=ZONES[0], lifecycle=(lifecycles or {}).get(node.name, "InService"))
        for node in nodes
    ]
    return Group(name=name, tags={}, minimum=0, maximum=100, desired=len(members), instances=tuple(members))


def impaired(name, since=10, *checks):
    started = None if since is None else NOON - minutes(since)
    return Impairment(instance=f"i-{name}", checks=checks or ("system",), since=started)


def policies(*of, repair=REPAIR, **settings):
    one = NodePolicy(name="web", selector=GroupSelector(groups=("*",)), repair=repair)
    return ClusterPolicies(settings=ClusterSettings(name="blue", **settings), policies=of or (one,))


def a_state(nodes, *, groups=None, states=None, lifecycles=None, failing=(), **rest):
    """All nodes in one group `web` unless `groups` says otherwise; `states`: EC2's instance states by node name."""
    nodes = tuple(nodes)
    fields = {
        "cluster": "blue",
        "policies": policies(),
        "node_list": Known(nodes),
        "groups": groups or {"web": a_group("web", nodes, lifecycles)},
        "instances": {n.instance_id: an_instance(n, state=(states or {}).get(n.name, "running")) for n in nodes},
        "claims": Known(frozenset()),
        "impaired": Known({one.instance: one for one in failing}),
    }
    return ClusterState(**{**fields, **rest})


def a_cluster(size, *, ill=None, failing=(), **rest):
    """Nodes a1, b2, c3, a4 ... over three zones; `ill`: minutes NotReady by name."""
    names = [f"{'abc'[number % 3]}{number + 1}" for number in range(size)]
    nodes = [a_node(name, ill=(ill or {}).get(name), zone=ZONES["abc".index(name[0])]) for name in names]
    return a_state(nodes, failing=failing, **rest)
