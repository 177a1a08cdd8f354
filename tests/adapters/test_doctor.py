"""What `leeward doctor` reads: AWS's answers and the cluster's, and what is simply not there."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import ANY

from leeward.adapters.doctor.deployment import AwsDeployment
from leeward.adapters.doctor.rbac import ClusterRbac
from leeward.doctor.facts import (
    Binding,
    CallerIdentity,
    ClusterNetwork,
    Counts,
    EksCluster,
    EventSource,
    MessageAge,
    TopicKey,
)
from leeward.errors import AccessDeniedError
from leeward.model.concurrency import Concurrency
from tests.adapters.scripted_server import Reply

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
ACCOUNT = "111122223333"
UUID = "4d0a5f2e-1c6b-4d0e-9a63-5b7a2c1f0e9d"
MACHINE = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:leeward-node-termination"


@pytest.fixture
def deployment(aws):
    return AwsDeployment(aws.clients, lambda cluster: cluster)


def who(aws):
    arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/ops/pat"
    aws.expect("sts", "get_caller_identity", {}, {"Account": ACCOUNT, "UserId": "U", "Arn": arn})
    return CallerIdentity(account=ACCOUNT, region="us-east-1", arn=arn)


def test_who_calls_is_asked_once(aws, deployment):
    expected = who(aws)
    assert deployment.identity() == expected
    assert deployment.identity() == expected


def test_a_function(aws, deployment):
    answer = {
        "Configuration": {
            "State": "Active",
            "LastUpdateStatus": "Successful",
            "LastModified": "2026-03-01T12:00:00.000+0000",
            "Environment": {"Variables": {"CLUSTERS": "[]"}},
        },
        "Concurrency": {"ReservedConcurrentExecutions": 0},
    }
    aws.expect("lambda", "get_function", {"FunctionName": "leeward-drain"}, answer)
    found = deployment.function("leeward-drain")
    assert (found.state, found.concurrency, found.environment) == ("Active", 0, {"CLUSTERS": "[]"})
    assert found.modified == datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("service", "operation", "code", "method", "arguments"),
    [
        ("lambda", "get_function", "ResourceNotFoundException", "function", ["leeward-drain"]),
        ("dynamodb", "describe_table", "ResourceNotFoundException", "table", ["leeward"]),
        ("sqs", "get_queue_url", "AWS.SimpleQueueService.NonExistentQueue", "queue", ["leeward-interruption"]),
        ("sqs", "get_queue_url", "QueueDoesNotExist", "queue", ["leeward-interruption"]),
        ("eks", "describe_cluster", "ResourceNotFoundException", "cluster", ["blue"]),
        ("eks", "describe_access_entry", "ResourceNotFoundException", "entry", ["blue", "arn:aws:iam::1:role/r"]),
        # the cluster's authentication mode is CONFIG_MAP
        ("eks", "describe_access_entry", "InvalidRequestException", "entry", ["blue", "arn:aws:iam::1:role/r"]),
    ],
)
def test_what_is_not_there_is_none(aws, deployment, service, operation, code, method, arguments):
    aws.refuse(service, operation, code)
    assert getattr(deployment, method)(*arguments) is None


def test_a_state_machine_that_is_not_there(aws, deployment):
    who(aws)
    aws.refuse("stepfunctions", "describe_state_machine", "StateMachineDoesNotExist")
    assert deployment.machine("leeward-node-termination") is None


def test_what_may_not_be_read_names_the_call(aws, deployment):
    aws.refuse("dynamodb", "describe_table", "AccessDeniedException", "not authorized")
    with pytest.raises(AccessDeniedError, match="dynamodb:DescribeTable on leeward"):
        deployment.table("leeward")


def execution(name, at):
    arn = f"{MACHINE.replace('stateMachine', 'execution')}:{name}"
    raw = {"executionArn": arn, "stateMachineArn": MACHINE, "name": name, "status": "FAILED", "startDate": at}
    return raw | {"stopDate": at}


def test_failures_of_the_last_day_newest_first_and_only_that_one_is_explained(aws, deployment):
    who(aws)
    hour = timedelta(hours=1)
    for status, listed in (
        ("FAILED", [execution("i-1-1", NOW - 3 * hour), execution("i-0-1", NOW - 30 * hour)]),
        ("TIMED_OUT", [execution("i-2-1", NOW - hour)]),
    ):
        asked = {"stateMachineArn": MACHINE, "statusFilter": status, "maxResults": 1000}
        aws.expect("stepfunctions", "list_executions", asked, {"executions": listed})
    newest = {**execution("i-2-1", NOW - hour), "status": "TIMED_OUT", "error": "States.Timeout", "cause": "late"}
    aws.expect("stepfunctions", "describe_execution", {"executionArn": newest["executionArn"]}, newest)
    found = deployment.failures("leeward-node-termination", NOW - 24 * hour)
    assert [(one.name, one.status, one.error) for one in found] == [
        ("i-2-1", "TIMED_OUT", "States.Timeout"),
        ("i-1-1", "FAILED", ""),
    ]


def test_a_queue(aws, deployment):
    url = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/leeward-interruption"
    aws.expect("sqs", "get_queue_url", {"QueueName": "leeward-interruption"}, {"QueueUrl": url})
    reported = {
        "QueueArn": "arn:q",
        "ApproximateNumberOfMessages": "3",
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": "arn:dead", "maxReceiveCount": 10}),
        "Policy": json.dumps({"Statement": []}),
    }
    asked = {"QueueUrl": url, "AttributeNames": ["All"]}
    aws.expect("sqs", "get_queue_attributes", asked, {"Attributes": reported})
    found = deployment.queue("leeward-interruption")
    assert (found.messages, found.dead_letters, found.policy) == (3, "arn:dead", {"Statement": []})


def test_event_sources(aws, deployment):
    raw = {"UUID": UUID, "EventSourceArn": "arn:q", "State": "Enabled", "LastProcessingResult": "OK"}
    asked = {"FunctionName": "leeward-interruption"}
    aws.expect("lambda", "list_event_source_mappings", asked, {"EventSourceMappings": [raw]})
    assert deployment.sources("leeward-interruption") == [
        EventSource(id=UUID, source="arn:q", state="Enabled", result="OK")
    ]


def test_rules_of_several_pages(aws, deployment):
    first = {"Rules": [{"Name": "leeward-a", "State": "ENABLED"}], "NextToken": "more"}
    aws.expect("events", "list_rules", {"NamePrefix": "leeward-"}, first)
    second = {"Rules": [{"Name": "leeward-b", "State": "DISABLED"}]}
    aws.expect("events", "list_rules", {"NamePrefix": "leeward-", "NextToken": "more"}, second)
    webhooks = {"NamePrefix": "leeward-", "EventBusName": "leeward-notifications"}
    aws.expect(
        "events", "list_rules", webhooks, {"Rules": [{"Name": "leeward-blue-notifications", "State": "ENABLED"}]}
    )
    assert deployment.rules("leeward-") == {
        "leeward-a": True,
        "leeward-b": False,
        "leeward-blue-notifications": True,
    }


def test_the_bus_of_the_webhooks_need_not_be_there(aws, deployment):
    aws.expect("events", "list_rules", {"NamePrefix": "leeward-"}, {"Rules": []})
    aws.refuse("events", "list_rules", "ResourceNotFoundException")
    assert deployment.rules("leeward-") == {}


def test_an_alarm_whose_actions_are_switched_off_notifies_no_topic(aws, deployment):
    listed = [
        {"AlarmName": "leeward-a", "StateValue": "OK", "AlarmActions": ["arn:topic"], "ActionsEnabled": True},
        {"AlarmName": "leeward-b", "StateValue": "ALARM", "AlarmActions": ["arn:topic"], "ActionsEnabled": False},
        {"AlarmName": "leeward-c", "StateValue": "OK", "AlarmActions": []},
    ]
    aws.expect("cloudwatch", "describe_alarms", {"AlarmNamePrefix": "leeward-"}, {"MetricAlarms": listed})
    found = deployment.alarms("leeward-")
    assert {name: (alarm.state, alarm.notifies) for name, alarm in found.items()} == {
        "leeward-a": ("OK", True),
        "leeward-b": ("ALARM", False),
        "leeward-c": ("OK", False),
    }


TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:operators"
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_an_alarm_names_the_topics_that_it_notifies(aws, deployment):
    actions = [TOPIC, f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:x"]
    listed = [{"AlarmName": "leeward-a", "StateValue": "OK", "AlarmActions": actions}]
    aws.expect("cloudwatch", "describe_alarms", {"AlarmNamePrefix": "leeward-"}, {"MetricAlarms": listed})
    assert deployment.alarms("leeward-")["leeward-a"].topics == (TOPIC,)


class TestTopics:
    def expect(self, aws, **attributes):
        aws.expect("sns", "get_topic_attributes", {"TopicArn": TOPIC}, {"Attributes": attributes}, region="us-east-1")

    def describe(self, aws, named, manager):
        metadata = {"KeyId": KEY.rpartition("/")[2], "Arn": KEY, "KeyManager": manager}
        aws.expect("kms", "describe_key", {"KeyId": named}, {"KeyMetadata": metadata}, region="us-east-1")

    def test_one_without_a_key(self, aws, deployment):
        self.expect(aws)
        assert deployment.topic_key(TOPIC) == TopicKey()

    def test_one_with_the_key_of_aws_however_it_is_named(self, aws, deployment):
        self.expect(aws, KmsMasterKeyId="alias/aws/sns")
        self.describe(aws, "alias/aws/sns", "AWS")
        assert deployment.topic_key(TOPIC) == TopicKey(id="alias/aws/sns", aws_managed=True)

    def test_one_with_a_key_of_the_customer_has_its_policy(self, aws, deployment):
        self.expect(aws, KmsMasterKeyId="alias/operators")
        self.describe(aws, "alias/operators", "CUSTOMER")
        asked = {"KeyId": KEY, "PolicyName": "default"}
        aws.expect("kms", "get_key_policy", asked, {"Policy": '{"Statement": []}'}, region="us-east-1")
        assert deployment.topic_key(TOPIC) == TopicKey(id="alias/operators", policy={"Statement": []})

    def test_one_that_is_gone(self, aws, deployment):
        aws.refuse("sns", "get_topic_attributes", "NotFound", status=404, region="us-east-1")
        assert deployment.topic_key(TOPIC) is None

    def test_one_that_the_caller_may_not_read(self, aws, deployment):
        aws.refuse("sns", "get_topic_attributes", "AuthorizationError", status=403, region="us-east-1")
        with pytest.raises(AccessDeniedError):
            deployment.topic_key(TOPIC)

    def test_subscriptions_of_the_queue_with_raw_delivery(self, aws, deployment):
        queue = f"arn:aws:sqs:us-east-1:{ACCOUNT}:leeward-interruption"
        arns = [f"{TOPIC}:{number}" for number in (1, 2, 3)]
        others = [
            {"SubscriptionArn": "PendingConfirmation", "Endpoint": queue},
            {"SubscriptionArn": arns[2], "Endpoint": "another"},
        ]
        listed = [*({"SubscriptionArn": arn, "Endpoint": queue} for arn in arns[:2]), *others]
        aws.expect(
            "sns", "list_subscriptions_by_topic", {"TopicArn": TOPIC}, {"Subscriptions": listed}, region="us-east-1"
        )
        for arn, raw in zip(arns[:2], ("false", "true"), strict=True):
            attributes = {"Attributes": {"RawMessageDelivery": raw}}
            aws.expect("sns", "get_subscription_attributes", {"SubscriptionArn": arn}, attributes, region="us-east-1")
        assert deployment.raw_subscriptions(TOPIC, queue) == [arns[1]]


def test_the_counts_of_all_functions_are_one_call(aws, deployment):
    results = [{"Id": "errors0", "Values": [2.0, 1.0]}, {"Id": "throttles1", "Values": [4.0]}]
    asked = {
        "MetricDataQueries": ANY,
        "StartTime": NOW - timedelta(hours=1),
        "EndTime": NOW,
        "ScanBy": "TimestampDescending",
    }
    aws.expect("cloudwatch", "get_metric_data", asked, {"MetricDataResults": results})
    found = deployment.counts(["leeward-a", "leeward-b"], NOW - timedelta(hours=1), NOW)
    assert found == {"leeward-a": Counts(errors=3), "leeward-b": Counts(throttles=4)}


def a_query(name, namespace, metric, **dimensions):
    listed = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    what = {"Namespace": namespace, "MetricName": metric, "Dimensions": listed}
    return {"Id": name, "MetricStat": {"Metric": what, "Period": 60, "Stat": "Maximum"}, "ReturnData": True}


@pytest.mark.parametrize(("values", "seconds"), [([70.0, 10.0], 70.0), ([], None)])
def test_the_ages_are_the_latest_that_were_measured(aws, deployment, values, seconds):
    queries = [
        a_query("unread", "AWS/SQS", "ApproximateAgeOfOldestMessage", QueueName="leeward-interruption"),
        a_query("failing", "Leeward", "OldestInterruptionRetried", service="interruption"),
    ]
    asked = {
        "MetricDataQueries": queries,
        "StartTime": NOW - timedelta(minutes=5),
        "EndTime": NOW,
        "ScanBy": "TimestampDescending",
    }
    results = [{"Id": "unread", "Values": []}, {"Id": "failing", "Values": values}]
    aws.expect("cloudwatch", "get_metric_data", asked, {"MetricDataResults": results})
    assert deployment.message_age("leeward-interruption", NOW) == MessageAge(failing=seconds)


def test_a_cluster(aws, deployment):
    raw = {
        "status": "ACTIVE",
        "version": "1.33",
        "resourcesVpcConfig": {"endpointPublicAccess": False},
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
    }
    aws.expect("eks", "describe_cluster", {"name": "blue"}, {"cluster": raw})
    assert deployment.cluster("blue") == EksCluster(
        status="ACTIVE", version="1.33", public=False, authentication="API_AND_CONFIG_MAP"
    )


def test_the_tags_of_launch_templates(aws, deployment):
    asked = {"Filters": [{"Name": "resource-id", "Values": ["lt-1", "lt-2"]}]}
    tag = {"ResourceId": "lt-2", "ResourceType": "launch-template", "Key": "team", "Value": "web"}
    aws.expect("ec2", "describe_tags", asked, {"Tags": [tag, {**tag, "Key": "stage", "Value": "test"}]})
    assert deployment.tags(["lt-1", "lt-2", "lt-1"]) == {"lt-2": {"team": "web", "stage": "test"}}
    assert deployment.tags([]) == {}


def test_the_groups_of_an_access_entry(aws, deployment):
    asked = {"clusterName": "blue", "principalArn": "arn:aws:iam::111122223333:role/r"}
    aws.expect("eks", "describe_access_entry", asked, {"accessEntry": {"kubernetesGroups": ["leeward:act"]}})
    assert deployment.entry("blue", asked["principalArn"]) == ("leeward:act",)


ROLE = {
    "rules": [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["one"]},
    ]
}


def test_the_rules_of_a_role_are_spelled_out_and_those_for_single_objects_do_not_count(connect):
    server = connect(Reply(body=ROLE))
    found = ClusterRbac(server.client).cluster_role("leeward-act")
    assert found.rules == {("", "nodes", "get"), ("", "pods", "get")}
    assert server.seen[0].path == "/apis/rbac.authorization.k8s.io/v1/clusterroles/leeward-act"


def test_a_binding_and_what_is_not_there(connect):
    subjects = [{"kind": "Group", "name": "leeward:act"}, {"kind": "User", "name": "pat"}]
    bound = {"roleRef": {"name": "leeward-act"}, "subjects": subjects}
    missing = Reply(status=404, body={"message": "not found"})
    rbac = ClusterRbac(connect(Reply(body=bound), missing, missing).client)
    assert rbac.binding("leeward-act") == Binding(role="leeward-act", groups=("leeward:act",))
    assert rbac.cluster_role("leeward-read") is None
    assert rbac.aws_auth() is None


def test_the_config_map_and_the_version(connect):
    rbac = ClusterRbac(connect(Reply(body={"data": {"mapRoles": "- x"}}), Reply(body={"gitVersion": "v1.33.1"})).client)
    assert rbac.aws_auth() == "- x"
    assert rbac.version() == "v1.33.1"


def test_concurrent_executions_of_the_account(aws, deployment):
    limits = {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
    aws.expect("lambda", "get_account_settings", {}, {"AccountLimit": limits})
    assert deployment.concurrency() == Concurrency(limit=10, unreserved=10)


@pytest.mark.parametrize(
    ("route", "routed"),
    [
        ({"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"}, True),
        ({"DestinationCidrBlock": "0.0.0.0/0", "TransitGatewayId": "tgw-1", "State": "active"}, True),
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"}, False),
        ({"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "blackhole"}, False),
        ({"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"}, False),
    ],
)
@pytest.mark.parametrize("association", [{"SubnetId": "subnet-a"}, {"Main": True}])
def test_the_ways_out_of_a_vpc(aws, deployment, route, routed, association):
    mine = {"Filters": [{"Name": "vpc-id", "Values": ["vpc-1"]}]}
    listed = [
        {"ServiceName": "com.amazonaws.us-east-1.sts", "State": "available"},
        {"ServiceName": "com.amazonaws.us-east-1.pricing.api", "State": "available"},
        {"ServiceName": "com.amazonaws.us-east-1.ec2", "State": "pending"},
    ]
    aws.expect("ec2", "describe_vpc_endpoints", mine, {"VpcEndpoints": listed})
    aws.expect(
        "ec2", "describe_route_tables", mine, {"RouteTables": [{"Associations": [association], "Routes": [route]}]}
    )
    found = deployment.network("vpc-1", ["subnet-a"])
    assert found == ClusterNetwork(vpc="vpc-1", endpoints=frozenset({"sts", "pricing.api"}), routed=routed)
