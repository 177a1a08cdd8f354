"""Permissions that Lambda needs to run any of the functions, and those of the state machines' own roles.

Plain data as in `permissions.py`; almost all of it is used by AWS on our behalf.
"""

from infra.permission import Key, Permission, Scope
from infra.table_permissions import changes

EVERY_FUNCTION = (
    *(
        Permission(
            action=action,
            on=Scope.OWN_LOGS,
            reason="Lambda writes the function's log; stream names are its own choice, inside the function's own group",
            indirect=True,
        )
        for action in ("logs:CreateLogStream", "logs:PutLogEvents")
    ),
    *(
        Permission(
            action=action,
            on=Scope.ANYTHING,
            reason="traces belong to no resource; Lambda writes the part of each call of the function",
            indirect=True,
        )
        for action in ("xray:PutTraceSegments", "xray:PutTelemetryRecords")
    ),
)
"""What each function's role holds beside its own line of the table."""


def _interfaces(*actions: str) -> tuple[Permission, ...]:
    return tuple(
        Permission(
            action=f"ec2:{action}",
            on=Scope.LAMBDA_ITSELF,
            reason="Lambda makes and removes the function's network interfaces, whose ids it alone chooses",
            indirect=True,
        )
        for action in actions
    )


LEAVES_A_VPC = _interfaces("DeleteNetworkInterface", "DescribeNetworkInterfaces")
"""Rights of each function that may be in a VPC, held always: when the setting `vpc` is taken away, CloudFormation
changes the role before the function, and Lambda removes the network interfaces minutes later. Without these rights
they would stay, and keep the subnets and security groups from being deleted."""

IN_A_VPC = _interfaces(
    "CreateNetworkInterface", "DescribeSubnets", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"
)
"""Further rights of such a function where `vpc` is set."""

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
    changes(Key.TERMINATION),
    *_TRACES_AND_LOGS,
)
"""What node-termination's own role may do."""

UPGRADE_MACHINE = (Permission(action="lambda:InvokeFunction", on=Scope.UPGRADE_FUNCTION), *_TRACES_AND_LOGS)
"""What the own roles of node-group-upgrade and managed-node-group-upgrade may do: both call fn upgrade."""

DISRUPTION_MACHINE = (Permission(action="lambda:InvokeFunction", on=Scope.DISRUPTION_FUNCTION), *_TRACES_AND_LOGS)
"""What disruption's own role may do."""
