"""Permissions behind autoscaling:LaunchInstances, and behind UpdateAutoScalingGroup with a launch template: calls that
Auto Scaling makes in the caller's name.

They allow a launch from the launch templates of the configured clusters, and with the roles that the setting nodeRoles
names. What holds a function that runs foreign code:

* CreateFleet needs a launch template, and RunInstances on an instance names one (`ec2:LaunchTemplate`): both only those
  that carry a cluster's tag.
* RunInstances takes image, security groups, key and snapshots as the template names them
  (`ec2:IsLaunchTemplateResource`). Instance type, subnet, user data and, by CreateFleet, the image are of its choice.
* iam:PassRole passes no role but those of nodeRoles, and to EC2 alone.

Each condition key stands where AWS's reference lists it for the action: both keys for RunInstances, none for
CreateFleet. It is unknown whether Auto Scaling names the template in the dry run of UpdateAutoScalingGroup, in a way
that sets them. So RunInstances is allowed as well where a service makes it in the caller's name (`aws:ViaAWSService`),
which a call of the function's own code never is. The types of resources are those of AWS's own policies for callers of
LaunchInstances, and of published policies for launches of spot instances. Source of the keys: Amazon EC2 user guide,
"Use launch templates to control launching instances".
"""

from infra.permission import LIST_ONLY, Permission, Scope

_IN_CALLERS_NAME = "made by Auto Scaling in the caller's name while LaunchInstances runs"
_OF_A_TEMPLATE = f"{_IN_CALLERS_NAME}; only from a launch template of the configured clusters"
_AS_NAMED = f"{_IN_CALLERS_NAME}; only what the launch template names"
_NOT_KNOWN = f"{_IN_CALLERS_NAME}; in the subnets of the groups, which are not known in advance"

ONLY_TAGGED_TEMPLATES = "templates come and go after the deployment: any, held to the configured clusters by its tag"
RESOLVES_IMAGES = "made by EC2 in the caller's name where a launch template names its image by an SSM parameter"

LAUNCH = (
    Permission(action="ec2:CreateFleet", on=Scope.CLUSTER_TEMPLATES, reason=ONLY_TAGGED_TEMPLATES, indirect=True),
    Permission(action="ec2:CreateFleet", on=Scope.FLEET_LAUNCHED, reason=_OF_A_TEMPLATE, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.CLUSTER_TEMPLATES, reason=ONLY_TAGGED_TEMPLATES, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.LAUNCHED, reason=_OF_A_TEMPLATE, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.NAMED, reason=_AS_NAMED, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.LAUNCHED_WITH, reason=_NOT_KNOWN, indirect=True),
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
