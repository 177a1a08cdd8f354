"""The sentence for a group that may not use a launch template: the right as far as AWS names it, and the fix."""

import pytest

from leeward.model.launch_refusal import is_denial, template_denied

USER = "User: arn:aws:sts::111122223333:assumed-role/leeward-upgrade/leeward-upgrade is not authorized to perform:"
ROLE = "arn:aws:iam::111122223333:role/nodes"
CALL = "autoscaling:UpdateAutoScalingGroup on web (LaunchTemplate)"


@pytest.mark.parametrize(
    ("reason", "right", "fix"),
    [
        (
            "AccessDenied: You are not authorized to use launch template: lt-1",
            "ec2:RunInstances or ec2:CreateFleet on it, or iam:PassRole",
            "tag the template kubernetes.io/cluster/prod: owned, name the role of its nodes in the setting nodeRoles",
        ),
        (
            f"AccessDenied: {USER} iam:PassRole on resource: {ROLE} because no identity-based policy allows it",
            f"lacks iam:PassRole on {ROLE};",
            "name the role in the setting nodeRoles, deploy again",
        ),
        (
            f"ValidationError: You must use a valid fully-formed launch template. {USER} ec2:RunInstances on resource: "
            "arn:aws:ec2:us-east-1:111122223333:subnet/subnet-1 because no identity-based policy allows it",
            "lacks ec2:RunInstances on arn:aws:ec2:us-east-1:111122223333:subnet/subnet-1;",
            "tag the template",
        ),
        (
            f"UnauthorizedOperation: {USER} ec2:RunInstances on resource: arn:aws:ec2:us-east-1:111122223333:instance/*"
            " with an explicit deny in a service control policy",
            "lacks ec2:RunInstances on arn:aws:ec2:us-east-1:111122223333:instance/*;",
            "let the policy that AWS names allow it",
        ),
        (
            f"AccessDenied: {USER} ssm:GetParameters on resource: arn:aws:ssm:us-east-1:111122223333:parameter/golden",
            "lacks ssm:GetParameters on",
            "setting imageParameters",
        ),
        (
            f"AccessDenied: {USER} autoscaling:UpdateAutoScalingGroup on resource: arn:aws:autoscaling:x",
            "lacks autoscaling:UpdateAutoScalingGroup on",
            "tag the group kubernetes.io/cluster/prod: owned",
        ),
    ],
)
def test_the_missing_right_and_its_fix_come_before_awss_own_words(reason, right, fix):
    said = template_denied("web", "lt-1 version 7", "prod", f"{CALL}: {reason}")
    assert is_denial(f"{CALL}: {reason}")
    assert said.startswith("Auto Scaling does not let web use launch template lt-1 version 7: the function lacks ")
    assert right in said
    assert fix in said
    assert said.endswith(reason)
    assert said.index(CALL) < 500, "the rest of it is cut off in the execution's document"


def test_another_refusal_is_no_denial():
    assert not is_denial(f"{CALL}: ValidationError: The image id does not exist")
