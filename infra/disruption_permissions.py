"""Permissions of fn disruption-planner and fn disrupt: lines of the table in `permissions.py`, in a file of their own
for their length.

fn disruption-planner reads, records and starts; only fn disrupt, which takes the steps of a run, may launch and change
groups.
"""

from infra.execution_permissions import (
    READ_DISRUPTION,
    READ_UPGRADE,
    START_DISRUPTION,
    START_TERMINATION,
    START_UPGRADE,
)
from infra.launch_permissions import LAUNCH, RESOLVES_IMAGES
from infra.permission import LIST_ONLY, ONLY_TAGGED, Key, Permission, Scope
from infra.table_permissions import LISTS_OPEN, READS_TO_LAUNCH, changes, puts, reads_many, reads_one

READ_ALARMS = Permission(
    action="cloudwatch:DescribeAlarms",
    on=Scope.ANYTHING,
    reason="CloudWatch returns composite alarms to a permission on * alone; it changes nothing",
)

_LOOKING = (
    *(
        Permission(action=action, on=Scope.ANYTHING, reason=LIST_ONLY)
        for action in (
            "ec2:DescribeInstances",
            "ec2:DescribeSubnets",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeImages",
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
    LISTS_OPEN,
    Permission(action="eks:DescribeCluster", on=Scope.CLUSTERS),
    READ_ALARMS,
    Permission(action="sts:AssumeRole", on=Scope.TAINT_ROLES),
)

DISRUPTION_PLANNER = (
    *_LOOKING,
    reads_one(Key.UPGRADE, Key.DISRUPTION, Key.PAUSE, Key.POLICIES, Key.SHIFTS, Key.ZONES),
    reads_many(Key.FACTS),
    puts(Key.DISRUPTION),
    START_DISRUPTION,
    READ_DISRUPTION,
    START_UPGRADE,
    READ_UPGRADE,
    Permission(
        action="ssm:GetParameter",
        on=Scope.IMAGES,
        reason="AWS publishes one for each version, kind and architecture",
    ),
)
"""Rights of fn disruption-planner: it writes the record of a run and starts its execution, and starts the upgrades that
a policy's `update.auto` asks for.
"""

DISRUPT = (
    *_LOOKING,
    Permission(action="autoscaling:DescribeScalingActivities", on=Scope.ANYTHING, reason=LIST_ONLY),
    READS_TO_LAUNCH,
    reads_many(Key.TERMINATION, Key.MAXIMUM, Key.FACTS),
    puts(Key.TERMINATION, Key.MAXIMUM, Key.DISRUPTION),
    changes(Key.TERMINATION),
    *(
        Permission(action=f"autoscaling:{action}", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
        for action in ("LaunchInstances", "SuspendProcesses", "ResumeProcesses", "UpdateAutoScalingGroup")
    ),
    *LAUNCH,
    READ_DISRUPTION,
    *START_TERMINATION,
)
"""Rights of fn disrupt: the steps of disruption."""
