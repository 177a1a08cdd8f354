"""Every IAM action that Leeward may use, one table: function, action, resources, and the reason where one is needed.

Plain data, without the CDK, so that a test can compare it with the calls that the functions really make. `scopes.py`
turns each scope into ARNs and conditions. A scope that ends in a wildcard needs a written reason, and so does an action
that no recorded call shows because a service makes the call on behalf of the function (`indirect`).
"""

from collections.abc import Mapping

from infra.disruption_permissions import DISRUPT, DISRUPTION_PLANNER, LOOK_AT_ROUND, START_ROUND
from infra.launch_permissions import LAUNCH, ONLY_TAGGED_TEMPLATES, RESOLVES_IMAGES
from infra.permission import LIST_ONLY, ONLY_TAGGED, Permission, Scope

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
_READ_RECORD = Permission(action="dynamodb:GetItem", on=Scope.TABLE)
_READ_RECORDS = Permission(action="dynamodb:BatchGetItem", on=Scope.TABLE)
_PUT_RECORD = Permission(action="dynamodb:PutItem", on=Scope.TABLE)
_CHANGE_RECORD = Permission(action="dynamodb:UpdateItem", on=Scope.TABLE)
_READ_FACTS = Permission(action="dynamodb:BatchGetItem", on=Scope.FACTS)
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
_START = Permission(action="states:StartExecution", on=Scope.STATE_MACHINE)
_LOOK_AT_RUN = Permission(
    action="states:DescribeExecution",
    on=Scope.EXECUTIONS,
    reason="executions of this state machine are named after instances, which are not known in advance",
)
_LIST_RUNS = Permission(action="states:ListExecutions", on=Scope.STATE_MACHINE)
_WAKE = Permission(
    action="states:SendTaskSuccess",
    on=Scope.ANYTHING,
    reason="task tokens belong to no resource; only the holder of a token can answer it",
)

# Callers of Kubernetes: find the API server, then assume the role that the cluster knows.
_FIND_CLUSTERS = Permission(action="eks:DescribeCluster", on=Scope.CLUSTERS)
_SPEAK_TO_CLUSTERS = (_FIND_CLUSTERS, Permission(action="sts:AssumeRole", on=Scope.TAINT_ROLES))

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

_LOOK_AT_UPGRADE = Permission(
    action="states:DescribeExecution",
    on=Scope.UPGRADE_EXECUTIONS,
    reason="executions of these state machines are named after groups, or by whoever starts them by hand",
)
_RESIZE = Permission(action="autoscaling:UpdateAutoScalingGroup", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
_RESUME = Permission(action="autoscaling:ResumeProcesses", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED)
_OPEN_RECORDS = Permission(action="dynamodb:Query", on=Scope.OPEN_INDEX)

PERMISSIONS: Mapping[str, tuple[Permission, ...]] = {
    "interruption": (
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HOOKS,
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        _READ_RECORDS,
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _START,
        _LOOK_AT_RUN,
        _WAKE,
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
        _READ_RECORDS,
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _START,
        _LOOK_AT_RUN,
        _READ_POLICIES,
    ),
    "drain": (
        _RESIZE,
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HOOKS,
        _EXTEND_HOOK,
        *_LAUNCHING,
        *_READ_TARGETS,
        _READ_SUBNETS,
        _READ_FACTS,
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _READ_POLICIES,
        _FIND_CLUSTERS,
        Permission(action="sts:AssumeRole", on=Scope.ACT_ROLES),
    ),
    "reconciler": (
        _READ_INSTANCES,
        Permission(action="ec2:DescribeInstanceStatus", on=Scope.ANYTHING, reason=LIST_ONLY),
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HOOKS,
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        _READ_RECORD,
        _READ_RECORDS,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _OPEN_RECORDS,
        _RESIZE,
        _RESUME,
        _LOOK_AT_UPGRADE,
        START_ROUND,
        LOOK_AT_ROUND,
        _START,
        _LOOK_AT_RUN,
        _LIST_RUNS,
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
        Permission(action="autoscaling:SuspendProcesses", on=Scope.CLUSTER_GROUPS, reason=ONLY_TAGGED),
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
        Permission(
            action="cloudwatch:DescribeAlarms", on=Scope.ALARMS, reason="policies name the alarms that watch a canary"
        ),
        _READ_RECORDS,
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _OPEN_RECORDS,
        _START,
        _LOOK_AT_RUN,
        Permission(action="states:StartExecution", on=Scope.UPGRADE_MACHINES),
        _LOOK_AT_UPGRADE,
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
        Permission(action="ec2:DescribeSpotPriceHistory", on=Scope.ANYTHING, reason=LIST_ONLY),
        Permission(action="pricing:GetProducts", on=Scope.ANYTHING, reason=LIST_ONLY),
        _READ_FACTS,
        Permission(action="dynamodb:PutItem", on=Scope.FACTS),
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
}
"""Function name -> what it may do. What Lambda itself needs to run it is in `service_permissions.py`."""
