"""A snapshot for disruption: three half-empty m5.xlarge of `web`, and `batch`, which would launch an m5.large."""

from tests.cli.command import a_snapshot
from tests.cli.snapshots.placement import a_subnet, items

ZONE = "us-east-1a"
POLICY = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: all}
spec:
  selector: {groups: ["web", "batch"]}
  disruption: {budgets: [{nodes: "100%"}], consolidateAfter: 0s}
  repair: {}
"""
PRICES = {
    "on-demand": {"m5.large": 0.096, "m5.xlarge": 0.192},
    "spot": {"m5.large": {ZONE: 0.04}, "m5.xlarge": {ZONE: 0.08}},
}


def a_node(name, **meta):
    labels = {"topology.kubernetes.io/zone": ZONE, "node.kubernetes.io/instance-type": "m5.xlarge"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": "2024-04-01T08:00:00Z", "labels": labels, **meta},
        "spec": {"providerID": f"aws:///{ZONE}/i-{name}"},
        "status": {
            "allocatable": {"cpu": "3920m", "memory": "14Gi", "pods": "58"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(name, node, cpu="500m", **meta):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "uid": name, "ownerReferences": [owner], **meta},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running", "startTime": "2024-04-01T09:00:00Z"},
    }


def an_instance(name, **fields):
    return {
        "InstanceId": f"i-{name}",
        "State": {"Name": "running"},
        "InstanceType": "m5.xlarge",
        "Placement": {"AvailabilityZone": ZONE},
        "SubnetId": "subnet-a",
        "ImageId": "ami-1",
        "LaunchTime": "2024-04-01T07:58:00+00:00",
        **fields,
    }


def a_group(name, template, *members, minimum=0):
    return {
        "AutoScalingGroupName": name,
        "MinSize": minimum,
        "MaxSize": 10,
        "DesiredCapacity": len(members),
        "AvailabilityZones": [ZONE],
        "VPCZoneIdentifier": "subnet-a",
        "LaunchTemplate": {"LaunchTemplateId": template, "Version": "$Latest"},
        "Instances": [
            {"InstanceId": f"i-{one}", "AvailabilityZone": ZONE, "LifecycleState": "InService"} for one in members
        ],
    }


def a_type(name, cores, memory):
    network = {"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10}
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": cores},
        "MemoryInfo": {"SizeInMiB": memory},
        "NetworkInfo": network,
        "Hypervisor": "nitro",
    }


def a_template(name, kind, image="ami-1", version=1):
    return {
        "LaunchTemplateId": name,
        "VersionNumber": version,
        "DefaultVersion": True,
        "LaunchTemplateData": {"InstanceType": kind, "ImageId": image},
    }


def a_disruption_snapshot(directory, **files):
    """`files` replace or add."""
    nodes = ("n1", "n2", "n3")
    content = {
        "nodes": items(*(a_node(name) for name in nodes)),
        "pods": items(*(a_pod(f"p{number}", name) for number, name in enumerate(nodes))),
        "pdbs": items(),
        "daemonsets": items(),
        "subnets": {"Subnets": [a_subnet("a", 100)]},
        "auto_scaling_groups": {"AutoScalingGroups": [a_group("web", "lt-web", *nodes), a_group("batch", "lt-batch")]},
        "launch_template_versions": {
            "LaunchTemplateVersions": [a_template("lt-web", "m5.xlarge"), a_template("lt-batch", "m5.large")]
        },
        "instance_types": {"InstanceTypes": [a_type("m5.large", 2, 8192), a_type("m5.xlarge", 4, 16384)]},
        "instances": {"Reservations": [{"Instances": [an_instance(name) for name in nodes]}]},
        "prices": PRICES,
        "policy": POLICY,
    }
    return a_snapshot(directory, **(content | files))
