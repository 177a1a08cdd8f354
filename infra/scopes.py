"""Translation of a permission's scope to IAM statements: ARNs from the fixed names, conditions from the settings.

`permissions.py` assigns actions to scopes.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from infra import names as naming
from infra.accounts import roles_at_home
from infra.permission import Key, Permission, Scope
from infra.settings import Settings

_Condition = Mapping[str, Mapping[str, Any]]

_BY_A_SERVICE: _Condition = {"Bool": {"aws:ViaAWSService": "true"}}  # with the caller's rights, never its own code

# Held to the configured clusters by the resource's tag
TAGGED = (Scope.CLUSTER_GROUPS, Scope.CLUSTER_INSTANCES, Scope.CLUSTER_TEMPLATES)


class Scopes:
    """Scopes of one stack. Each ARN is made once: every one of the CDK's calls goes through a pipe to Node.js, and a
    synth asks for tens of thousands.
    """

    def __init__(self, stack: Stack, settings: Settings) -> None:
        self._stack = stack
        self._made: dict[tuple[str, str, str | None], str] = {}
        self._flat: dict[str, Any] = {}
        self.settings = settings
        self.names = settings.names

    def statements(self, permissions: Iterable[Permission], *, function: str = "") -> list[iam.PolicyStatement]:
        """Return one statement per scope and keys, more where conditions have to be OR'ed, none for a scope without
        resources; `function` is the role's function. Statements have no ids: IAM counts their characters too, and with
        many clusters a role is nearly full.
        """
        ordered = sorted(permissions, key=lambda permission: (permission.on.value, permission.keys, permission.action))
        return [
            iam.PolicyStatement(
                actions=actions,
                resources=self.resources(scope, function),
                conditions=condition or None,
            )
            for (scope, keys), group in groupby(ordered, key=lambda permission: (permission.on, permission.keys))
            for actions in [[permission.action for permission in group]]
            if self.resources(scope, function)
            for condition in ([_of_keys(keys)] if keys else self._conditions(scope, function))
        ]

    def resolved(self, resource: str) -> Any:
        """Return an ARN as the template has it: a string, or the function of CloudFormation that makes it."""
        if resource not in self._flat:
            self._flat[resource] = self._stack.resolve(resource)
        return self._flat[resource]

    def resources(self, scope: Scope, function: str = "") -> list[str]:
        """Return the ARNs of a scope."""
        by_cluster, members = self._of_clusters(scope), self.settings.members
        if by_cluster is not None:
            return by_cluster
        table = self._arn("dynamodb", f"table/{self.names.table}")
        named = {
            Scope.OWN_LOGS: [self._arn("logs", f"log-group:/aws/lambda/{self.names.function(function)}:*")],
            Scope.TABLE: [table],
            Scope.OPEN_INDEX: [f"{table}/index/{naming.OPEN_INDEX}"],
            Scope.QUEUE: [self._arn("sqs", self.names.queue), self._arn("sqs", self.names.state_changes)],
            Scope.DEAD_LETTERS: [self._arn("sqs", self.names.dead_letters)],
            Scope.UNDELIVERED: [self._arn("sqs", self.names.undelivered)],
            Scope.STREAM: [f"{table}/stream/*"],
            Scope.BUS: self._buses(),
            Scope.STATE_MACHINE: [self.machine(naming.TERMINATION)],
            Scope.EXECUTIONS: [self._executions(naming.TERMINATION)],
            Scope.STEP_FUNCTIONS: [
                self._arn("lambda", f"function:{self.names.function(name)}") for name in ("terminate", "drain")
            ],
            Scope.UPGRADE_MACHINES: [self.machine(name) for name in naming.UPGRADES],
            Scope.UPGRADE_EXECUTIONS: [self._executions(name) for name in naming.UPGRADES],
            Scope.UPGRADE_FUNCTION: [self._arn("lambda", f"function:{self.names.function('upgrade')}")],
            Scope.DISRUPTION_MACHINE: [self.machine(naming.DISRUPTION)],
            Scope.DISRUPTION_EXECUTIONS: [self._executions(naming.DISRUPTION)],
            Scope.DISRUPTION_FUNCTION: [self._arn("lambda", f"function:{self.names.function('disrupt')}")],
            Scope.CLUSTER_TEMPLATES: [self._arn("ec2", "launch-template/*")],
            **self._launches(),
            Scope.IMAGES: [
                self._public_parameter("aws/service/*"),
                *(self._arn("ssm", f"parameter{name}") for name in self.settings.image_parameters),
            ],
            Scope.CLUSTER_GROUPS: [self._arn("autoscaling", "autoScalingGroup:*")],
            Scope.CLUSTER_INSTANCES: [self._arn("ec2", "instance/*")],
            Scope.NODE_ROLES: list(roles_at_home(self.settings.node_roles, self.settings.account, members)),
            Scope.MEMBER_ROLES: [f"{member.role_arn}-{function}" for member in members],
            Scope.CUSTOMER_KEY: [self.settings.kms_key or ""],
        }
        return named.get(scope, ["*"])

    def _of_clusters(self, scope: Scope) -> list[str] | None:
        """Return ARNs that follow from the configured clusters, of policies for all, else for those in the stack's
        account and Region; None for any other scope.
        """
        clusters = [cluster.name for cluster in self.settings.at_home]
        match scope:
            case Scope.POLICIES:
                served = (cluster.name for cluster in self.settings.clusters)
                return [self._arn("ssm", f"parameter{self.names.policies}/{name}/policies*") for name in served]
            case Scope.CLUSTERS:
                return [self._arn("eks", f"cluster/{name}") for name in clusters]
            case Scope.NODE_GROUPS:
                return [self._arn("eks", f"nodegroup/{name}/*") for name in clusters]
            case Scope.TAINT_ROLES:
                return [self.cluster_role(name, "taint") for name in clusters]
            case Scope.ACT_ROLES:
                return [self.cluster_role(name, "act") for name in clusters]
            case _:
                return None

    def machine(self, name: str) -> str:
        """Return the ARN of one of our state machines, `name` one of `names.MACHINES`."""
        return self._arn("states", f"stateMachine:{self.names.machine(name)}")

    def machines(self) -> str:
        """Return a pattern of the ARNs of our state machines."""
        return self._arn("states", f"stateMachine:{self.names.prefix}-*")

    def _executions(self, machine: str) -> str:
        return self._arn("states", f"execution:{self.names.machine(machine)}:*")

    def rule(self, name: str) -> str:
        """Return the ARN of one of our rules."""
        return self._arn("events", f"rule/{name}")

    def cluster_role(self, cluster: str, access: str) -> str:
        """Return the ARN of a cluster's role; `access`: `taint` or `act`."""
        name = self.names.cluster_role(self._stack.region, cluster, access)
        return self._stack.format_arn(service="iam", region="", resource="role", resource_name=name)

    def _arn(self, service: str, resource: str, account: str | None = None) -> str:
        key = service, resource, account
        if key not in self._made:
            self._made[key] = self._stack.format_arn(
                service=service, account=account, resource=resource, arn_format=ArnFormat.NO_RESOURCE_NAME
            )
        return self._made[key]

    def _launches(self) -> dict[Scope, list[str]]:
        """Return what launches make and use, besides the launch template, by scope."""
        image, snapshot = self._arn("ec2", "image/*", account=""), self._arn("ec2", "snapshot/*", account="")
        instance, fleet = self._arn("ec2", "instance/*"), self._arn("ec2", "fleet/*")
        named = [self._arn("ec2", f"{kind}/*") for kind in ("key-pair", "security-group")]
        kinds = ("network-interface", "placement-group", "spot-instances-request", "subnet", "volume")
        beside = [self._arn("ec2", f"{kind}/*") for kind in kinds]
        return {
            Scope.FLEET_LAUNCHED: [image, fleet, instance, self._arn("ec2", "security-group/*"), *beside],
            Scope.LAUNCHED: [instance],
            Scope.NAMED: [image, snapshot, *named],
            Scope.LAUNCHED_WITH: [self._arn("ec2", "capacity-reservation/*"), *beside],
        }

    def _buses(self) -> list[str]:
        """Return the default bus, and that of the webhooks where a cluster names one."""
        buses = ["default"]
        if any(cluster.webhook for cluster in self.settings.clusters):
            buses.append(self.names.webhook_bus)
        return [self._arn("events", f"event-bus/{bus}") for bus in buses]

    def _services(self, *names: str) -> list[str]:
        """Return the names of services of this Region, as kms:ViaService has them."""
        return [f"{name}.{self._stack.region}.{self._stack.url_suffix}" for name in names]

    def _public_parameter(self, path: str) -> str:
        """Return the ARN of a parameter that AWS publishes: it has no account."""
        return self._arn("ssm", f"parameter/{path}", account="")

    def _conditions(self, scope: Scope, function: str) -> list[_Condition]:
        """Return one condition for each statement that the scope needs; an empty one for most scopes."""
        if scope in TAGGED:
            return self._cluster_tags()
        if scope is Scope.SHIFTED_CLUSTERS and not self.settings.at_home:
            return []
        if scope is Scope.LAUNCHED:
            return [{"ArnLike": {"ec2:LaunchTemplate": self._arn("ec2", "launch-template/*")}}, _BY_A_SERVICE]
        if scope is Scope.NAMED:
            return [{"Bool": {"ec2:IsLaunchTemplateResource": "true"}}, _BY_A_SERVICE]
        ec2 = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
        own = self._arn("lambda", f"function:{self.names.function(function)}")
        held: Mapping[Scope, _Condition] = {
            Scope.NODE_ROLES: {"StringEquals": {"iam:PassedToService": ec2}},
            Scope.BUS: {"StringEquals": {"events:source": self.names.prefix}},
            Scope.SHIFTED_CLUSTERS: {
                "StringEquals": {"arc-zonal-shift:ResourceIdentifier": self.resources(Scope.CLUSTERS)}
            },
            Scope.LAUNCH_TAGS: {"StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}},
            Scope.CUSTOMER_KEY: {"StringEquals": {"kms:ViaService": self._services("dynamodb", "lambda", "sqs")}},
            Scope.LAMBDA_ITSELF: {"ArnNotEquals": {"lambda:SourceFunctionArn": own}},
        }
        return [held.get(scope, {})]

    def _cluster_tags(self) -> list[_Condition]:
        """Return one condition per cluster: keys of one condition are AND'ed, so every cluster's own tag key needs a
        statement.
        """
        clusters = [cluster.name for cluster in self.settings.at_home]
        owned: list[_Condition] = [
            {"StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{name}": ["owned", "shared"]}}
            for name in clusters
        ]
        return [*owned, {"StringEquals": {"aws:ResourceTag/eks:cluster-name": clusters}}] if clusters else []


def _of_keys(keys: Iterable[Key]) -> _Condition:
    """Hold a request to the items of these keys. `ForAllValues` alone is true for a request that has no key at all."""
    return {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [key.value for key in keys]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
