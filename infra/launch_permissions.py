"""Permissions behind autoscaling:LaunchInstances: calls that Auto Scaling makes in the caller's name.

They allow a launch from the launch templates of the configured clusters, as these templates say, and with the roles
that the setting nodeRoles names. A function with these rights that runs foreign code can put no other image, security
group or key in the place of what the template names, and pass no other role. It could still give an instance user data
of its own, which runs with a node role, and choose type and subnet: these are no resources that IAM could hold.
Source: Amazon EC2 user guide, "Use launch templates to control launching instances".
"""

from infra.permission import LIST_ONLY, Permission, Scope

_IN_CALLERS_NAME = "made by Auto Scaling in the caller's name while LaunchInstances runs"
_AS_NAMED = f"{_IN_CALLERS_NAME}; only what the launch template names, or what the launch makes"
_ANY_SUBNET = (
    f"{_IN_CALLERS_NAME}; from a launch template, in the subnets of the groups, which are not known in advance"
)

ONLY_TAGGED_TEMPLATES = "templates come and go after the deployment: any, held to the configured clusters by its tag"
RESOLVES_IMAGES = "made by EC2 in the caller's name where a launch template names its image by an SSM parameter"

LAUNCH = (
    Permission(action="ec2:CreateFleet", on=Scope.CLUSTER_TEMPLATES, reason=ONLY_TAGGED_TEMPLATES, indirect=True),
    Permission(action="ec2:CreateFleet", on=Scope.FLEET_LAUNCHED, reason=_AS_NAMED, indirect=True),
    Permission(action="ec2:CreateFleet", on=Scope.LAUNCH_SUBNETS, reason=_ANY_SUBNET, indirect=True),
    Permission(
        action="ec2:CreateFleet",
        on=Scope.FLEETS,
        reason=f"{_IN_CALLERS_NAME}; the fleet is made by the call itself",
        indirect=True,
    ),
    Permission(action="ec2:RunInstances", on=Scope.CLUSTER_TEMPLATES, reason=ONLY_TAGGED_TEMPLATES, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.LAUNCHED, reason=_AS_NAMED, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.LAUNCH_SUBNETS, reason=_ANY_SUBNET, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.LAUNCH_INTERFACES, reason=_ANY_SUBNET, indirect=True),
    Permission(action="ec2:DescribeLaunchTemplateVersions", on=Scope.ANYTHING, reason=LIST_ONLY, indirect=True),
    Permission(action="ssm:GetParameters", on=Scope.IMAGES, reason=RESOLVES_IMAGES, indirect=True),
    Permission(action="ec2:CreateTags", on=Scope.LAUNCH_TAGS, reason=_IN_CALLERS_NAME, indirect=True),
    Permission(
        action="iam:PassRole",
        on=Scope.NODE_ROLES,
        reason=f"{_IN_CALLERS_NAME}; to EC2 only, and only the roles that the setting nodeRoles names",
        indirect=True,
    ),
)
"""Rights beyond autoscaling:LaunchInstances itself."""
