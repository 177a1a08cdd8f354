"""What stock moto and ministack still get wrong. A failure here is good news: the patch of that name can go."""

import io
import json
import os
import time
import urllib.request
import zipfile

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from local import lifeline
from local.ports import reserved_port

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LOOKS = 1200  # every 0.05 s or more: only how long a test that fails takes


def client(service, **more):
    return boto3.client(
        service,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"max_attempts": 0}),
        **more,
    )


@pytest.fixture
def moto():
    with mock_aws():
        ec2, asg = client("ec2"), client("autoscaling")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        for kind in ("m5.large", "m5.xlarge"):
            data = {"ImageId": "ami-12c6146b", "InstanceType": kind}
            if kind == "m5.large":
                ec2.create_launch_template(LaunchTemplateName="web", LaunchTemplateData=data)
            else:
                ec2.create_launch_template_version(LaunchTemplateName="web", LaunchTemplateData=data)
        spec = {"LaunchTemplateName": "web", "Version": "$Latest"}
        asg.create_auto_scaling_group(
            AutoScalingGroupName="web",
            MinSize=0,
            MaxSize=3,
            DesiredCapacity=1,
            VPCZoneIdentifier=subnet,
            MixedInstancesPolicy={"LaunchTemplate": {"LaunchTemplateSpecification": spec}},
        )
        yield asg, ec2, subnet


def group_of(asg):
    return asg.describe_auto_scaling_groups()["AutoScalingGroups"][0]


def test_moto_has_no_lifecycle_actions_and_no_launch_instances(moto):
    asg, _, subnet = moto
    with pytest.raises(NotImplementedError, match="complete_lifecycle_action"):
        asg.complete_lifecycle_action(
            AutoScalingGroupName="web", LifecycleHookName="h", InstanceId="i-1", LifecycleActionResult="CONTINUE"
        )
    with pytest.raises(NotImplementedError, match="launch_instances"):
        asg.launch_instances(AutoScalingGroupName="web", RequestedCapacity=1, ClientToken="t", SubnetIds=[subnet])


def test_moto_hooks_hold_nothing_and_the_address_is_not_returned(moto):
    asg, ec2, subnet = moto
    asg.put_lifecycle_hook(AutoScalingGroupName="web", LifecycleHookName="h", LifecycleTransition=TERMINATING)
    instance = group_of(asg)["Instances"][0]["InstanceId"]
    asg.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=True)
    assert group_of(asg)["Instances"] == []
    assert ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"] == 250


def test_moto_shows_the_default_template_version_and_forgets_the_policy_on_update(moto):
    asg, _, _ = moto
    assert group_of(asg)["Instances"][0]["LaunchTemplate"]["Version"] == "1"
    asg.update_auto_scaling_group(AutoScalingGroupName="web", MaxSize=4)
    assert "MixedInstancesPolicy" not in group_of(asg)


def test_moto_fails_on_an_unknown_group_with_an_internal_error(moto):
    with pytest.raises(KeyError):
        moto[0].set_desired_capacity(AutoScalingGroupName="none", DesiredCapacity=1)


def test_moto_node_groups_have_no_group(moto):
    asg, _, subnet = moto
    eks, role = client("eks"), "arn:aws:iam::123456789012:role/r"
    eks.create_cluster(name="c", roleArn=role, resourcesVpcConfig={"subnetIds": []})
    made = eks.create_nodegroup(clusterName="c", nodegroupName="n", nodeRole=role, subnets=[subnet])["nodegroup"]
    named = [item["name"] for item in made["resources"]["autoScalingGroups"]]
    assert asg.describe_auto_scaling_groups(AutoScalingGroupNames=named)["AutoScalingGroups"] == []


@pytest.fixture(scope="module")
def ministack(tmp_path_factory):
    log = tmp_path_factory.mktemp("ministack") / "log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        "TMPDIR": str(log.parent),
    }
    with reserved_port() as port:
        process = lifeline.start("ministack", log=log, environment={**environment, "GATEWAY_PORT": str(port)})
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(LOOKS):
            try:
                urllib.request.urlopen(f"{endpoint}/_ministack/health").close()
                break
            except OSError:
                time.sleep(0.05)
    try:
        yield lambda service: client(service, endpoint_url=endpoint)
    finally:
        process.terminate()
        lifeline.release(process, 10)


def start(sfn, machine_name, definition, **more):
    machine = sfn.create_state_machine(
        name=machine_name, definition=json.dumps(definition), roleArn="arn:aws:iam::000000000000:role/r"
    )["stateMachineArn"]
    return machine, sfn.start_execution(stateMachineArn=machine, **more)["executionArn"]


def test_ministack_ignores_the_time_out_of_a_state_machine_and_refuses_the_same_start(ministack):
    sfn = ministack("stepfunctions")
    wait = {"StartAt": "W", "TimeoutSeconds": 1, "States": {"W": {"Type": "Wait", "Seconds": 15, "End": True}}}
    machine, execution = start(sfn, "late", wait, name="one", input="{}")
    with pytest.raises(sfn.exceptions.ExecutionAlreadyExists):
        sfn.start_execution(stateMachineArn=machine, name="one", input="{}")
    time.sleep(1.6)
    assert sfn.describe_execution(executionArn=execution)["status"] == "RUNNING"


def test_ministack_state_machines_cannot_call_auto_scaling(ministack):
    sfn = ministack("stepfunctions")
    task = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:autoscaling:describeAutoScalingGroups", "End": True}
    _, execution = start(sfn, "sdk", {"StartAt": "T", "States": {"T": task}})
    for _ in range(LOOKS):
        found = sfn.describe_execution(executionArn=execution)
        if found["status"] != "RUNNING":
            break
        time.sleep(0.05)
    assert "not supported in MiniStack" in found["cause"]


def test_ministack_hides_the_class_of_a_functions_exception(ministack):
    functions, packed = ministack("lambda"), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    raise ValueError('x')\n")
    functions.create_function(
        FunctionName="f",
        Runtime="python3.13",
        Handler="index.handler",
        Role="arn:aws:iam::000000000000:role/r",
        Code={"ZipFile": packed.getvalue()},
    )
    functions.get_waiter("function_active_v2").wait(FunctionName="f", WaiterConfig={"Delay": 0.1, "MaxAttempts": LOOKS})
    body = json.loads(functions.invoke(FunctionName="f")["Payload"].read())
    assert body["errorType"] == "Runtime.HandlerError"


def test_ministack_has_no_access_entries_in_cloudformation_and_no_public_parameters(ministack):
    template = {"Resources": {"E": {"Type": "AWS::EKS::AccessEntry", "Properties": {}}}}
    with pytest.raises(ClientError, match="Unrecognized resource types"):
        ministack("cloudformation").create_stack(StackName="s", TemplateBody=json.dumps(template))
    with pytest.raises(ClientError, match="AccessDenied"):
        ministack("ssm").put_parameter(Name="/aws/service/x", Value="v", Type="String")


@mock_aws
def test_moto_returns_status_checks_that_pass_to_a_filter_for_those_that_fail():
    ec2 = client("ec2")
    ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)
    failing = [{"Name": "system-status.status", "Values": ["impaired"]}]
    (reported,) = ec2.describe_instance_status(Filters=failing)["InstanceStatuses"]
    assert reported.get("SystemStatus", {}).get("Status") != "impaired"


def test_ministack_finds_nothing_wrong_with_any_definition(ministack):
    answer = ministack("stepfunctions").validate_state_machine_definition(
        definition='{"StartAt": "Nowhere", "States": {}}'
    )
    assert answer["result"] == "OK"
