"""Role with the statements of the table of permissions, split over an inline policy and managed policies of its own.

Two reasons to split. A role's inline policies may have 10,240 characters in all, and some scopes grow with the number
of clusters. And cdk-nag's finding about a wildcard names the policy and the wildcard, not the action: a right that
changes something has an acknowledgement of its own only where it stands in another policy than the reads of the same
wildcard.
"""

from dataclasses import dataclass
from enum import StrEnum

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.permission import Permission, Scope
from infra.scopes import Scopes


class Policy(StrEnum):
    """Policies of a role; the value is the construct's id and what the policy is about."""

    INLINE = "everything else"
    GROUPS = "Auto Scaling groups of the configured clusters"
    INSTANCES = "instances of the configured clusters"
    TEMPLATES = "launch templates of the configured clusters"
    CLUSTERS = "policies, API servers and roles of the configured clusters"
    CHANGES = "changes of what only a wildcard names"


_BY_SCOPE = {
    Scope.CLUSTER_GROUPS: Policy.GROUPS,
    Scope.CLUSTER_INSTANCES: Policy.INSTANCES,
    Scope.CLUSTER_TEMPLATES: Policy.TEMPLATES,
    **dict.fromkeys((Scope.POLICIES, Scope.CLUSTERS, Scope.NODE_GROUPS), Policy.CLUSTERS),
    **dict.fromkeys((Scope.TAINT_ROLES, Scope.ACT_ROLES), Policy.CLUSTERS),
}
_BESIDE_READS = (Scope.ANYTHING, Scope.LAUNCH_TAGS, Scope.LAMBDA_ITSELF, Scope.NODE_GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleShape:
    """Role to make. `owner`: name of the function or state machine; `function`: of the table of permissions, empty for
    a state machine; `listed`: file of its permissions; `name`: of the role, None: CloudFormation chooses it.
    """

    id: str
    owner: str
    trusts: iam.IPrincipal
    permissions: tuple[Permission, ...]
    listed: str
    function: str = ""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """Construct that holds a policy, and the permissions in it."""

    owner: Construct
    permissions: tuple[Permission, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedRole:
    """Role and its policies."""

    role: iam.Role
    parts: tuple[PolicyPart, ...]


def policy_of(permission: Permission) -> Policy:
    """Return the policy that holds the permission."""
    if permission.on in _BESIDE_READS and not permission.reads:
        return Policy.CHANGES
    return _BY_SCOPE.get(permission.on, Policy.INLINE)


def granted_role(scope: Construct, shape: RoleShape, scopes: Scopes) -> GrantedRole:
    """Create the managed policies, which no other role has, and then the role with them: AWS checks rights of the role
    while it makes a function, an event source or a state machine, so these wait for the role, and the role for its
    policies; a deletion runs the other way. AWS's own managed policies would let every function write to every log
    group.
    """
    by_policy = {policy: tuple(each for each in shape.permissions if policy_of(each) is policy) for policy in Policy}

    def document(policy: Policy) -> iam.PolicyDocument:
        statements = scopes.statements(by_policy[policy], function=shape.function)
        return iam.PolicyDocument(statements=statements, minimize=False)

    managed: dict[Policy, iam.ManagedPolicy] = {
        policy: iam.ManagedPolicy(
            scope,
            policy.name.capitalize(),
            description=f"{shape.owner}: {policy.value}",
            document=document(policy),
        )
        for policy in Policy
        if policy is not Policy.INLINE and not document(policy).is_empty
    }
    role = iam.Role(
        scope,
        shape.id,
        role_name=shape.name,
        assumed_by=shape.trusts,
        description=f"{shape.owner}: exactly what {shape.listed} lists",
        inline_policies={"leeward": document(Policy.INLINE)},
        managed_policies=list(managed.values()),
    )
    parts = [PolicyPart(role, by_policy[Policy.INLINE])]
    parts += [PolicyPart(construct, by_policy[policy]) for policy, construct in managed.items()]
    return GrantedRole(role=role, parts=tuple(parts))
