"""Permissions of a function in another account or Region: of its line of the table, those on what belongs to clusters.

Records, queues, state machines and policies are in the deployment's own account; no role elsewhere names them."""

from infra.permission import Permission, Scope
from infra.permissions import PERMISSIONS

ASSUME_MEMBER = Permission(action="sts:AssumeRole", on=Scope.MEMBER_ROLES)
"""Right of a function's own role, beside its line of the table, where clusters are elsewhere."""

OF_CLUSTERS = frozenset(
    {
        Scope.ANYTHING,
        Scope.CLUSTER_GROUPS,
        Scope.CLUSTER_INSTANCES,
        Scope.CLUSTER_TEMPLATES,
        Scope.CLUSTERS,
        Scope.SHIFTED_CLUSTERS,
        Scope.NODE_GROUPS,
        Scope.NODE_ROLES,
        Scope.FLEET_LAUNCHED,
        Scope.LAUNCHED,
        Scope.NAMED,
        Scope.LAUNCHED_WITH,
        Scope.LAUNCH_TAGS,
        Scope.IMAGES,
    }
)


def member_permissions(function: str) -> tuple[Permission, ...]:
    """Return what the function may do there, none for one that only reads records and notifies."""
    return tuple(
        permission
        for permission in PERMISSIONS[function]
        if permission.on in OF_CLUSTERS and not permission.action.startswith(("dynamodb:", "states:"))
    )
