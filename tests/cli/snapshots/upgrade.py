"""A snapshot for upgrades: group `web` with six nodes in three zones, launched from version 1; $Latest is version 2."""

import json
from pathlib import Path

from tests.cli.command import a_snapshot

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
TYPES = json.loads(Path("tests/unit/node_template/instance-types.json").read_text())
UPDATE = "{maxUnavailable: 1}"
POLICY = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {{name: web}}
spec:
  selector: {{groups: ["web"]}}
  update: {update}
"""
HOOK = {
    "LifecycleHookName": "leeward-terminate",
    "AutoScalingGroupName": "web",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
}


def zone_of(number):
    return ZONES[number % 3]


def a_node(number, *, version=1, ready=True, cordoned=False, disrupted=False, labels=None):
    """Instance `i-0N`, recorded in the group with the launch template's version."""
    zone = zone_of(number)
    taints = [{"key": "leeward.dev/disrupted", "effect": "NoSchedule"}] if disrupted else []
    amounts = {"cpu": "1930m", "memory": "7Gi", "pods": "29"}
    return {
        "kind": "Node",
        "version": version,
        "metadata": {
            "name": f"node-{number}",
            "creationTimestamp": f"2024-04-{number + 1:02}T08:01:00Z",
            "labels": {
                "topology.kubernetes.io/zone": zone,
                "node.kubernetes.io/instance-type": "m5.large",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
        },
        "spec": {"providerID": f"aws:///{zone}/i-0{number}", "unschedulable": cordoned or disrupted, "taints": taints},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "allocatable": amounts,
            "capacity": amounts,
            "nodeInfo": {"kubeletVersion": "v1.30.4-eks-0a1b2c3"},
        },
    }


def a_pod(name, number, *, app="web", cpu="500m", **spec):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "controller": True}
    return {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "labels": {"app": app}, "ownerReferences": [owner]},
        "spec": {
            "nodeName": f"node-{number}",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}],
            **spec,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_pdb(name="web", app="web", *, allowed=1, **spec):
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **(spec or {"maxUnavailable": 1})},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 6, "desiredHealthy": 5, "expectedPods": 6},
    }


def a_group(nodes, **fields):
    return {
        "AutoScalingGroupName": "web",
        "MinSize": 0,
        "MaxSize": 12,
        "DesiredCapacity": len(nodes),
        "AvailabilityZones": list(ZONES),
        "VPCZoneIdentifier": "subnet-a,subnet-b,subnet-c",
        "LaunchTemplate": {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "Version": "$Latest"},
        "Instances": [
            {
                "InstanceId": node["spec"]["providerID"].rsplit("/", 1)[-1],
                "AvailabilityZone": node["metadata"]["labels"]["topology.kubernetes.io/zone"],
                "LifecycleState": "InService",
                "InstanceType": "m5.large",
                "LaunchTemplate": {
                    "LaunchTemplateId": "lt-1",
                    "LaunchTemplateName": "web",
                    "Version": str(node["version"]),
                },
            }
            for node in nodes
        ],
        **fields,
    }


def templates(*versions):
    data = {"InstanceType": "m5.large"}
    return {
        "LaunchTemplateVersions": [
            {
                "LaunchTemplateId": "lt-1",
                "LaunchTemplateName": "web",
                "VersionNumber": number,
                "LaunchTemplateData": {**data, "ImageId": f"ami-0000000000000000{number}", **more},
            }
            for number, more in enumerate(versions, 1)
        ]
    }


def subnets(free=200):
    return {
        "Subnets": [
            {"SubnetId": f"subnet-{zone[-1]}", "AvailabilityZone": zone, "AvailableIpAddressCount": free}
            for zone in ZONES
        ]
    }


def an_upgrade_snapshot(directory, *, nodes=None, pods=None, group=None, update=UPDATE, free=200, **files):
    """One pod of a workload with a budget on each node; `files` replace or add."""
    nodes = [a_node(number) for number in range(6)] if nodes is None else nodes
    pods = [a_pod(f"web-{number}", number) for number in range(len(nodes))] if pods is None else pods
    content = {
        "nodes": {"items": nodes},
        "pods": {"items": pods},
        "pdbs": {"items": [a_pdb()]},
        "daemonsets": {"items": []},
        "auto_scaling_groups": {"AutoScalingGroups": [a_group(nodes, **(group or {}))]},
        "lifecycle_hooks": {"LifecycleHooks": [HOOK]},
        "instances": {"Reservations": []},
        "instance_types": TYPES,
        "launch_template_versions": templates({}, {}),
        "subnets": subnets(free),
        "prices": {"on-demand": {"m5.large": 0.096}, "spot": {}},
        "policy": POLICY.format(update=update),
    }
    return a_snapshot(directory, **(content | files))
