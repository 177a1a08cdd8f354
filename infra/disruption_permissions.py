"""Permissions of fn disruption-planner and fn disrupt: lines of the table in `permissions.py`, in a file of their own
for their length.

fn disruption-planner reads and records; only fn disrupt, which takes the steps of a run, may launch and change groups.
"""

from infra.launch_permissions import LAUNCH, RESOLVES_IMAGES
from infra.permission import LIST_ONLY, ONLY_TAGGED, Permission, Scope

_LOOKING = (
    *(
        Permission(action=action, on=Scope.ANYTHING, reason=LIST_ONLY)
        for action in (
            "ec2:DescribeInstances",
            "ec2:DescribeSubnets",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeSpotPriceHistory",
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeLifecycleHooks",
            "autoscaling:DescribeLaunchConfigurations",
            "pricing:GetProducts",
        )
    ),
    Permission(
        action="eks:DescribeNodegroup",
        on=Scope.NODE_GROUPS,
        reason="node groups come and go after the deployment: any of the configured clusters",
    ),
    Permission(
        action="ssm:GetParametersByPath", on=Scope.POLICIES, reason="all documents below the configured cluster's path"
    ),
    Permission(action="ssm:GetParameters", on=Scope.IMAGES, reason=RESOLVES_IMAGES, indirect=True),
    Permission(action="dynamodb:BatchGetItem", on=Scope.TABLE),
    Permission(action="dynamodb:GetItem", on=Scope.TABLE),
    Permission(action="dynamodb:PutItem", on=Scope.TABLE),
    Permission(action="dynamodb:Query", on=Scope.OPEN_INDEX),
    Permission(action="eks:DescribeCluster", on=Scope.CLUSTERS),
    Permission(action="sts:AssumeRole", on=Scope.TAINT_ROLES),
)

LOOK_AT_ROUND = Permission(
    action="states:DescribeExecution",
    on=Scope.DISRUPTION_EXECUTIONS,
    reason="executions of this state machine are named after clusters, or by whoever starts them by hand",
)
START_ROUND = Permission(action="states:StartExecution", on=Scope.DISRUPTION_MACHINE)

DISRUPTION_PLANNER = (*_LOOKING, START_ROUND, LOOK_AT_ROUND)
"""Rights of fn disruption-planner: it writes the record of a run and starts its execution."""

DISRUPT = (
    *_LOOKING,
    Permission(action="autoscaling:DescribeScalingActivities", on=Scope.ANYTHING, reason=LIST_ONLY),
    Permission(action="dynamodb:UpdateItem", on=Scope.TABLE),
    *(
        Permission(action=f"autoscaling:{action}", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
        for action in ("LaunchInstances", "SuspendProcesses", "ResumeProcesses", "UpdateAutoScalingGroup")
    ),
    *LAUNCH,
    LOOK_AT_ROUND,
    Permission(action="states:StartExecution", on=Scope.STATE_MACHINE),
    Permission(
        action="states:DescribeExecution",
        on=Scope.EXECUTIONS,
        reason="executions of this state machine are named after instances, which are not known in advance",
    ),
)
"""Rights of fn disrupt: the steps of disruption."""
