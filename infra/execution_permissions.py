"""Permissions to start executions of the state machines, and to read them."""

from infra.permission import Permission, Scope

START_TERMINATION = (
    Permission(action="states:StartExecution", on=Scope.STATE_MACHINE),
    Permission(
        action="states:DescribeExecution",
        on=Scope.EXECUTIONS,
        reason="executions of this state machine are named after instances, which are not known in advance",
    ),
    Permission(
        action="states:SendTaskSuccess",
        on=Scope.ANYTHING,
        reason="task tokens belong to no resource; only the holder of a token can answer it",
    ),
)
"""Rights of every function that claims instances: it starts their execution, or wakes the one that pauses."""

LIST_TERMINATIONS = Permission(action="states:ListExecutions", on=Scope.STATE_MACHINE)

START_DISRUPTION = Permission(action="states:StartExecution", on=Scope.DISRUPTION_MACHINE)
READ_DISRUPTION = Permission(
    action="states:DescribeExecution",
    on=Scope.DISRUPTION_EXECUTIONS,
    reason="executions of this state machine are named after clusters, or freely when they are started manually",
)

START_UPGRADE = Permission(action="states:StartExecution", on=Scope.UPGRADE_MACHINES)
READ_UPGRADE = Permission(
    action="states:DescribeExecution",
    on=Scope.UPGRADE_EXECUTIONS,
    reason="executions of these state machines are named after groups, or freely when they are started manually",
)
