"""A snapshot for evacuations: `web` has three nodes in us-east-1a, one of them with a pod on a volume of the zone, and
one in us-east-1b; `batch` has no other zone."""

from dataclasses import replace

import yaml

from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.policy.parse import parse_documents
from leeward.ports.kubernetes import Listed
from tests.cli.snapshots.disruption import POLICY, a_disruption_snapshot, a_group, a_node, a_pod, an_instance
from tests.cli.snapshots.placement import a_subnet, items
from tests.fakes.builders import CLUSTER
from tests.fakes.system import FakeSystem

NODES = {"n1": "us-east-1a", "n2": "us-east-1a", "n3": "us-east-1a", "n4": "us-east-1b", "n5": "us-east-1a"}


def in_zone(name, zone):
    node = a_node(name)
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone
    node["spec"]["providerID"] = f"aws:///{zone}/i-{name}"
    return node


def a_database(name, node):
    pod = a_pod(name, node)
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
    return pod


def a_volume(claim, volume, zone):
    term = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}
    return {
        "metadata": {"name": f"pv-{claim}"},
        "spec": {
            "claimRef": {"namespace": "shop", "name": claim},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": volume},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
        "status": {"phase": "Bound"},
    }


def _content():
    web = {**a_group("web", "lt-web", "n1", "n2", "n3", "n4"), "VPCZoneIdentifier": "subnet-a,subnet-b"}
    for member in web["Instances"]:
        member["AvailabilityZone"] = NODES[member["InstanceId"].removeprefix("i-")]
    groups = [{**web, "AvailabilityZones": ["us-east-1a", "us-east-1b"]}, a_group("batch", "lt-batch", "n5")]
    return {
        "nodes": items(*(in_zone(name, zone) for name, zone in NODES.items())),
        "pods": items(a_database("db-0", "n1"), a_pod("web-1", "n2"), a_pod("web-2", "n3"), a_pod("job-1", "n5")),
        "pvs": items(a_volume("data-db-0", "vol-0a1b2c3d", "us-east-1a")),
        "subnets": {"Subnets": [a_subnet("a", 100), a_subnet("b", 100)]},
        "auto_scaling_groups": {"AutoScalingGroups": groups},
        "instances": {
            "Reservations": [
                {"Instances": [an_instance(name, Placement={"AvailabilityZone": zone}) for name, zone in NODES.items()]}
            ]
        },
        "policy": POLICY.replace('nodes: "100%"', "nodes: 1"),
    }


def a_zone_snapshot(directory, **files):
    """One node at once may be disrupted. `files` replace or add."""
    return a_disruption_snapshot(directory, **(_content() | files))


def a_zone_system():
    """The same cluster behind fakes of its ports."""
    content = _content()
    (instances,) = content["instances"]["Reservations"]
    document = [("policy", yaml.safe_load(content["policy"]))]
    system = FakeSystem(
        instances=[Instance.from_json(one) for one in instances["Instances"]],
        groups=[_tagged(Group.from_json(one)) for one in content["auto_scaling_groups"]["AutoScalingGroups"]],
        nodes=[Node.from_json(one) for one in content["nodes"]["items"]],
        written=parse_documents(document, cluster=CLUSTER),
    )
    system.network.by_id = {one.id: one for one in map(Subnet.from_json, content["subnets"]["Subnets"])}
    api = system.kubernetes
    api.raw = {
        Listed.NODES: content["nodes"]["items"],
        Listed.PODS: content["pods"]["items"],
        Listed.VOLUMES: content["pvs"]["items"],
    }
    api.volume_list = content["pvs"]["items"]
    api.by_key = {pod.key: pod for pod in map(Pod.from_json, content["pods"]["items"])}
    return system


def _tagged(group):
    return replace(group, tags={f"kubernetes.io/cluster/{CLUSTER}": "owned"})
