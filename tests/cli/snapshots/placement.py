"""A snapshot for placement: nodes in three zones, a subnet in each, two of them with room."""

from tests.cli.command import a_snapshot

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
POLICY = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web}
spec:
  selector: {groups: ["web"]}
"""


def a_node(name, zone, cpu="2", kind="m5.large", **status):
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"topology.kubernetes.io/zone": zone, "node.kubernetes.io/instance-type": kind},
        },
        "spec": {"providerID": f"aws:///{zone}/i-{name}"},
        "status": {"capacity": {"cpu": cpu, "pods": "29"}, **status},
    }


def a_pod(name, node, **spec):
    return {"kind": "Pod", "metadata": {"namespace": "shop", "name": name}, "spec": {"nodeName": node, **spec}}


def a_subnet(letter, free, **fields):
    return {
        "SubnetId": f"subnet-{letter}",
        "AvailabilityZone": f"us-east-1{letter}",
        "AvailableIpAddressCount": free,
        "CidrBlock": "10.0.0.0/24",
        "VpcId": "vpc-1",
        **fields,
    }


def a_group(name="web", subnets="subnet-a,subnet-b,subnet-c", **fields):
    return {
        "AutoScalingGroupName": name,
        "AvailabilityZones": list(ZONES),
        "VPCZoneIdentifier": subnets,
        "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "$Latest"},
        **fields,
    }


def a_template(version, kind, **fields):
    return {
        "LaunchTemplateId": "lt-1",
        "VersionNumber": version,
        "LaunchTemplateData": {"InstanceType": kind},
        **fields,
    }


def aws_node(**env):
    container = {"name": "aws-node", "env": [{"name": name, "value": value} for name, value in env.items()]}
    return {
        "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": "aws-node"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def items(*objects):
    return {"items": list(objects)}


def a_placement_snapshot(directory, **files):
    """us-east-1a: 2 cores, 100 free; us-east-1b: 4, 200 free; us-east-1c: 1 core, 5 free. `files` replace or add."""
    content = {
        "nodes": items(
            a_node("n1", "us-east-1a"),
            a_node("n2", "us-east-1b"),
            a_node("n3", "us-east-1b"),
            a_node("n4", "us-east-1c", cpu="1"),
        ),
        "pods": items(a_pod("web-1", "n1"), a_pod("web-2", "n1"), a_pod("proxy", "n1", hostNetwork=True)),
        "subnets": {"Subnets": [a_subnet("a", 100), a_subnet("b", 200), a_subnet("c", 5)]},
        "auto_scaling_groups": {"AutoScalingGroups": [a_group()]},
        "launch_template_versions": {"LaunchTemplateVersions": [a_template(1, "t3.small"), a_template(2, "m5.large")]},
        "instances": {"Reservations": []},
        "daemonsets": items(aws_node(WARM_ENI_TARGET="1")),
        "policy": POLICY,
    }
    return a_snapshot(directory, **(content | files))
