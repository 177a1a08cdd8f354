"""What holds a node beside its pods, on the deployed system: load balancers, volumes, a workload of one pod."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from leeward.policy.document import SETTLES
from local import fleet
from local.demo import ledger
from tests.local.chain.conftest import forget_what_is_cached

pytestmark = pytest.mark.local

EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
DELAY = 4  # seconds of the target group's deregistration delay


def begin(stack, instance):
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-node-termination"
    client = stack.client("stepfunctions")
    client.start_execution(stateMachineArn=machine, name=f"leave-{instance}", input=json.dumps({"instance": instance}))


def settled(record):
    """Time that the empty node is kept; with `settle: auto` a minute where anything may target it."""
    return record.times["terminating"] - record.times["drained"]


def reasons(team, name):
    return {event["reason"]: event["message"] for event in team.reported_about(name)}


def a_target_group(stack, network, instances):
    """As the AWS Load Balancer Controller makes one in instance mode."""
    elbv2 = stack.client("elbv2")
    made = elbv2.create_target_group(
        Name="k8s-shop-gate",
        Protocol="TCP",
        Port=1,
        VpcId=network.vpc,
        TargetType="instance",
        Tags=[{"Key": "elbv2.k8s.aws/cluster", "Value": stack.cluster}],
    )
    arn = made["TargetGroups"][0]["TargetGroupArn"]
    attribute = {"Key": "deregistration_delay.timeout_seconds", "Value": str(DELAY)}
    elbv2.modify_target_group_attributes(TargetGroupArn=arn, Attributes=[attribute])
    elbv2.register_targets(TargetGroupArn=arn, Targets=[{"Id": one, "Port": 30080} for one in instances])
    return arn


def test_pods_leave_a_node_only_after_its_load_balancer_has_let_go_of_it(stack, crew, network):
    team = crew(2, name="leave")
    victim, other = team.instances
    team.run_pods(fleet.deployment("gate", 2, grace=1), instance=victim)
    node = team.node_name(victim)
    group = a_target_group(stack, network, team.instances)
    forget_what_is_cached(stack, "leeward-drain")  # which target groups there are
    begin(stack, victim)
    team.until(lambda: "AwaitingDeregistration" in reasons(team, node), "the wait reported on the node")
    assert ledger.nodes(stack)[victim]["metadata"]["labels"][EXCLUDED] == "true"
    assert EXCLUDED not in ledger.nodes(stack)[other]["metadata"]["labels"]
    assert f"target {victim}:30080 of k8s-shop-gate (healthy), until " in reasons(team, node)["AwaitingDeregistration"]
    assert len(team.pods_on(node)) == 2
    let_go = datetime.now(UTC) + timedelta(seconds=DELAY)  # at the earliest
    stack.client("elbv2").deregister_targets(TargetGroupArn=group, Targets=[{"Id": victim}])
    record = team.closed(victim)
    assert (record.outcome, record.evicted) == ("terminated", 2)
    assert record.times["evicting"] >= let_go
    assert record.times["drained"] >= record.times["evicting"]
    assert settled(record) < SETTLES  # `settle: auto`: nothing targets it any more
    stack.client("elbv2").delete_target_group(TargetGroupArn=group)


def a_database(group):
    labels = {"app": "leave-db"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    container = {"name": "db", "image": "db", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "leave-db", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "serviceName": "leave-db",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"group": group},
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                },
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }


def attached_to(stack, node):
    found = stack.kubernetes("GET", "/apis/storage.k8s.io/v1/volumeattachments")["items"]
    return [one for one in found if one["spec"]["nodeName"] == node]


def test_an_instance_ends_only_after_the_volumes_of_its_pods_have_left(stack, crew):
    team = crew(1, name="leave")
    victim = team.instances[0]
    node = team.node_name(victim)
    team.run_pods(a_database(team.group), instance=victim)
    team.until(lambda: len(attached_to(stack, node)) == 1, "the volume at the node")
    begin(stack, victim)
    record = team.closed(victim)
    assert (record.outcome, record.evicted) == ("terminated", 1)
    assert "of default/data-leave-db-0 is still attached, until " in reasons(team, node)["AwaitingVolumeDetachment"]
    assert record.times["terminating"] - record.times["drained"] >= timedelta(seconds=3)
    assert attached_to(stack, node) == []
    stack.kubectl("delete", "statefulset", "leave-db")


def test_a_workload_of_one_pod_gets_a_second_before_it_goes(stack, crew):
    """Its budget never lets the only one go: nothing but a second pod can."""
    team = crew(2, name="leave")
    victim, other = team.instances
    team.run_pods(fleet.deployment("alone", 1, grace=1), fleet.budget("alone", minAvailable=1), instance=victim)
    stack.kubectl("label", "node", team.node_name(other), f"group={team.group}")
    begin(stack, victim)
    record = team.closed(victim)
    assert (record.outcome, record.evicted) == ("terminated", 1)
    team.until(lambda: len(team.pods_on(team.node_name(other))) == 1, "the pod elsewhere")
    deployment = stack.kubernetes("GET", "/apis/apps/v1/namespaces/default/deployments/alone")
    assert deployment["spec"]["replicas"] == 1
    assert team.violations("alone") == []
    for kind in ("deployment", "pdb"):
        stack.kubectl("delete", kind, "alone")
