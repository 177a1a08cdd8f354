"""`ports.doctor.Deployment`: STS, Lambda, Step Functions, SQS, DynamoDB, Auto Scaling and EKS.

From EventBridge and CloudWatch it reads rules, alarms and metrics, from SNS the topics, and from KMS the keys that
encrypt them."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from leeward.adapters.account_check import CHECK
from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, code_of
from leeward.doctor import expected
from leeward.doctor.facts import (
    CallerIdentity,
    ClusterNetwork,
    Counts,
    DeploymentAlarm,
    EksCluster,
    EventSource,
    FailedExecution,
    Function,
    MessageAge,
    Queue,
    RecordTable,
    TopicKey,
)
from leeward.errors import ObjectGoneError, TerminalError
from leeward.model.concurrency import Concurrency
from leeward.model.group import Group
from leeward.model.times import as_instant
from leeward.ports.doctor import Rbac

COUNTED = ("Errors", "Throttles")
MEASURED = timedelta(minutes=5)  # an older value does not describe the present
MINUTE, FIVE_MINUTES = 60, 300  # seconds of a period, at whose beginnings CloudWatch counts
KEY_POLICY = "default"  # the only one that a KMS key has
FILTER_VALUES = 200  # that EC2 takes in one filter
TO_ANYWHERE = "0.0.0.0/0"
CHECK_SECONDS = 60.0  # for the answer of a function, which may start cold and wait for some accounts
BADLY = ("FAILED", "TIMED_OUT")
T = TypeVar("T")


class Signs:
    """Rules, alarms and metrics, one call each, with its pages."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def rules(self, prefix: str) -> Mapping[str, bool]:
        """Read the rules of the default bus with ListRules, then those of the webhooks' bus, which exists where a
        cluster names a webhook.
        """
        found = self._rules_of(prefix)
        with contextlib.suppress(ObjectGoneError):
            found |= self._rules_of(prefix, EventBusName=expected.WEBHOOK_BUS)
        return found

    def _rules_of(self, prefix: str, **bus: str) -> dict[str, bool]:
        with aws_call("events:ListRules", prefix):
            listed = pages(self._clients.get("events"), "list_rules", NamePrefix=prefix, **bus)
            return {raw["Name"]: raw.get("State") != "DISABLED" for page in listed for raw in page.get("Rules", ())}

    def targets(self, rule: str) -> Sequence[str]:
        """Read the targets with ListTargetsByRule."""
        with aws_call("events:ListTargetsByRule", rule):
            listed = pages(self._clients.get("events"), "list_targets_by_rule", Rule=rule)
            return [raw["Arn"] for page in listed for raw in page.get("Targets", ())]

    def alarms(self, prefix: str) -> Mapping[str, DeploymentAlarm]:
        """Read the alarms with DescribeAlarms."""
        with aws_call("cloudwatch:DescribeAlarms", prefix):
            listed = pages(self._clients.get("cloudwatch"), "describe_alarms", AlarmNamePrefix=prefix)
            return {raw["AlarmName"]: _alarm(raw) for page in listed for raw in page.get("MetricAlarms", ())}

    def counts(self, functions: Iterable[str], since: datetime, now: datetime) -> Mapping[str, Counts]:
        """Call GetMetricData once for all functions. Without a datum a function was not called, or had no error."""
        named = tuple(functions)
        queries = [
            _query(f"{metric.lower()}{place}", "AWS/Lambda", metric, {"FunctionName": name}, "Sum", FIVE_MINUTES)
            for place, name in enumerate(named)
            for metric in COUNTED
        ]
        sums = {name: sum(values) for name, values in self._data(queries, since, now)}
        return {
            name: Counts(errors=int(sums.get(f"errors{place}", 0)), throttles=int(sums.get(f"throttles{place}", 0)))
            for place, name in enumerate(named)
        }

    def message_age(self, queue: str, now: datetime) -> MessageAge:
        """Call GetMetricData: the latest minute that SQS has reported, and the latest failure of fn interruption."""
        by_queue, by_service = {"QueueName": queue}, {"service": "interruption"}
        queries = [
            _query("unread", "AWS/SQS", "ApproximateAgeOfOldestMessage", by_queue, "Maximum", MINUTE),
            _query("failing", expected.METRICS, expected.FAILING[queue], by_service, "Maximum", MINUTE),
        ]
        latest = {name: values[0] for name, values in self._data(queries, now - MEASURED, now) if values}
        return MessageAge(unread=latest.get("unread"), failing=latest.get("failing"))

    def _data(
        self, queries: list[dict[str, Any]], since: datetime, now: datetime
    ) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield (id, values), the latest first."""
        with aws_call("cloudwatch:GetMetricData", queries[0]["MetricStat"]["Metric"]["Namespace"]):
            for page in pages(
                self._clients.get("cloudwatch"),
                "get_metric_data",
                MetricDataQueries=queries,
                StartTime=since,
                EndTime=now,
                ScanBy="TimestampDescending",
            ):
                for raw in page.get("MetricDataResults", ()):
                    yield raw["Id"], raw.get("Values") or ()


def _query(
    name: str, namespace: str, metric: str, dimensions: Mapping[str, str], statistic: str, period: int
) -> dict[str, Any]:
    listed = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    what = {"Namespace": namespace, "MetricName": metric, "Dimensions": listed}
    return {"Id": name, "MetricStat": {"Metric": what, "Period": period, "Stat": statistic}, "ReturnData": True}


def _alarm(raw: Mapping[str, Any]) -> DeploymentAlarm:
    return DeploymentAlarm(
        state=raw.get("StateValue", ""),
        reason=raw.get("StateReason") or "",
        description=raw.get("AlarmDescription") or "",
        notifies=bool(raw.get("AlarmActions")) and raw.get("ActionsEnabled", True),
        topics=tuple(action for action in raw.get("AlarmActions") or () if action.split(":")[2:3] == ["sns"]),
    )


class Topics:
    """Topics of any Region, each read there."""

    _clients: AwsClients

    def topic_key(self, topic: str) -> TopicKey | None:
        """Call GetTopicAttributes, and of a key of the customer's GetKeyPolicy. None: the topic does not exist."""
        region = topic.split(":")[3]
        try:
            with aws_call("sns:GetTopicAttributes", topic):
                found = self._clients.get("sns", region=region).get_topic_attributes(TopicArn=topic)["Attributes"]
        except ObjectGoneError:
            return None
        key = found.get("KmsMasterKeyId") or ""
        if not key:
            return TopicKey()
        kms = self._clients.get("kms", region=region)
        with aws_call("kms:DescribeKey", key):
            described = kms.describe_key(KeyId=key)["KeyMetadata"]
        if described.get("KeyManager") == "AWS":
            return TopicKey(id=key, aws_managed=True)
        with aws_call("kms:GetKeyPolicy", key):
            policy = kms.get_key_policy(KeyId=described["Arn"], PolicyName=KEY_POLICY)["Policy"]
        return TopicKey(id=key, policy=json.loads(policy))

    def raw_subscriptions(self, topic: str, queue: str) -> Sequence[str]:
        """Call ListSubscriptionsByTopic, and GetSubscriptionAttributes for those of the queue."""
        client = self._clients.get("sns", region=topic.split(":")[3])
        with aws_call("sns:ListSubscriptionsByTopic", topic):
            listed = [
                raw["SubscriptionArn"]
                for page in pages(client, "list_subscriptions_by_topic", TopicArn=topic)
                for raw in page.get("Subscriptions", ())
                if raw.get("Endpoint") == queue and raw.get("SubscriptionArn", "").startswith("arn:")
            ]
        found = []
        for arn in listed:
            with aws_call("sns:GetSubscriptionAttributes", arn):
                attributes = client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
            if attributes.get("RawMessageDelivery") == "true":
                found.append(arn)
        return found


class AwsDeployment(Signs, Topics):
    """Deployment of the caller's account. Each method is one call, or one with its pages. `rbac` opens a cluster."""

    def __init__(self, clients: AwsClients, rbac: Callable[[str], Rbac]) -> None:
        super().__init__(clients)
        self._rbac = rbac

    def identity(self) -> CallerIdentity:
        """Return the identity from GetCallerIdentity, called once."""
        return self._identity

    def concurrency(self) -> Concurrency:
        """Read the limits with GetAccountSettings."""
        with aws_call("lambda:GetAccountSettings", "the account"):
            limits = self._clients.get("lambda").get_account_settings()["AccountLimit"]
        return Concurrency(
            limit=int(limits["ConcurrentExecutions"]), unreserved=int(limits["UnreservedConcurrentExecutions"])
        )

    def network(self, vpc: str, subnets: Iterable[str]) -> ClusterNetwork:
        """Call DescribeVpcEndpoints, DescribeRouteTables: a subnet without its own table has the VPC's main one."""
        mine = {"Name": "vpc-id", "Values": [vpc]}
        client = self._clients.get("ec2")
        with aws_call("ec2:DescribeVpcEndpoints", vpc):
            listed = [
                raw for page in pages(client, "describe_vpc_endpoints", Filters=[mine]) for raw in page["VpcEndpoints"]
            ]
        with aws_call("ec2:DescribeRouteTables", vpc):
            tables = [
                raw for page in pages(client, "describe_route_tables", Filters=[mine]) for raw in page["RouteTables"]
            ]
        there = [raw["ServiceName"] for raw in listed if str(raw.get("State")).lower() == "available"]
        return ClusterNetwork(
            vpc=vpc,
            endpoints=frozenset(name.split(".", 3)[-1] for name in there),
            routed=all(_leads_out(_table_of(subnet, tables)) for subnet in subnets),
        )

    def function(self, name: str) -> Function | None:
        """Call GetFunction: only it returns the reserved concurrency beside the configuration."""
        answer = self._there(
            "lambda:GetFunction", name, lambda: self._clients.get("lambda").get_function(FunctionName=name)
        )
        if answer is None:
            return None
        raw = answer["Configuration"]
        return Function(
            state=raw.get("State") or "Active",
            update=raw.get("LastUpdateStatus") or "Successful",
            modified=as_instant(raw["LastModified"]) if raw.get("LastModified") else None,
            concurrency=(answer.get("Concurrency") or {}).get("ReservedConcurrentExecutions"),
            environment=(raw.get("Environment") or {}).get("Variables") or {},
            vpc=(raw.get("VpcConfig") or {}).get("VpcId") or "",
            subnets=tuple((raw.get("VpcConfig") or {}).get("SubnetIds") or ()),
        )

    def accounts(self, function: str) -> Mapping[str, str]:
        """Call Invoke: only the function itself can assume its roles. It changes nothing."""
        with aws_call("lambda:InvokeFunction", function):
            answer = self._clients.get("lambda", retries=False, read_seconds=CHECK_SECONDS).invoke(
                FunctionName=function, Payload=json.dumps(CHECK)
            )
        document = json.loads(answer["Payload"].read())
        if answer.get("FunctionError") or "accounts" not in document:
            raise TerminalError(f"{function} does not answer: {document.get('errorMessage', 'it knows no such check')}")
        return {str(cluster): str(error) for cluster, error in document["accounts"].items()}

    def machine(self, name: str) -> str | None:
        """Read the status with DescribeStateMachine."""
        answer = self._there(
            "states:DescribeStateMachine",
            name,
            lambda: self._clients.get("stepfunctions").describe_state_machine(stateMachineArn=self._machine(name)),
        )
        return None if answer is None else str(answer.get("status") or "ACTIVE")

    def failures(self, machine: str, since: datetime) -> Sequence[FailedExecution]:
        """Read failed executions: ListExecutions for each status, the thousand that were started last;
        DescribeExecution for the newest.
        """
        found: list[FailedExecution] = []
        for status in BADLY:
            with aws_call("states:ListExecutions", machine):
                answer = self._clients.get("stepfunctions").list_executions(
                    stateMachineArn=self._machine(machine), statusFilter=status, maxResults=1000
                )
            for raw in answer.get("executions", ()):
                at = as_instant(raw["stopDate"]) if raw.get("stopDate") else None
                if at is not None and at >= since:
                    found.append(FailedExecution(name=raw["name"], status=status, at=at))
        found.sort(key=lambda ended: ended.at, reverse=True)
        return [self._explained(machine, one) if place == 0 else one for place, one in enumerate(found)]

    def sources(self, function: str) -> Sequence[EventSource]:
        """Read the sources with ListEventSourceMappings."""
        with aws_call("lambda:ListEventSourceMappings", function):
            listed = pages(self._clients.get("lambda"), "list_event_source_mappings", FunctionName=function)
            return [_event_source(raw) for page in listed for raw in page.get("EventSourceMappings", ())]

    def queue(self, name: str) -> Queue | None:
        """Read the queue with GetQueueUrl and GetQueueAttributes."""
        client = self._clients.get("sqs")
        found = self._there("sqs:GetQueueUrl", name, lambda: client.get_queue_url(QueueName=name))
        if found is None:
            return None
        url = found["QueueUrl"]
        with aws_call("sqs:GetQueueAttributes", name):
            attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]).get("Attributes", {})
        redrive = json.loads(attributes.get("RedrivePolicy") or "{}")
        return Queue(
            arn=attributes.get("QueueArn", ""),
            url=url,
            messages=int(attributes.get("ApproximateNumberOfMessages") or 0),
            dead_letters=str(redrive.get("deadLetterTargetArn") or ""),
            policy=json.loads(attributes.get("Policy") or "{}"),
        )

    def table(self, name: str) -> RecordTable | None:
        """Read the table with DescribeTable."""
        answer = self._there(
            "dynamodb:DescribeTable", name, lambda: self._clients.get("dynamodb").describe_table(TableName=name)
        )
        if answer is None:
            return None
        raw = answer["Table"]
        return RecordTable(
            status=raw.get("TableStatus", ""),
            stream=bool((raw.get("StreamSpecification") or {}).get("StreamEnabled")),
            indexes={
                one["IndexName"]: one.get("IndexStatus") or "ACTIVE" for one in raw.get("GlobalSecondaryIndexes") or ()
            },
        )

    def groups(self) -> Sequence[Group]:
        """Read the groups with DescribeAutoScalingGroups of the whole account and Region, a hundred with each call."""
        with aws_call("autoscaling:DescribeAutoScalingGroups", "all groups"):
            listed = pages(
                self._clients.get("autoscaling"), "describe_auto_scaling_groups", PaginationConfig={"PageSize": 100}
            )
            return [Group.from_json(raw) for page in listed for raw in page["AutoScalingGroups"]]

    def cluster(self, name: str) -> EksCluster | None:
        """Read the cluster with DescribeCluster."""
        answer = self._there("eks:DescribeCluster", name, lambda: self._clients.get("eks").describe_cluster(name=name))
        if answer is None:
            return None
        raw = answer["cluster"]
        return EksCluster(
            status=raw.get("status", ""),
            version=raw.get("version", ""),
            public=bool((raw.get("resourcesVpcConfig") or {}).get("endpointPublicAccess", True)),
            authentication=(raw.get("accessConfig") or {}).get("authenticationMode") or "CONFIG_MAP",
        )

    def entry(self, cluster: str, role: str) -> Sequence[str] | None:
        """Call DescribeAccessEntry; None also where the cluster's authentication mode has no entries."""

        def ask() -> Mapping[str, Any]:
            try:
                return dict(self._clients.get("eks").describe_access_entry(clusterName=cluster, principalArn=role))
            except ClientError as error:
                if code_of(error) != "InvalidRequestException":
                    raise
                return {}

        answer = self._there("eks:DescribeAccessEntry", f"{cluster} {role}", ask)
        return tuple(answer["accessEntry"].get("kubernetesGroups") or ()) if answer else None

    def rbac(self, cluster: str) -> Rbac:
        """Return the cluster's RBAC reader; nothing is called yet."""
        return self._rbac(cluster)

    def tags(self, ids: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """Call DescribeTags by filter: an unknown resource is no error."""
        found: dict[str, dict[str, str]] = {}
        for chunk in chunks(dict.fromkeys(ids), FILTER_VALUES):
            with aws_call("ec2:DescribeTags", chunk[0]):
                filters = [{"Name": "resource-id", "Values": chunk}]
                for page in pages(self._clients.get("ec2"), "describe_tags", Filters=filters):
                    for raw in page["Tags"]:
                        found.setdefault(raw["ResourceId"], {})[raw["Key"]] = raw["Value"]
        return found

    @cached_property
    def _identity(self) -> CallerIdentity:
        region = self._clients.region
        with aws_call("sts:GetCallerIdentity", "the caller's credentials"):
            raw = self._clients.get("sts").get_caller_identity()
        return CallerIdentity(account=raw["Account"], region=region, arn=raw["Arn"], partition=raw["Arn"].split(":")[1])

    def _machine(self, name: str) -> str:
        who = self._identity
        return f"arn:{who.partition}:states:{who.region}:{who.account}:stateMachine:{name}"

    def _explained(self, machine: str, ended: FailedExecution) -> FailedExecution:
        arn = f"{self._machine(machine).replace(':stateMachine:', ':execution:', 1)}:{ended.name}"
        raw = self._there(
            "states:DescribeExecution",
            ended.name,
            lambda: self._clients.get("stepfunctions").describe_execution(executionArn=arn),
        )
        detail: Mapping[str, Any] = raw or {}
        return FailedExecution(
            name=ended.name,
            status=ended.status,
            at=ended.at,
            error=str(detail.get("error") or ""),
            cause=str(detail.get("cause") or ""),
        )

    def _there(self, call: str, on: str, ask: Callable[[], T]) -> T | None:
        """Return the answer, or None when AWS does not find the object."""
        try:
            with aws_call(call, on):
                return ask()
        except ObjectGoneError:
            return None


def _event_source(raw: Mapping[str, Any]) -> EventSource:
    return EventSource(
        id=raw.get("UUID", ""),
        source=raw.get("EventSourceArn", ""),
        state=raw.get("State", ""),
        result=raw.get("LastProcessingResult") or "",
    )


def _table_of(subnet: str, tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    main: Mapping[str, Any] = {}
    for table in tables:
        for association in table.get("Associations") or ():
            if association.get("SubnetId") == subnet:
                return table
            main = table if association.get("Main") else main
    return main


def _leads_out(table: Mapping[str, Any]) -> bool:
    """Return whether the table has a route out by a NAT gateway, a transit gateway or an appliance; an internet gateway
    serves public addresses only.
    """
    return any(
        route.get("DestinationCidrBlock") == TO_ANYWHERE
        and route.get("State") != "blackhole"
        and not str(route.get("GatewayId") or "").startswith("igw-")
        for route in table.get("Routes") or ()
    )
