"""What CloudFormation deploys is there, with the properties that ministack alone would drop."""

import json
import uuid

from .conftest import eventually


def test_a_stack_keeps_concurrency_time_to_live_substitutions_parameters_and_rules(aws):
    name = f"s-{uuid.uuid4().hex[:8]}"
    code = {"ZipFile": "def handler(event, context): return 1"}
    role = f"arn:aws:iam::{aws.account}:role/r"
    definition = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": "${Word}", "End": True}}}
    pattern = {"source": ["aws.ec2"]}
    resources = {
        "Function": (
            "AWS::Lambda::Function",
            {
                "FunctionName": name,
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Role": role,
                "Code": code,
                "ReservedConcurrentExecutions": 7,
            },
        ),
        "Table": (
            "AWS::DynamoDB::Table",
            {
                "TableName": name,
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
            },
        ),
        "Machine": (
            "AWS::StepFunctions::StateMachine",
            {
                "StateMachineName": name,
                "RoleArn": role,
                "DefinitionString": json.dumps(definition),
                "DefinitionSubstitutions": {"Word": "done"},
            },
        ),
        "Parameter": ("AWS::SSM::Parameter", {"Name": f"/{name}/policies/01-a", "Type": "String", "Value": "{}"}),
        "Queue": ("AWS::SQS::Queue", {"QueueName": name, "SqsManagedSseEnabled": True}),
        "Rule": (
            "AWS::Events::Rule",
            {
                "Name": name,
                "EventPattern": pattern,
                "Targets": [{"Id": "q", "Arn": {"Fn::GetAtt": ["Queue", "Arn"]}}],
            },
        ),
        "Tick": ("AWS::Events::Rule", {"Name": f"{name}-tick", "ScheduleExpression": "rate(1 minute)"}),
        "Logs": ("AWS::Logs::LogGroup", {"LogGroupName": f"/{name}", "RetentionInDays": 7}),
        "Dashboard": ("AWS::CloudWatch::Dashboard", {"DashboardName": name, "DashboardBody": "{}"}),
    }
    body = {"Resources": {key: {"Type": kind, "Properties": props} for key, (kind, props) in resources.items()}}
    cloudformation = aws.client("cloudformation")
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(body))

    def status():
        found = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        return None if found["StackStatus"].endswith("IN_PROGRESS") else found

    finished = eventually(status)
    assert finished["StackStatus"] == "CREATE_COMPLETE", finished.get("StackStatusReason")
    functions = aws.client("lambda")
    assert functions.get_function_concurrency(FunctionName=name)["ReservedConcurrentExecutions"] == 7
    described = aws.client("dynamodb").describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    found = aws.client("ssm").get_parameters_by_path(Path=f"/{name}/policies", Recursive=True)["Parameters"]
    assert [item["Value"] for item in found] == ["{}"]
    sfn = aws.client("stepfunctions")
    arn = f"arn:aws:states:{aws.region}:{aws.account}:stateMachine:{name}"
    execution = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    eventually(lambda: sfn.describe_execution(executionArn=execution).get("output") == '"done"')
    aws.control("POST", "events", {"source": "aws.ec2", "detail-type": "x", "detail": {"n": name}})
    sqs = aws.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    message = eventually(lambda: sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages"))[0]
    assert json.loads(message["Body"])["source"] == "aws.ec2"
    cloudformation.delete_stack(StackName=name)
    eventually(lambda: name not in sqs_names(sqs))


def sqs_names(sqs):
    return [url.rsplit("/", 1)[-1] for url in sqs.list_queues().get("QueueUrls", [])]


def test_public_parameters_can_be_written(aws):
    ssm, name = aws.client("ssm"), "/aws/service/eks/optimized-ami/1.33/al2023/image_id"
    ssm.put_parameter(Name=name, Value="ami-12c6146b", Type="String", Overwrite=True)
    assert ssm.get_parameter(Name=name)["Parameter"]["Value"] == "ami-12c6146b"


def test_a_template_may_name_its_image_by_parameter(aws, a_group):
    name = "/aws/service/eks/optimized-ami/1.33/al2023/by-name"
    aws.client("ssm").put_parameter(Name=name, Value="ami-12c6146b", Type="String", Overwrite=True)
    group = a_group(template={"ImageId": f"resolve:ssm:{name}"})
    assert group.instances(group.states())[0]["ImageId"] == "ami-12c6146b"


def test_an_image_by_parameter_moves_and_the_version_that_names_it_does_not(aws):
    ec2, ssm, name = aws.client("ec2"), aws.client("ssm"), "/aws/service/eks/optimized-ami/1.33/al2023/moving"
    alias = f"resolve:ssm:{name}"
    ssm.put_parameter(Name=name, Value="ami-12c6146b", Type="String", Overwrite=True)
    ec2.create_launch_template(LaunchTemplateName="moving", LaunchTemplateData={"ImageId": alias})

    def image(**more):
        answer = ec2.describe_launch_template_versions(LaunchTemplateName="moving", Versions=["1"], **more)
        return answer["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"]

    assert (image(), image(ResolveAlias=True)) == (alias, "ami-12c6146b")
    ssm.put_parameter(Name=name, Value="ami-03cf127a", Type="String", Overwrite=True)
    assert (image(), image(ResolveAlias=True)) == (alias, "ami-03cf127a")


def test_a_condition_asks_a_list_parameter_whether_it_is_empty(aws):
    """By a join, as templates do: a choice of the first item fails on AWS where there is none."""
    some = {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Topics"}]}, ""]}]}
    body = {
        "Parameters": {"Topics": {"Type": "CommaDelimitedList", "Default": ""}},
        "Conditions": {"Some": some},
        "Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
        "Outputs": {"Found": {"Value": {"Fn::If": ["Some", {"Fn::Join": ["+", {"Ref": "Topics"}]}, "none"]}}},
    }
    cloudformation = aws.client("cloudformation")
    for topics, expected in (("", "none"), ("a,b", "a+b")):
        name = f"s-{uuid.uuid4().hex[:8]}"
        given = [{"ParameterKey": "Topics", "ParameterValue": topics}]
        cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(body), Parameters=given)
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
        (made,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        assert made["Outputs"][0]["OutputValue"] == expected
