"""Scenario of the demo: its fleet, and the messages that it sends."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from local import fleet
from local.cluster.registry import is_local
from local.fleet import GroupPlan
from local.stack import ROOT, LocalStack

SPOT, ON_DEMAND, FOREIGN = "web-spot", "web-on-demand", "other-team"
FOREIGN_HOOK = "other-team-backup"
MALFORMED_BODY = (
    '{"detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2", "detail": {"instance-id": 42}}'
)
NODES = 10  # nine that Leeward manages, and one of another team
GROUPS = (GroupPlan(name=SPOT, size=5, spot=True), GroupPlan(name=ON_DEMAND, size=4), GroupPlan(name=FOREIGN, size=1))
WORKLOADS = (
    *(fleet.deployment("web", 9), fleet.budget("web", maxUnavailable=1)),
    *(fleet.deployment("api", 6), fleet.budget("api", minAvailable="60%")),
    *(fleet.deployment("cart", 2), fleet.budget("cart", minAvailable=1)),
    fleet.daemon_set("agent"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """Instances that the messages name. `spot`: gets a spot interruption warning; `maintained`: get a scheduled change;
    `foreign`: terminated through its group, in which Leeward has no hook.
    """

    spot: str
    maintained: tuple[str, str]
    foreign: str


def settings(stack: LocalStack) -> dict[str, Any]:
    """Return the CDK context of the demo's deployment."""
    policy = Path(__file__).parent.joinpath("policy.yaml").relative_to(ROOT)
    return {"clusters": [{"name": stack.cluster, "policies": [str(policy)]}]}


def build_fleet(stack: LocalStack) -> None:
    """Build three zones, a spot group, an on-demand group, and another team's group with its own terminate hook."""
    network = fleet.build_network(stack)
    for plan in GROUPS:
        fleet.build_group(stack, network, plan)
    stack.client("autoscaling").put_lifecycle_hook(
        AutoScalingGroupName=FOREIGN,
        LifecycleHookName=FOREIGN_HOOK,
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=900,
        DefaultResult="ABANDON",
    )


def settled(stack: LocalStack) -> bool:
    """Return whether every node is Ready and every pod of the workloads runs and is Ready."""
    nodes = instances_nodes(stack)
    pods = stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
    ready = [node for node in nodes if is_ready(node)]
    running = [pod for pod in pods if pod["status"].get("phase") == "Running" and is_ready(pod)]
    return len(ready) == NODES and len(running) == sum(workload["spec"].get("replicas", 0) for workload in WORKLOADS)


def instances_nodes(stack: LocalStack) -> list[Mapping[str, Any]]:
    """Return the nodes of the local EC2's instances; a given cluster has control-plane nodes beside them."""
    nodes = stack.kubernetes("GET", "/api/v1/nodes")["items"]
    return [node for node in nodes if is_local(node)]


def is_ready(obj: Mapping[str, Any]) -> bool:
    """Return whether the Ready condition of a node or pod is True."""
    conditions = obj.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def choose(stack: LocalStack) -> Victims:
    """Choose a spot instance, two on-demand instances and the other team's instance."""
    spot = fleet.instances_of(stack, SPOT)[0]["InstanceId"]
    first, second, *_ = (member["InstanceId"] for member in fleet.instances_of(stack, ON_DEMAND))
    foreign = fleet.instances_of(stack, FOREIGN)[0]["InstanceId"]
    return Victims(spot=spot, maintained=(first, second), foreign=foreign)


def play(stack: LocalStack, victims: Victims) -> None:
    """Send all messages at once, the hardest case for a node manager: a spot warning (twice), scheduled maintenance, a
    malformed body, a scale-in and a termination in the other team's group. The maintained instances are protected from
    scale-in, so that each message has a node of its own.
    """
    autoscaling = stack.client("autoscaling")
    autoscaling.set_instance_protection(
        AutoScalingGroupName=ON_DEMAND, InstanceIds=list(victims.maintained), ProtectedFromScaleIn=True
    )
    warning = spot_warning(stack, victims.spot)
    stack.emit(warning)
    stack.emit(maintenance(stack, victims.maintained))
    sqs = stack.client("sqs")
    queue = sqs.get_queue_url(QueueName="leeward-interruption")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody=MALFORMED_BODY)
    desired = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[ON_DEMAND])["AutoScalingGroups"][0]
    autoscaling.set_desired_capacity(
        AutoScalingGroupName=ON_DEMAND, DesiredCapacity=desired["DesiredCapacity"] - 1, HonorCooldown=False
    )
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=victims.foreign, ShouldDecrementDesiredCapacity=True
    )
    stack.emit(warning)


def spot_warning(stack: LocalStack, instance: str) -> dict[str, Any]:
    """Return the event of a spot interruption warning, as EventBridge delivers it."""
    return envelope(
        stack,
        source="aws.ec2",
        kind="EC2 Spot Instance Interruption Warning",
        resources=[f"arn:aws:ec2:{stack.region}a:instance/{instance}"],
        detail={"instance-id": instance, "instance-action": "terminate"},
    )


def maintenance(stack: LocalStack, instances: tuple[str, ...]) -> dict[str, Any]:
    """Let EC2 schedule the retirement of the instances, twelve hours ahead, and return AWS Health's event of it."""
    starts = datetime.now(UTC) + timedelta(hours=12)
    for instance in instances:
        retired = {"code": "instance-retirement", "inSeconds": 12 * 3600}
        stack.control("PUT", f"scheduled-events/{instance}", retired)
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    arn = f"arn:aws:health:{stack.region}::event/EC2/{code}/{code}_demo"
    return envelope(
        stack,
        source="aws.health",
        kind="AWS Health Event",
        resources=list(instances),
        detail={
            "eventArn": arn,
            "communicationId": "demo-1",
            "eventScopeCode": "ACCOUNT_SPECIFIC",
            "statusCode": "upcoming",
            "eventRegion": stack.region,
            "service": "EC2",
            "eventTypeCode": code,
            "eventTypeCategory": "scheduledChange",
            "startTime": format_datetime(starts, usegmt=True),
            "affectedEntities": [{"entityValue": instance, "status": "IMPAIRED"} for instance in instances],
        },
    )


def envelope(
    stack: LocalStack, *, source: str, kind: str, resources: list[str], detail: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an event of an AWS service, as EventBridge delivers it, with a new id."""
    now = datetime.now(UTC)
    return {
        "version": "0",
        "id": str(uuid4()),
        "source": source,
        "detail-type": kind,
        "account": stack.account,
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": stack.region,
        "resources": resources,
        "detail": dict(detail),
    }
