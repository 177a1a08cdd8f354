"""Every IAM action that Leeward may use, one table: who, what, on which things, and why where that needs a reason.

Plain data, without the CDK, so that a test can hold it against the calls that the functions really make. `scopes.py`
turns each scope into ARNs and conditions. A scope that ends in a wildcard needs a written reason, and so does an
action that no recorded call shows because a service makes the call in the function's name (`indirect`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What an action is allowed on."""

    ANYTHING = "anything"  # the action knows no resource, or none that could be named beforehand
    OWN_LOGS = "own-logs"  # the streams of the function's own log group
    TABLE = "table"
    FACTS = "facts"  # of the table, only items whose key begins with facts#
    TERMINATION_RECORDS = "termination-records"  # of the table, only items whose key begins with termination#
    OPEN_INDEX = "open-index"
    QUEUE = "queue"
    DEAD_LETTERS = "dead-letters"
    STATE_MACHINE = "state-machine"
    EXECUTIONS = "executions"
    STEP_FUNCTIONS = "step-functions"  # the two Lambda functions that the state machine calls
    UPGRADE_MACHINE = "upgrade-machine"
    UPGRADE_EXECUTIONS = "upgrade-executions"
    UPGRADE_FUNCTION = "upgrade-function"  # the one that node-group-upgrade calls
    GROUP_TEMPLATES = "group-templates"  # any launch template of this account
    ALARMS = "alarms"  # CloudWatch's
    IMAGES = "images"  # AWS's own parameters that name its recommended images
    CLUSTER_GROUPS = "cluster-groups"  # Auto Scaling groups tagged for one of the configured clusters
    POLICIES = "policies"  # SSM parameters of the configured clusters
    CLUSTERS = "clusters"  # the configured EKS clusters
    NODE_GROUPS = "node-groups"  # any managed node group of the configured clusters
    ACT_ROLES = "act-roles"  # leeward-CLUSTER-act
    ANY_ACT_ROLE = "any-act-role"  # the same without naming the clusters, where IAM's limit on a role's size forbids it
    NODE_ROLES = "node-roles"  # what instances run as, passed to EC2 only
    LAUNCH_TEMPLATES = "launch-templates"  # anything, but only when started from a launch template of this account
    LAUNCH_TAGS = "launch-tags"  # anything, but only while it is being launched
    LAMBDA_ITSELF = "lambda-itself"  # anything, but only when Lambda calls to run the function, never its code


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One action on one scope. `reason`: why a wildcard, or who makes the call; `indirect`: not by our own code."""

    action: str
    on: Scope
    reason: str = ""
    indirect: bool = False


_LIST_ONLY = "the API describes lists and knows no resource to name; it changes nothing"
_ONLY_TAGGED = "groups come and go after the deployment: any group, held to the configured clusters by its tag"
_LAUNCH = "made by Auto Scaling in the caller's name while LaunchInstances runs; templates are not known beforehand"

_READ_INSTANCES = Permission(action="ec2:DescribeInstances", on=Scope.ANYTHING, reason=_LIST_ONLY)
_READ_GROUPS = Permission(action="autoscaling:DescribeAutoScalingGroups", on=Scope.ANYTHING, reason=_LIST_ONLY)
_READ_MEMBERS = Permission(action="autoscaling:DescribeAutoScalingInstances", on=Scope.ANYTHING, reason=_LIST_ONLY)
_READ_HISTORY = Permission(action="autoscaling:DescribeScalingActivities", on=Scope.ANYTHING, reason=_LIST_ONLY)
_READ_HOOKS = Permission(action="autoscaling:DescribeLifecycleHooks", on=Scope.ANYTHING, reason=_LIST_ONLY)
_ANSWER_HOOK = Permission(action="autoscaling:CompleteLifecycleAction", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED)
_EXTEND_HOOK = Permission(
    action="autoscaling:RecordLifecycleActionHeartbeat", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED
)
_READ_POLICIES = Permission(
    action="ssm:GetParametersByPath", on=Scope.POLICIES, reason="all documents below the configured cluster's path"
)
_READ_RECORD = Permission(action="dynamodb:GetItem", on=Scope.TABLE)
_PUT_RECORD = Permission(action="dynamodb:PutItem", on=Scope.TABLE)
_CHANGE_RECORD = Permission(action="dynamodb:UpdateItem", on=Scope.TABLE)
_READ_FACTS = Permission(action="dynamodb:BatchGetItem", on=Scope.FACTS)
_READ_TEMPLATES = Permission(action="ec2:DescribeLaunchTemplateVersions", on=Scope.ANYTHING, reason=_LIST_ONLY)
_READ_SUBNETS = Permission(action="ec2:DescribeSubnets", on=Scope.ANYTHING, reason=_LIST_ONLY)
_START = Permission(action="states:StartExecution", on=Scope.STATE_MACHINE)
_LOOK_AT_RUN = Permission(
    action="states:DescribeExecution",
    on=Scope.EXECUTIONS,
    reason="executions of this state machine are named after instances, which are not known beforehand",
)
_WAKE = Permission(action="states:SendTaskSuccess", on=Scope.STATE_MACHINE)

_LOGS = tuple(
    Permission(
        action=action,
        on=Scope.OWN_LOGS,
        reason="Lambda writes the function's log; stream names are its own choice, inside the function's own group",
        indirect=True,
    )
    for action in ("logs:CreateLogStream", "logs:PutLogEvents")
)

# Whoever speaks to Kubernetes: find the API server, then assume the role that the cluster knows.
_SPEAK_TO_CLUSTERS = (
    Permission(action="eks:DescribeCluster", on=Scope.CLUSTERS),
    Permission(action="sts:AssumeRole", on=Scope.ACT_ROLES),
)

_LAUNCHING = (
    Permission(action="autoscaling:LaunchInstances", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED),
    Permission(action="ec2:CreateFleet", on=Scope.ANYTHING, reason=_LAUNCH, indirect=True),
    Permission(action="ec2:DescribeLaunchTemplateVersions", on=Scope.ANYTHING, reason=_LIST_ONLY, indirect=True),
    Permission(action="ec2:RunInstances", on=Scope.LAUNCH_TEMPLATES, reason=_LAUNCH, indirect=True),
    Permission(action="ec2:CreateTags", on=Scope.LAUNCH_TAGS, reason=_LAUNCH, indirect=True),
    Permission(
        action="iam:PassRole",
        on=Scope.NODE_ROLES,
        reason=f"{_LAUNCH}; to EC2 only, and the setting nodeRoles narrows it to the roles named",
        indirect=True,
    ),
)

_LOOK_AT_UPGRADE = Permission(
    action="states:DescribeExecution",
    on=Scope.UPGRADE_EXECUTIONS,
    reason="executions of this state machine are named after groups, or by whoever starts them by hand",
)
_RESIZE = Permission(action="autoscaling:UpdateAutoScalingGroup", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED)
_RESUME = Permission(action="autoscaling:ResumeProcesses", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED)
_OPEN_RECORDS = Permission(action="dynamodb:Query", on=Scope.OPEN_INDEX)

PERMISSIONS: Mapping[str, tuple[Permission, ...]] = {
    "interruption": (
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_HOOKS,
        _ANSWER_HOOK,
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
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_MEMBERS,
        _READ_HISTORY,
        _READ_HOOKS,
        Permission(
            action="autoscaling:TerminateInstanceInAutoScalingGroup", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED
        ),
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _START,
        _LOOK_AT_RUN,
        _READ_POLICIES,
    ),
    "drain": (
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_HOOKS,
        _EXTEND_HOOK,
        *_LAUNCHING,
        _READ_SUBNETS,
        _READ_FACTS,
        _READ_RECORD,
        _CHANGE_RECORD,
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
    "sweep": (
        _READ_INSTANCES,
        _READ_GROUPS,
        _READ_HOOKS,
        _ANSWER_HOOK,
        _EXTEND_HOOK,
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _OPEN_RECORDS,
        _RESIZE,
        _RESUME,
        _LOOK_AT_UPGRADE,
        _START,
        _LOOK_AT_RUN,
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
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
            on=Scope.GROUP_TEMPLATES,
            reason="a version is added, none is changed or removed; which templates groups use is not known beforehand",
        ),
        Permission(action="ec2:DescribeImages", on=Scope.ANYTHING, reason=_LIST_ONLY),
        Permission(
            action="ssm:GetParameter",
            on=Scope.IMAGES,
            reason="AWS publishes one for each version, kind and architecture",
        ),
        _RESIZE,
        Permission(action="autoscaling:SuspendProcesses", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED),
        _RESUME,
        *(
            Permission(
                action=f"eks:{action}",
                on=Scope.NODE_GROUPS,
                reason="node groups come and go after the deployment: any of the configured clusters",
            )
            for action in ("UpdateNodegroupVersion", "DescribeUpdate")
        ),
        Permission(
            action="cloudwatch:DescribeAlarms", on=Scope.ALARMS, reason="policies name the alarms that watch a canary"
        ),
        Permission(action="dynamodb:BatchGetItem", on=Scope.TABLE),
        _READ_RECORD,
        _PUT_RECORD,
        _CHANGE_RECORD,
        _OPEN_RECORDS,
        _START,
        _LOOK_AT_RUN,
        Permission(action="states:StartExecution", on=Scope.UPGRADE_MACHINE),
        _LOOK_AT_UPGRADE,
        _READ_POLICIES,
        Permission(action="eks:DescribeCluster", on=Scope.CLUSTERS),
        Permission(
            action="sts:AssumeRole",
            on=Scope.ANY_ACT_ROLE,
            reason="naming each cluster's role would not fit into a role; each of them names who may wear it",
        ),
    ),
    "sync": (
        _READ_GROUPS,
        _READ_HOOKS,
        Permission(action="autoscaling:PutLifecycleHook", on=Scope.CLUSTER_GROUPS, reason=_ONLY_TAGGED),
        _READ_INSTANCES,
        _READ_SUBNETS,
        _READ_TEMPLATES,
        Permission(action="autoscaling:DescribeLaunchConfigurations", on=Scope.ANYTHING, reason=_LIST_ONLY),
        Permission(
            action="eks:DescribeNodegroup",
            on=Scope.NODE_GROUPS,
            reason="node groups come and go after the deployment: any of the configured clusters",
        ),
        Permission(action="ec2:DescribeInstanceTypes", on=Scope.ANYTHING, reason=_LIST_ONLY),
        Permission(action="ec2:DescribeSpotPriceHistory", on=Scope.ANYTHING, reason=_LIST_ONLY),
        Permission(action="pricing:GetProducts", on=Scope.ANYTHING, reason=_LIST_ONLY),
        _READ_FACTS,
        Permission(action="dynamodb:PutItem", on=Scope.FACTS),
        _READ_POLICIES,
        *_SPEAK_TO_CLUSTERS,
    ),
}
"""Function name -> what it may do. What Lambda itself needs to run it is in EVERY_FUNCTION and IN_A_VPC."""

EVERY_FUNCTION = _LOGS

IN_A_VPC = tuple(
    Permission(
        action=f"ec2:{action}",
        on=Scope.LAMBDA_ITSELF,
        reason="Lambda makes and removes the function's network interfaces, whose ids it alone chooses",
        indirect=True,
    )
    for action in (
        "CreateNetworkInterface",
        "DescribeNetworkInterfaces",
        "DescribeSubnets",
        "DeleteNetworkInterface",
        "AssignPrivateIpAddresses",
        "UnassignPrivateIpAddresses",
    )
)

_TRACES_AND_LOGS = (
    *(
        Permission(
            action=f"xray:{action}",
            on=Scope.ANYTHING,
            reason="traces belong to no resource; Step Functions writes them for its executions",
            indirect=True,
        )
        for action in ("PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets")
    ),
    *(
        Permission(
            action=f"logs:{action}",
            on=Scope.ANYTHING,
            reason="Step Functions delivers logs through CloudWatch's delivery API, which knows no resource",
            indirect=True,
        )
        for action in (
            "CreateLogDelivery",
            "GetLogDelivery",
            "UpdateLogDelivery",
            "DeleteLogDelivery",
            "ListLogDeliveries",
            "PutResourcePolicy",
            "DescribeResourcePolicies",
            "DescribeLogGroups",
        )
    ),
)

STATE_MACHINE = (
    Permission(action="lambda:InvokeFunction", on=Scope.STEP_FUNCTIONS),
    Permission(action="dynamodb:UpdateItem", on=Scope.TERMINATION_RECORDS),
    *_TRACES_AND_LOGS,
)
"""What node-termination's own role may do."""

UPGRADE_MACHINE = (Permission(action="lambda:InvokeFunction", on=Scope.UPGRADE_FUNCTION), *_TRACES_AND_LOGS)
"""What node-group-upgrade's own role may do."""
