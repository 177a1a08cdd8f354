"""Every IAM action that Leeward may use, one table: function, action, resources, and the reason where one is needed.

Plain data, without the CDK, so that a test can compare it with the calls that the functions really make. `scopes.py`
turns each scope into ARNs and conditions. A scope that ends in a wildcard needs a written reason, and so does an action
that no recorded call shows because a service makes the call on behalf of the function (`indirect`).
"""

from collections.abc import Mapping

from infra.disruption_permissions import DISRUPT, DISRUPTION_PLANNER, READ_ALARMS
from infra.execution_permissions import (
    LIST_TERMINATIONS,
    READ_DISRUPTION,
    READ_UPGRADE,
    START_DISRUPTION,
    START_TERMINATION,
    START_UPGRADE,
)
from infra.launch_permissions import LAUNCH, ONLY_TAGGED_TEMPLATES, RESOLVES_IMAGES
from infra.permission import LIST_ONLY, ONLY_TAGGED, ONLY_TAGGED_INSTANCES, Key, Permission, Scope
from infra.table_permissions import LISTS_OPEN, READS_TO_LAUNCH, changes, puts, reads_many, reads_one

_READ_INSTANCES = Permission(action="ec2:DescribeInstances", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_GROUPS = Permission(action="autoscaling:DescribeAutoScalingGroups", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_MEMBERS = Permission(action="autoscaling:DescribeAutoScalingInstances", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_HISTORY = Permission(action="autoscaling:DescribeScalingActivities", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_HOOKS = Permission(action="autoscaling:DescribeLifecycleHooks", on=Scope.ANYTHING, reason=LIST_ONLY)
_ANSWER_HOOK = Permission(action="autoscaling:CompleteLifecycleAction", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
_EXTEND_HOOK = Permission(
    action="autoscaling:RecordLifecycleActionHeartbeat", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED
)
_READ_POLICIES = Permission(
    action="ssm:GetParametersByPath", on=Scope.POLICIES, reason="all documents below the configured cluster's path"
)
_READ_TEMPLATES = Permission(action="ec2:DescribeLaunchTemplateVersions", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_SUBNETS = Permission(action="ec2:DescribeSubnets", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_TARGETS = tuple(
    Permission(action=f"elasticloadbalancing:{action}", on=Scope.ANYTHING, reason=LIST_ONLY)
    for action in (
        "DescribeTargetGroups",
        "DescribeTargetHealth",
        "DescribeLoadBalancers",
        "DescribeInstanceHealth",
        "DescribeTags",
    )
)
# Callers of Kubernetes: find the API server, then assume the role that the cluster knows.
_FIND_CLUSTERS = Permission(action="eks:DescribeCluster", on=Scope.CLUSTERS)
_SPEAK_TO_CLUSTERS = (_FIND_CLUSTERS, Permission(action="sts:AssumeRole", on=Scope.TAINT_ROLES))

_READ_SHIFTS = Permission(
    action="arc-zonal-shift:GetManagedResource",
    on=Scope.SHIFTED_CLUSTERS,
    reason="IAM knows load balancers alone as resources of the action: clusters are held by the condition",
)

_LAUNCHING = (
    Permission(action="autoscaling:LaunchInstances", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED),
    *LAUNCH,
)

# Inputs of an upgrade's pre-flight checks, besides those that its steps read anyway.
_PREFLIGHT = tuple(
    Permission(action=action, on=Scope.ANYTHING, reason=LIST_ONLY)
    for action in (
        "autoscaling:DescribeInstanceRefreshes",
        "autoscaling:DescribeLaunchConfigurations",
        "autoscaling:DescribeScheduledActions",
        "cloudwatch:GetMetricStatistics",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeSpotPriceHistory",
        "pricing:GetProducts",
    )
)

_READ_CHECKS = Permission(action="ec2:DescribeInstanceStatus", on=Scope.ANYTHING, reason=LIST_ONLY)
_READ_BLOCKS = Permission(action="ec2:DescribeCapacityReservations", on=Scope.ANYTHING, reason=LIST_ONLY)
_RESIZE = Permission(action="autoscaling:UpdateAutoScalingGroup", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
_SUSPEND = Permission(action="autoscaling:SuspendProcesses", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
_RESUME = Permission(action="autoscaling:ResumeProcesses", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)

PERMISSIONS: Mapping[str, tuple[Permission, ...]] = {
    "interruption": (
        _READ_INSTANCES,
        _READ_BLOCKS,
        _READ_CHECKS,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HOOKS,
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        _READ_SHIFTS,
        reads_one(Key.TERMINATION, Key.PAUSE, Key.POLICIES, Key.SHIFTS, Key.ZONES, Key.NAMED_HOOKS),
        reads_many(Key.TERMINATION, Key.FACTS),
        puts(Key.TERMINATION, Key.SHIFTS),
        changes(Key.TERMINATION, Key.RESERVATIONS, Key.COUNT),
        *START_TERMINATION,
        Permission(action="sqs:SendMessage", on=Scope.DEAD_LETTERS),
        Permission(action="sqs:ChangeMessageVisibility", on=Scope.QUEUE),
        Permission(action="sqs:ReceiveMessage", on=Scope.QUEUE, reason="Lambda polls for us", indirect=True),
        Permission(action="sqs:DeleteMessage", on=Scope.QUEUE, reason="Lambda deletes for us", indirect=True),
        Permission(action="sqs:GetQueueAttributes", on=Scope.QUEUE, reason="Lambda polls for us", indirect=True),
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
    "terminate": (
        _RESIZE,
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HISTORY,
        _READ_HOOKS,
        Permission(
            action="autoscaling:TerminateInstanceInAutoScalingGroup", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED
        ),
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        reads_one(Key.TERMINATION, Key.MAXIMUM, Key.UPGRADE, Key.DISRUPTION, Key.PAUSE, Key.POLICIES, Key.NAMED_HOOKS),
        reads_many(Key.TERMINATION),
        puts(Key.TERMINATION, Key.MAXIMUM),
        changes(Key.TERMINATION),
        *START_TERMINATION,
        _READ_POLICIES,
    ),
    "drain": (
        _RESIZE,
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HOOKS,
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        *_LAUNCHING,
        *_READ_TARGETS,
        _READ_SUBNETS,
        Permission(action="ec2:RebootInstances", on=Scope.CLUSTER_INSTANCES, reason=ONLY_TAGGED_INSTANCES),
        _READ_CHECKS,
        READS_TO_LAUNCH,
        reads_one(Key.NODE_REPAIR, Key.NAMED_HOOKS),
        reads_many(Key.TERMINATION, Key.FACTS),
        puts(Key.TERMINATION, Key.MAXIMUM),
        changes(Key.TERMINATION, Key.RESERVATIONS),
        _READ_POLICIES,
        _FIND_CLUSTERS,
        Permission(action="sts:AssumeRole", on=Scope.ACT_ROLES),
    ),
    "reconciler": (
        _READ_INSTANCES,
        _READ_CHECKS,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HOOKS,
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        _READ_SHIFTS,
        reads_one(
            Key.TERMINATION,
            Key.UPGRADE,
            Key.DISRUPTION,
            Key.PAUSE,
            Key.POLICIES,
            Key.BLOCKS,
            Key.SHIFTS,
            Key.NODE_REPAIR,
            Key.NAMED_HOOKS,
            Key.ZONES,
        ),
        reads_many(Key.TERMINATION, Key.MAXIMUM, Key.UPGRADE, Key.FACTS),
        puts(Key.TERMINATION, Key.ONCE, Key.MAXIMUM, Key.UPGRADE, Key.DISRUPTION, Key.PAUSE, Key.SHIFTS, Key.ZONES),
        changes(Key.TERMINATION),
        LISTS_OPEN,
        _RESIZE,
        _SUSPEND,
        _RESUME,
        _READ_SUBNETS,
        READ_UPGRADE,
        START_DISRUPTION,
        READ_DISRUPTION,
        *START_TERMINATION,
        LIST_TERMINATIONS,
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
    "disruption-planner": DISRUPTION_PLANNER,
    "disrupt": DISRUPT,
    "upgrade": (
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_HISTORY,
        _READ_HOOKS,
        _READ_SUBNETS,
        *(permission for permission in _LAUNCHING if permission.action != _READ_TEMPLATES.action),
        _READ_TEMPLATES,
        Permission(
            action="ec2:CreateLaunchTemplateVersion",
            on=Scope.CLUSTER_TEMPLATES,
            reason=f"a version is added, none is changed or removed; {ONLY_TAGGED_TEMPLATES}",
        ),
        Permission(action="ec2:DescribeImages", on=Scope.ANYTHING, reason=LIST_ONLY),
        Permission(
            action="ssm:GetParameter",
            on=Scope.IMAGES,
            reason="AWS publishes one for each version, kind and architecture",
        ),
        _RESIZE,
        _SUSPEND,
        _RESUME,
        *(
            Permission(
                action=f"eks:{action}",
                on=Scope.NODE_GROUPS,
                reason="node groups come and go after the deployment: any of the configured clusters",
            )
            for action in ("UpdateNodegroupVersion", "DescribeUpdate", "DescribeNodegroup")
        ),
        Permission(action="eks:DescribeUpdate", on=Scope.CLUSTERS),
        *_PREFLIGHT,
        Permission(
            action="servicequotas:GetServiceQuota",
            on=Scope.ANYTHING,
            reason="AWS evaluates the request with and without a quota as its resource; it changes nothing",
        ),
        READ_ALARMS,
        reads_one(
            Key.TERMINATION, Key.MAXIMUM, Key.UPGRADE, Key.DISRUPTION, Key.PAUSE, Key.POLICIES, Key.SHIFTS, Key.ZONES
        ),
        reads_many(Key.TERMINATION, Key.MAXIMUM, Key.FACTS),
        puts(Key.TERMINATION, Key.MAXIMUM, Key.UPGRADE, Key.PLAN),
        changes(Key.TERMINATION),
        LISTS_OPEN,
        *START_TERMINATION,
        START_UPGRADE,
        READ_UPGRADE,
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
    "notifications": (
        Permission(action="events:PutEvents", on=Scope.BUS),
        Permission(action="sqs:SendMessage", on=Scope.UNDELIVERED, reason="Lambda sends for us", indirect=True),
        *(
            Permission(
                action=f"dynamodb:{action}",
                on=Scope.STREAM,
                reason="Lambda reads for us; a stream's name ends in the moment at which it was made",
                indirect=True,
            )
            for action in ("DescribeStream", "GetRecords", "GetShardIterator")
        ),
        Permission(
            action="dynamodb:ListStreams",
            on=Scope.ANYTHING,
            reason="Lambda's guide asks for it, and lists names only; the action knows no resource",
            indirect=True,
        ),
    ),
    "sync": (
        _READ_GROUPS,
        _READ_HOOKS,
        Permission(action="autoscaling:PutLifecycleHook", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED),
        Permission(action="autoscaling:DeleteLifecycleHook", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED),
        _READ_INSTANCES,
        _READ_SUBNETS,
        _READ_TEMPLATES,
        Permission(action="ssm:GetParameters", on=Scope.IMAGES, reason=RESOLVES_IMAGES, indirect=True),
        Permission(action="autoscaling:DescribeLaunchConfigurations", on=Scope.ANYTHING, reason=LIST_ONLY),
        Permission(
            action="eks:DescribeNodegroup",
            on=Scope.NODE_GROUPS,
            reason="node groups come and go after the deployment: any of the configured clusters",
        ),
        Permission(action="ec2:DescribeInstanceTypes", on=Scope.ANYTHING, reason=LIST_ONLY),
        Permission(action="ec2:DescribeImages", on=Scope.ANYTHING, reason=LIST_ONLY),
        _READ_BLOCKS,
        Permission(action="ec2:DescribeSpotPriceHistory", on=Scope.ANYTHING, reason=LIST_ONLY),
        Permission(action="pricing:GetProducts", on=Scope.ANYTHING, reason=LIST_ONLY),
        reads_one(Key.PAUSE, Key.POLICIES),
        reads_many(Key.FACTS),
        puts(Key.FACTS),
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
}
"""Function name -> what it may do. What Lambda itself needs to run it is in `service_permissions.py`."""
