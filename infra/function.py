"""Base of all functions of Leeward: code, runtime, log group, environment, and a role of their own."""

from dataclasses import dataclass
from enum import StrEnum

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import names as naming
from infra.accounts import environment_of
from infra.asset import MODELS
from infra.customer_key import imported_key, key_permissions
from infra.member_permissions import ASSUME_MEMBER, member_permissions
from infra.permission import Permission
from infra.permissions import PERMISSIONS
from infra.role import RoleShape, granted_role
from infra.scopes import Scopes
from infra.service_permissions import EVERY_FUNCTION, IN_A_VPC, LEAVES_A_VPC
from infra.settings import Settings
from leeward import __version__
from leeward.model.well_known import deployment_id, hook_mark

OF_CLUSTERS = ("CLUSTERS", "HOOK_TOPICS")  # variables by which a function knows clusters and their hooks


class KubernetesAccess(StrEnum):
    """Role of a cluster for which the function's tokens are made (`manifests/cluster-role.yaml`)."""

    NONE = "none"
    TAINT = "taint"  # reads, and patches Nodes
    ACT = "act"  # drains, and removes Nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDefaults:
    """Settings that every function of one deployment shares."""

    settings: Settings
    scopes: Scopes
    code: lambda_.Code
    environment: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionShape:
    """Settings that differ between functions. `timeout` in seconds, `memory` in MB; `once`: a failed asynchronous call
    is not repeated, because the schedule calls again anyway; `acts`: it acts on clusters and their groups, and knows
    them.
    """

    name: str
    handler: str
    description: str
    timeout: int
    memory: int
    access: KubernetesAccess = KubernetesAccess.NONE
    concurrency: int | None = None
    once: bool = False
    acts: bool = True


class LeewardFunction(Construct):
    """Lambda function with its log group and its role."""

    def __init__(self, scope: Construct, shape: FunctionShape, surroundings: FunctionDefaults) -> None:
        super().__init__(scope, "".join(part.capitalize() for part in shape.name.split("-")) + "Function")
        self.shape, self.names = shape, surroundings.settings.names
        self._elsewhere = bool(surroundings.settings.members)
        name = self.names.function(shape.name)
        key = imported_key(self, surroundings.settings.kms_key)
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/lambda/{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            encryption_key=key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        granted = granted_role(
            self,
            RoleShape(
                id="Role",
                owner=name,
                trusts=iam.ServicePrincipal("lambda.amazonaws.com"),
                permissions=permissions_of(shape, surroundings.settings),
                listed="infra/permissions.py",
                function=shape.name,
                name=_role_name(self, shape, surroundings.settings),
            ),
            surroundings.scopes,
        )
        self.role, self.policies = granted.role, granted.parts
        left_out = () if shape.acts else OF_CLUSTERS
        shared = {name: value for name, value in surroundings.environment.items() if name not in left_out}
        self.variables = shared | self._own_environment()
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            description=shape.description,
            code=surroundings.code,
            handler=shape.handler,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            timeout=Duration.seconds(shape.timeout),
            memory_size=shape.memory,
            role=self.role.without_policy_updates(),
            log_group=self.log_group,
            tracing=lambda_.Tracing.ACTIVE,
            environment=self.variables,
            environment_encryption=key,
            reserved_concurrent_executions=shape.concurrency,
            retry_attempts=0 if shape.once else None,
            max_event_age=Duration.minutes(1) if shape.once else None,
        )
        if lives_in_vpc(shape, surroundings.settings):
            self._enter_vpc(surroundings.settings)

    def add_environment(self, name: str, value: str) -> None:
        """Add one variable, which `environment.py` counts with the others."""
        self.variables[name] = value
        self.function.add_environment(name, value)

    def _own_environment(self) -> dict[str, str]:
        return {
            **({"FUNCTION": self.shape.name} if self._elsewhere else {}),
            "KUBERNETES_ACCESS": self.shape.access.value,
            "AWS_SDK_UA_APP_ID": self.names.function(self.shape.name),
        }

    def _enter_vpc(self, settings: Settings) -> None:
        """Set the VPC on the underlying resource: the construct's own property would attach a managed policy to the
        role.
        """
        resource = self.function.node.default_child
        if settings.vpc and isinstance(resource, lambda_.CfnFunction):
            resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(settings.vpc.subnets), security_group_ids=list(settings.vpc.security_groups)
            )


def lives_in_vpc(shape: FunctionShape, settings: Settings) -> bool:
    """Return whether the function runs in the clusters' VPC: only callers of Kubernetes do; the others start faster
    outside.
    """
    return settings.vpc is not None and may_be_in_vpc(shape)


def may_be_in_vpc(shape: FunctionShape) -> bool:
    """Return whether the setting `vpc` concerns the function."""
    return shape.access is not KubernetesAccess.NONE


def permissions_of(shape: FunctionShape, settings: Settings) -> tuple[Permission, ...]:
    """Return everything that the function's role allows."""
    leaves = LEAVES_A_VPC if may_be_in_vpc(shape) else ()
    in_vpc = IN_A_VPC if lives_in_vpc(shape, settings) else ()
    on_key = key_permissions(PERMISSIONS[shape.name]) if settings.kms_key else ()
    elsewhere = (ASSUME_MEMBER,) if settings.members and member_permissions(shape.name) else ()
    return (*EVERY_FUNCTION, *PERMISSIONS[shape.name], *elsewhere, *leaves, *in_vpc, *on_key)


def _role_name(scope: Construct, shape: FunctionShape, settings: Settings) -> str | None:
    """Return a fixed name where roles of other accounts trust the function's."""
    return settings.names.function_role(Stack.of(scope).region, shape.name) if settings.members else None


def function_environment(stack: Stack, scopes: Scopes, *, table: str, queue: str, dead_letters: str) -> dict[str, str]:
    """Return the environment variables of every function; `table` is a name, `queue` an ARN, `dead_letters` a URL."""
    clusters = [
        {
            "name": cluster.name,
            "region": cluster.region if cluster.role_arn else stack.region,
            "account": cluster.account if cluster.role_arn else stack.account,
            **(
                environment_of(cluster)
                if cluster.role_arn
                else {f"{access}Role": scopes.cluster_role(cluster.name, access) for access in ("taint", "act")}
            ),
        }
        for cluster in scopes.settings.clusters
    ]
    return {
        "LEEWARD_VERSION": __version__,
        "CLUSTERS": stack.to_json_string(clusters),
        "DEPLOYMENT_ID": deployment_id(stack.account, stack.region, scopes.settings.deployment),
        "HOOK_MARK": hook_mark(scopes.settings.deployment),
        "EVENT_SOURCE": scopes.names.prefix,
        "METRICS_NAMESPACE": scopes.names.metrics,
        "TABLE_NAME": table,
        "STATE_MACHINE_ARN": scopes.machine(naming.TERMINATION),
        "QUEUE_ARN": queue,
        "DEAD_LETTER_QUEUE_URL": dead_letters,
        "POLICY_PREFIX": scopes.names.policies,
        "HOOK_TOPICS": stack.to_json_string(list(scopes.settings.sender_topics)),
        "LOG_LEVEL": scopes.settings.log_level,
        **({"POWERTOOLS_LOGGER_SAMPLE_RATE": f"{sampled / 100}"} if (sampled := scopes.settings.log_sampling) else {}),
        "AWS_DATA_PATH": f"/var/task/{MODELS}",
    }
