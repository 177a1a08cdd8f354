"""What a function could do with its role if it ran foreign code: each attack is denied, the call beside it, which the
function needs, is allowed."""

import pytest

from tests.infra.conftest import NODES
from tests.infra.iam_evaluator import Request, allows

HERE = "us-east-1:111122223333"
OURS = {"aws:ResourceTag/kubernetes.io/cluster/blue": "owned"}
MANAGED = {"aws:ResourceTag/eks:cluster-name": "blue"}
THEIRS = {"aws:ResourceTag/kubernetes.io/cluster/other": "owned"}
TEMPLATE = f"arn:aws:ec2:{HERE}:launch-template/lt-0123456789abcdef0"
GROUP = f"arn:aws:autoscaling:{HERE}:autoScalingGroup:0a1b:autoScalingGroupName/web"
FROM_TEMPLATE = {"ec2:LaunchTemplate": TEMPLATE}
AS_NAMED = {**FROM_TEMPLATE, "ec2:IsLaunchTemplateResource": "true"}
REPLACED = {**FROM_TEMPLATE, "ec2:IsLaunchTemplateResource": "false"}
TO_EC2 = {"iam:PassedToService": "ec2.amazonaws.com"}
LAUNCHING = ("drain", "upgrade", "disrupt")


def on(resource, action, **context):
    return Request(action=action, resource=resource, context=context)


def ec2(what):
    return f"arn:aws:ec2:{HERE}:{what}"


def cases():
    """(name, function, attack, the call that the function needs)."""
    admin = "arn:aws:iam::111122223333:role/admin"
    image, own_image = "arn:aws:ec2:us-east-1::image/ami-evil", "arn:aws:ec2:us-east-1::image/ami-own"
    for one in LAUNCHING:
        for act in ("ec2:RunInstances", "ec2:CreateFleet"):
            yield (
                "a template of another team",
                one,
                Request(action=act, resource=TEMPLATE, context=THEIRS),
                Request(action=act, resource=TEMPLATE, context=OURS),
            )
            yield (
                "a template without tags",
                one,
                Request(action=act, resource=TEMPLATE),
                Request(action=act, resource=TEMPLATE, context=MANAGED),
            )
            yield (
                "another image",
                one,
                Request(action=act, resource=image, context=REPLACED),
                Request(action=act, resource=own_image, context=AS_NAMED),
            )
            yield (
                "no launch template",
                one,
                Request(action=act, resource=ec2("subnet/subnet-1")),
                Request(action=act, resource=ec2("subnet/subnet-1"), context=FROM_TEMPLATE),
            )
        group = ec2("security-group/sg-1")
        yield (
            "another security group",
            one,
            Request(action="ec2:RunInstances", resource=group, context=REPLACED),
            Request(action="ec2:RunInstances", resource=group, context=AS_NAMED),
        )
        yield (
            "pass an administrator's role",
            one,
            Request(action="iam:PassRole", resource=admin, context=TO_EC2),
            Request(action="iam:PassRole", resource=NODES, context=TO_EC2),
        )
        yield (
            "pass a node role to a function",
            one,
            Request(action="iam:PassRole", resource=NODES, context={"iam:PassedToService": "lambda.amazonaws.com"}),
            Request(action="iam:PassRole", resource=NODES, context=TO_EC2),
        )
    version = "ec2:CreateLaunchTemplateVersion"
    yield (
        "a version of another team's template",
        "upgrade",
        Request(action=version, resource=TEMPLATE, context=THEIRS),
        Request(action=version, resource=TEMPLATE, context=OURS),
    )
    for one, action in (
        ("interruption", "autoscaling:CompleteLifecycleAction"),
        ("terminate", "autoscaling:TerminateInstanceInAutoScalingGroup"),
        ("reconciler", "autoscaling:UpdateAutoScalingGroup"),
        ("sync", "autoscaling:PutLifecycleHook"),
        ("upgrade", "autoscaling:SuspendProcesses"),
        ("drain", "autoscaling:LaunchInstances"),
    ):
        yield (
            "a group of another team",
            one,
            Request(action=action, resource=GROUP, context=THEIRS),
            Request(action=action, resource=GROUP, context=OURS),
        )
    policies = f"arn:aws:ssm:{HERE}:parameter/leeward"
    read = "ssm:GetParametersByPath"
    yield (
        "policies of another cluster",
        "drain",
        on(f"{policies}/other/policies", read),
        on(f"{policies}/blue/policies", read),
    )
    table, put = f"arn:aws:dynamodb:{HERE}:table/leeward", "dynamodb:PutItem"
    record, facts = {"dynamodb:LeadingKeys": ["termination#i-1"]}, {"dynamodb:LeadingKeys": ["facts#blue#prices"]}
    yield (
        "a termination record written by fn sync",
        "sync",
        Request(action=put, resource=table, context=record),
        Request(action=put, resource=table, context=facts),
    )
    bus, send = f"arn:aws:events:{HERE}:event-bus/default", "events:PutEvents"
    yield (
        "an event in the name of EC2",
        "notifications",
        Request(action=send, resource=bus, context={"events:source": "aws.ec2"}),
        Request(action=send, resource=bus, context={"events:source": "leeward"}),
    )


ALL = [
    pytest.param(function, attack, needed, id=f"{function}: {what}: {attack.action}")
    for what, function, attack, needed in cases()
]


@pytest.mark.parametrize(("function", "attack", "needed"), ALL)
def test_the_attack_is_denied_and_the_call_beside_it_is_allowed(everything, function, attack, needed):
    statements = everything.statements(everything.named("AWS::Lambda::Function")[f"leeward-{function}"]["Role"])
    assert not allows(statements, attack)
    assert allows(statements, needed)


WRITES_NOTHING_ELSEWHERE = (
    "iam:CreateRole",
    "iam:PutRolePolicy",
    "lambda:UpdateFunctionCode",
    "ec2:CreateLaunchTemplate",
    "ec2:ModifyInstanceAttribute",
    "autoscaling:CreateOrUpdateTags",
    "sts:AssumeRole",
    "ssm:PutParameter",
    "eks:CreateAccessEntry",
)


@pytest.mark.parametrize("action", WRITES_NOTHING_ELSEWHERE)
def test_no_function_can_widen_its_own_rights(everything, action):
    target = "arn:aws:iam::111122223333:role/admin" if action.startswith(("iam:", "sts:")) else f"arn:aws:x:{HERE}:y/z"
    request = Request(action=action, resource=target, context={**OURS, **TO_EC2, **AS_NAMED})
    for function in everything.named("AWS::Lambda::Function").values():
        assert not allows(everything.statements(function["Role"]), request), function["FunctionName"]
