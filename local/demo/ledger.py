"""Readers of the results from the sources that operators use: the table, the groups, the cluster, the queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from leeward.adapters.aws.record_items import offsets_of
from leeward.model.capacity import Offset
from leeward.model.times import parse_instant
from local.cluster.registry import instance_of_node
from local.demo import scenario
from local.stack import LocalStack

PLAIN = TypeDeserializer()
RECORD = "termination#"  # before the instance's id


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """Record of the table, as the demo shows it. Spans in seconds from the first cause."""

    instance: str
    node: str
    causes: tuple[str, ...]
    status: str
    outcome: str
    evicted: int
    launched: tuple[str, ...]
    replacement: str
    hooks: tuple[str, ...]
    blocked_by: tuple[str, ...]
    began: datetime
    times: Mapping[str, datetime] = field(default_factory=dict)
    offsets: tuple[str, ...] = ()  # instances whose terminations offset what this one had to

    @property
    def phase(self) -> str:
        """Last event, in a word."""
        words = {
            "closed": "gone",
            "removed": "node removed",
            "terminated": "terminated",
            "terminating": "terminating",
            "drained": "settling",
            "draining": "draining",
            "tainted": "cordoned",
        }
        return next((word for name, word in words.items() if name in self.times), "claimed")


def terminations(stack: LocalStack) -> list[Termination]:
    """Return all records, oldest first."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName="leeward", ConsistentRead=True)
    items = [item for page in pages for item in page["Items"]]
    found = [_termination(item) for item in items if item["pk"]["S"].startswith(RECORD)]
    return sorted(found, key=lambda one: (one.began, one.instance))


def termination(stack: LocalStack, instance: str) -> Termination | None:
    """Return the record of one instance."""
    key = {"pk": {"S": f"{RECORD}{instance}"}}
    item = stack.client("dynamodb").get_item(TableName="leeward", Key=key, ConsistentRead=True).get("Item")
    return _termination(item) if item else None


def _termination(stored: Mapping[str, Any]) -> Termination:
    item = {name: PLAIN.deserialize(value) for name, value in stored.items()}
    causes = list(item.get("causes", {}).values())
    replacement = item.get("replacement") or {}
    subject = item["subject"]
    return Termination(
        instance=str(item["pk"]).split("#", 1)[1],
        node=str(subject.get("node") or subject["instance"]),
        causes=tuple(sorted(str(cause["kind"]) for cause in causes)),
        status=str(item["status"]),
        outcome=str(item.get("outcome") or ""),
        evicted=int(item.get("evicted", 0)),
        launched=tuple(replacement.get("launched", ())),
        offsets=tuple(one.instance for one in offsets_of(item["offsets"]).values() if isinstance(one, Offset)),
        replacement=str(replacement.get("reason", "")),
        hooks=tuple(str(cause["hook"]) for cause in causes if cause.get("hook")),
        blocked_by=tuple(item.get("blockedBy", ())),
        began=min(parse_instant(str(cause["at"])) for cause in causes),
        times={name: parse_instant(str(at)) for name, at in item.get("times", {}).items()},
    )


def dead_letters(stack: LocalStack) -> list[tuple[str, str]]:
    """Return (reason, body) of each message in the dead-letter queue, without deleting it."""
    sqs = stack.client("sqs")
    url = sqs.get_queue_url(QueueName="leeward-interruption-dead-letters")["QueueUrl"]
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0
    )
    return [
        (message.get("MessageAttributes", {}).get("reason", {}).get("StringValue", ""), message["Body"])
        for message in answer.get("Messages", ())
    ]


def queue_depth(stack: LocalStack) -> int:
    """Return the number of messages that wait or are being processed."""
    sqs = stack.client("sqs")
    url = sqs.get_queue_url(QueueName="leeward-interruption")["QueueUrl"]
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(found.get(name, 0)) for name in names)


def executions(stack: LocalStack) -> dict[str, str]:
    """Return the name and status of every execution of node-termination."""
    client = stack.client("stepfunctions")
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-node-termination"
    pages = client.get_paginator("list_executions").paginate(stateMachineArn=machine)
    return {run["name"]: run["status"] for page in pages for run in page["executions"]}


def budget_violations(stack: LocalStack) -> Sequence[Any]:
    """Return the moments at which an eviction left a PodDisruptionBudget unsatisfied, from the cluster's own record."""
    found: Sequence[Any] = stack.cluster_control("GET", "pdb-violations")
    return found


def nodes(stack: LocalStack) -> dict[str, Mapping[str, Any]]:
    """Return the Node of each instance by the instance's id."""
    return {instance_of_node(node): node for node in scenario.instances_nodes(stack)}


def first_tainted(stack: LocalStack) -> dict[str, datetime]:
    """Return when each node first got Leeward's taint, from the cluster's own record."""
    found: dict[str, datetime] = {}
    for fact in stack.cluster_control("GET", "history"):
        if fact["kind"] == "node-tainted" and str(fact["taint"]).startswith("leeward.dev/disrupted="):
            found.setdefault(str(fact["object"]), parse_instant(str(fact["at"])))
    return found


def node_names(stack: LocalStack) -> dict[str, str]:
    """Return short names of the existing nodes, by instance id."""
    return {instance: short(str(node["metadata"]["name"])) for instance, node in nodes(stack).items()}


def short(name: str) -> str:
    """Return a node's name without its domain."""
    return name.split(".", 1)[0]


def pods_by_node(stack: LocalStack) -> dict[str, int]:
    """Return how many workload pods each node carries."""
    counts: dict[str, int] = {}
    for pod in stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]:
        name = pod["spec"].get("nodeName")
        if name:
            counts[name] = counts.get(name, 0) + 1
    return counts


def foreign_state(stack: LocalStack, instance: str) -> str | None:
    """Return the lifecycle state of the other team's instance in its group."""
    answer = stack.client("autoscaling").describe_auto_scaling_instances(InstanceIds=[instance])
    return next((str(found["LifecycleState"]) for found in answer["AutoScalingInstances"]), None)


def group_size(stack: LocalStack, group: str) -> tuple[int, int]:
    """Return (desired size, instances in service)."""
    answer = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    found = answer["AutoScalingGroups"][0]
    serving = sum(member["LifecycleState"] == "InService" for member in found["Instances"])
    return int(found["DesiredCapacity"]), serving


def is_tainted(node: Mapping[str, Any]) -> bool:
    """Return whether Leeward's taint is on the node."""
    return any(taint["key"] == "leeward.dev/disrupted" for taint in node["spec"].get("taints") or ())


def is_foreign(node: Mapping[str, Any], victims: scenario.Victims) -> bool:
    """Return whether the node is that of the other team's instance."""
    return str(node["spec"].get("providerID", "")).endswith(victims.foreign)
