"""Rights before resources: AWS checks some rights of a role while it makes the resource that has the role.

CloudFormation makes side by side what no Ref, GetAtt or DependsOn puts in order, and deletes in the reverse order. A
policy that names its role (`Roles`) is made after it, beside the function that has the role: the creation fails where
the function is faster, and a deletion may take the rights away before Lambda has removed the network interfaces."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infra.template import Template, document_of, statements_of
from tests.infra.variants import VARIANTS, each, variant

LOG_DELIVERY = (
    *("CreateLogDelivery", "GetLogDelivery", "UpdateLogDelivery", "DeleteLogDelivery", "ListLogDeliveries"),
    *("PutResourcePolicy", "DescribeResourcePolicies", "DescribeLogGroups"),
)
TRACES = ("PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets")
INTERFACES = ("CreateNetworkInterface", "DescribeNetworkInterfaces", "DescribeSubnets", "DeleteNetworkInterface")
POLLS = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
READS = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
ROLE_IN = {"AWS::Lambda::Function": "Role", "AWS::StepFunctions::StateMachine": "RoleArn"}


def checked(template: Template, logical: str) -> Iterator[str]:
    """Rights of the role that AWS checks when it makes the resource. Sources: the guides of Lambda (execution role,
    functions in a VPC, event source mappings with SQS and DynamoDB) and Step Functions (logging, X-Ray)."""
    resource = template.raw["Resources"][logical]
    properties = template.filled(resource["Properties"])
    match resource["Type"]:
        case "AWS::StepFunctions::StateMachine":
            assert properties["LoggingConfiguration"]["Destinations"]
            yield from (f"logs:{action}" for action in LOG_DELIVERY)
            assert properties["TracingConfiguration"]["Enabled"]
            yield from (f"xray:{action}" for action in TRACES)
        case "AWS::Lambda::Function":
            if "VpcConfig" in properties:
                yield from (f"ec2:{action}" for action in INTERFACES)
            if "KmsKeyArn" in properties:
                yield "kms:Decrypt"
            if properties["TracingConfig"]["Mode"] == "Active":
                yield "xray:PutTraceSegments"
        case "AWS::Lambda::EventSourceMapping":
            if ":sqs:" in properties["EventSourceArn"]:
                yield from (f"sqs:{action}" for action in POLLS)
            else:
                assert properties["EventSourceArn"].endswith(".StreamArn")
                yield from (f"dynamodb:{action}" for action in READS)
            if "OnFailure" in properties.get("DestinationConfig", {}):
                yield "sqs:SendMessage"


def references(value: Any) -> Iterator[str]:
    """Logical ids that a value refers to."""
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": text}:
            yield from re.findall(r"\$\{(\w+)", text if isinstance(text, str) else text[0])
            yield from references(text)
        case Mapping():
            for inner in value.values():
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)


def awaited(resources: Mapping[str, Any], logical: str) -> set[str]:
    """What CloudFormation makes before the resource."""
    found: set[str] = set()
    left = [logical]
    while left:
        resource = resources[left.pop()]
        depends = resource.get("DependsOn", [])
        named = {*references(resource.get("Properties", {})), *([depends] if isinstance(depends, str) else depends)}
        new = (named & resources.keys()) - found
        found |= new
        left += new
    return found


def rights_before(template: Template, logical: str) -> set[str]:
    """Actions in those policies of the resource's role that are made before the resource."""
    resources = template.raw["Resources"]
    before = awaited(resources, logical)
    (role,) = set(references(_role(resources, resources[logical]))) & resources.keys()
    assert role in before
    properties = resources[role]["Properties"]
    attached = before & set(references(properties.get("ManagedPolicyArns", [])))
    documents = [
        *(template.filled(policy["PolicyDocument"]) for policy in properties.get("Policies", ())),
        *(document_of(template.filled(resources[policy]["Properties"])) for policy in attached),
    ]
    return {action for document in documents for one in statements_of(document) for action in one.actions}


def _role(resources: Mapping[str, Any], resource: Mapping[str, Any]) -> Any:
    """The property that names the role, of an event source that of its function."""
    if resource["Type"] == "AWS::Lambda::EventSourceMapping":
        (function,) = references(resource["Properties"]["FunctionName"])
        resource = resources[function]
    return resource["Properties"][ROLE_IN[resource["Type"]]]


@pytest.mark.parametrize("name", each(VARIANTS))
def test_each_right_that_aws_checks_at_a_creation_is_made_before_the_resource(name):
    seen = set()
    missing = {}
    for stack, template in variant(name).templates.items():
        for logical in template.raw["Resources"]:
            needed = set(checked(template, logical))
            seen |= needed
            if late := needed - (rights_before(template, logical) if needed else set()):
                missing[f"{stack}: {logical}"] = sorted(late)
    assert missing == {}
    assert {"logs:CreateLogDelivery", "sqs:ReceiveMessage", "dynamodb:GetRecords"} <= seen


@pytest.mark.parametrize("name", each(VARIANTS))
def test_no_policy_names_the_role_that_it_belongs_to(name):
    """Nothing could wait for such a policy; one that a role names is part of the role."""
    after = [
        logical
        for template in variant(name).templates.values()
        for logical, resource in template.raw["Resources"].items()
        if resource["Type"] in {"AWS::IAM::Policy", "AWS::IAM::RolePolicy"}
        or (resource["Type"] == "AWS::IAM::ManagedPolicy" and "Roles" in resource["Properties"])
    ]
    assert after == []


def test_the_variants_have_functions_in_a_vpc_and_a_key():
    """Else the rights for them would have been compared with nothing."""
    templates = variant("all and a key").templates.values()
    needed = {action for one in templates for logical in one.raw["Resources"] for action in checked(one, logical)}
    assert {"ec2:CreateNetworkInterface", "kms:Decrypt"} <= needed
