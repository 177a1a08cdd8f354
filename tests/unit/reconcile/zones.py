"""A cluster of one group in three zones, for the passes of the minute reconciler over zones."""

from dataclasses import replace

from leeward.model import well_known
from leeward.model.facts import FactKind, Sheet, subnets_content
from leeward.model.group import GroupInstance
from leeward.model.pod import Owner, Pod
from leeward.model.zonal_shift import Evacuation
from leeward.policy.document import Budget, DisruptionPolicy
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_policy, a_subnet, an_instance, policies
from tests.fakes.system import FakeSystem

A, B, C = ZONES = "us-east-1a", "us-east-1b", "us-east-1c"
BY = "arn:aws:iam::111122223333:user/ana"
IN_A = ("i-0a1", "i-0a2", "i-0a3")
NODES = {**dict.fromkeys(IN_A, A), "i-0b1": B, "i-0b2": B, "i-0c1": C}


def node_in(instance, zone, **more):
    node = a_node(instance)
    return replace(node, labels={**node.labels, well_known.ZONE_LABEL: zone}, cpu=2000, **more)


def a_pod(name, instance="i-0a1", **more):
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name=name)
    known = {"namespace": "shop", "name": name, "uid": f"uid-{name}", "node": f"node-{instance}", "phase": "Running"}
    return Pod(**{**known, "owner": owner, "grace_seconds": 1, **more})


def a_group_in(zones, name=GROUP, members=NODES, **more):
    listed = tuple(GroupInstance(id=one, zone=zone, lifecycle="InService") for one, zone in members.items())
    subnets = tuple(f"subnet-{zone[-1]}" for zone in zones)
    return replace(a_group(name, *members, **more), zones=tuple(zones), subnets=subnets, instances=listed)


def a_system(*pods, at_once=1, groups=None, policy=None):
    """Three nodes in the zone A, two in B, one in C. `at_once`: of the disruption budget."""
    budgets = (Budget(nodes=at_once, percent=False),)
    policy = policy or replace(a_policy(), disruption=DisruptionPolicy(budgets=budgets))
    system = FakeSystem(
        instances=[replace(an_instance(one), zone=zone, subnet=f"subnet-{zone[-1]}") for one, zone in NODES.items()],
        groups=groups or [a_group_in(ZONES)],
        nodes=[node_in(one, zone) for one, zone in NODES.items()],
        written=policies(policy),
    )
    subnets = [a_subnet(f"subnet-{zone[-1]}", zone=zone) for zone in ZONES]
    system.network.by_id.update({subnet.id: subnet for subnet in subnets})
    sheet = Sheet(synced=system.clock.now(), content=subnets_content(subnets))
    system.catalog.keep(CLUSTER, FactKind.SUBNETS, sheet)
    for pod in pods:
        system.kubernetes.put_pod(pod)
    return system


def evacuate(system, zone=A, **more):
    record = system.catalog.zone_record(CLUSTER)
    evacuation = Evacuation(zone=zone, by=BY, since=system.clock.now(), **more)
    return system.catalog.write_zone_record(record.with_evacuation(evacuation), system.clock.now())


def open_again(system, zone=A):
    record = system.catalog.zone_record(CLUSTER)
    returned = replace(record.evacuation_of(zone), returned=system.clock.now())
    return system.catalog.write_zone_record(record.with_evacuation(returned), system.clock.now())
