"""The AWS ports of a function, as `wiring` builds them, on the local AWS."""

import json
import time
import uuid

import pytest

from leeward.adapters import wiring
from leeward.model import well_known
from leeward.model.group import TERMINATING, HookResult, LifecycleHook
from leeward.model.termination import Outcome
from local.aws.process import running
from tests.adapters.test_settings import BLUE, GOOD
from tests.contract.test_claims import FULL, LATER, NOW, a_subject

pytestmark = pytest.mark.local

CLUSTER = f"blue-{uuid.uuid4().hex[:6]}"
PAUSE = {"StartAt": "Pause", "States": {"Pause": {"Type": "Wait", "Seconds": 600, "End": True}}}


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with running(tmp_path_factory.mktemp("aws")) as local:
        yield local


@pytest.fixture(scope="module")
def ports(aws):
    """A function's ports; only the resources that they name are made here."""
    machine = aws.client("stepfunctions").create_state_machine(
        name="leeward-node-termination",
        definition=json.dumps(PAUSE),
        roleArn="arn:aws:iam::000000000000:role/leeward-node-termination",
    )["stateMachineArn"]
    dead_letters = aws.client("sqs").create_queue(QueueName="leeward-interruption-dead-letters")["QueueUrl"]
    key = [{"AttributeName": "pk", "KeyType": "HASH"}]
    index = {
        "IndexName": "open",
        "KeySchema": [{"AttributeName": "open", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    aws.client("dynamodb").create_table(
        TableName="leeward",
        KeySchema=key,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "open")],
        GlobalSecondaryIndexes=[index],
        BillingMode="PAY_PER_REQUEST",
    )
    environment = {
        **GOOD,
        "CLUSTERS": json.dumps([{**BLUE, "name": CLUSTER, "region": "us-east-1"}]),
        "STATE_MACHINE_ARN": machine,
        "DEAD_LETTER_QUEUE_URL": dead_letters,
        "AWS_ENDPOINT_URL": aws.endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        wiring.lambda_ports.cache_clear()
        wiring.lambda_clients.cache_clear()
        yield wiring.lambda_ports()
        wiring.lambda_ports.cache_clear()
        wiring.lambda_clients.cache_clear()


@pytest.fixture
def group(aws):
    """A group of our cluster with two instances in service."""
    ec2, autoscaling, name = aws.client("ec2"), aws.client("autoscaling"), f"web-{uuid.uuid4().hex[:6]}"
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    data = {"ImageId": "ami-12c6146b", "InstanceType": "m5.large"}
    ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=3,
        DesiredCapacity=2,
        VPCZoneIdentifier=subnet,
        LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
        Tags=[{"Key": well_known.CLUSTER_TAG_PREFIX + CLUSTER, "Value": "owned", "PropagateAtLaunch": True}],
    )
    yield name
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)


def eventually(probe):
    deadline = time.monotonic() + 120
    while not (value := probe()):
        assert time.monotonic() < deadline, "never became true"
        time.sleep(0.05)
    return value


def in_service(ports, group, count):
    def probe():
        members = ports.groups.describe([group])[group].instances
        return [m.id for m in members if m.lifecycle == "InService"] if len(members) == count else None

    return eventually(lambda: (found := probe()) and len(found) == count and found)


def test_a_group_is_found_by_its_clusters_tag_and_by_name(ports, group):
    assert [found.name for found in ports.groups.of_clusters([CLUSTER])] == [group]
    assert ports.groups.of_clusters(["green"]) == ()
    assert set(ports.groups.describe([group, "no-such-group"])) == {group}


def test_instances_of_the_group_are_known_and_strangers_absent(ports, group):
    ids = in_service(ports, group, 2)
    found = ports.instances.describe([*ids, "i-0123456789abcdef0"])
    assert set(found) == set(ids)
    assert {instance.group for instance in found.values()} == {group}
    assert ports.groups.lifecycle_of(ids[0]) == (group, "InService")
    assert ports.groups.lifecycle_of("i-0123456789abcdef0") is None


def test_a_launch_is_one_instance_however_often_it_is_asked_for(ports, group):
    in_service(ports, group, 2)
    subnet = ports.groups.describe([group])[group].subnets[0]
    first = ports.groups.launch(group=group, subnet=subnet, token="token-1")
    assert first.launched
    assert ports.groups.launch(group=group, subnet=subnet, token="token-1") == first
    assert ports.groups.describe([group])[group].desired == 3
    refused = ports.groups.launch(group=group, subnet=subnet, token="token-2")
    assert not refused.launched
    assert "ValidationError" in refused.reason


def test_a_hook_holds_the_instance_until_it_is_answered_once(ports, group):
    ids = in_service(ports, group, 2)
    hook = LifecycleHook(
        name=well_known.TERMINATE_HOOK, group=group, transition=TERMINATING, metadata=well_known.HOOK_MARK
    )
    action = {"group": group, "hook": hook.name, "instance": ids[0]}
    for _ in range(2):
        ports.groups.put_hook(hook, default_result=HookResult.CONTINUE)
    assert [(h.name, h.metadata) for h in ports.groups.hooks(group)] == [(hook.name, hook.metadata)]
    assert not ports.groups.complete(**action, result=HookResult.CONTINUE)
    assert not ports.groups.heartbeat(**action)
    assert ports.groups.terminate(instance=ids[0], decrement=True)
    assert not ports.groups.terminate(instance=ids[0], decrement=True)
    assert ports.groups.describe([group])[group].desired == 1
    eventually(lambda: ports.groups.lifecycle_of(ids[0]) == (group, "Terminating:Wait"))
    assert ports.groups.heartbeat(**action)
    assert ports.groups.complete(**action, result=HookResult.CONTINUE)
    assert not ports.groups.complete(**action, result=HookResult.CONTINUE)


def test_a_group_or_hook_that_is_not_there_has_nothing_to_answer(ports):
    action = {"group": "no-such-group", "hook": "no-such-hook", "instance": "i-0123456789abcdef0"}
    assert not ports.groups.complete(**action, result=HookResult.CONTINUE)
    assert not ports.groups.terminate(instance=action["instance"], decrement=False)
    assert ports.groups.hooks("no-such-group") == ()


def test_an_execution_is_started_once_per_attempt(aws, ports):
    assert not ports.executions.running("i-0abc", 1)
    assert ports.executions.start("i-0abc", 1)
    assert ports.executions.start("i-0abc", 1)
    assert ports.executions.running("i-0abc", 1)
    machines = aws.client("stepfunctions")
    (machine,) = machines.list_state_machines()["stateMachines"]
    (execution,) = machines.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]
    assert execution["name"] == "i-0abc-1"
    assert ports.executions.all_running() == {"i-0abc-1"}
    machines.stop_execution(executionArn=execution["executionArn"])
    eventually(lambda: not ports.executions.running("i-0abc", 1))
    assert ports.executions.all_running() == frozenset()
    assert not ports.executions.start("i-0abc", 1)


def test_waking_a_pause_that_is_not_there_is_no_error(ports):
    ports.executions.wake("no-such-token")


def test_a_claim_lives_from_opening_to_closing(ports):
    record = ports.claims.claim(a_subject("i-0life"), FULL, NOW)
    assert ports.claims.claim(a_subject("i-0life"), FULL, LATER) == record
    assert list(ports.claims.open_instances()) == ["i-0life"]
    ports.claims.note_attempt("i-0life", 1, times={"tainted": NOW}, evicted=2)
    ports.claims.close("i-0life", version=1, outcome=Outcome.TERMINATED, now=LATER)
    ports.claims.close("i-0life", version=1, outcome=Outcome.TERMINATED, now=LATER)
    assert list(ports.claims.open_instances()) == []


def test_a_dead_letter_keeps_its_reason(aws, ports):
    ports.dead_letters.send('{"half": ', reason="no JSON", message_id="m-1")
    sqs = aws.client("sqs")
    url = sqs.get_queue_url(QueueName="leeward-interruption-dead-letters")["QueueUrl"]
    (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"], WaitTimeSeconds=2)["Messages"]
    assert message["Body"] == '{"half": '
    assert message["MessageAttributes"]["reason"]["StringValue"] == "no JSON"


def test_more_policies_than_fit_on_a_page_are_all_read_in_order(aws, ports):
    names = [f"policy-{number}" for number in range(13)]
    for number, name in enumerate(names):
        document = {
            "apiVersion": "leeward.dev/v1",
            "kind": "NodePolicy",
            "metadata": {"name": name},
            "spec": {"selector": {"groups": [f"{name}-*"]}},
        }
        aws.client("ssm").put_parameter(
            Name=f"/leeward/{CLUSTER}/policies/{number:02}-{name}", Value=json.dumps(document), Type="String"
        )
    assert [policy.name for policy in ports.clusters.policies(CLUSTER).policies] == names
