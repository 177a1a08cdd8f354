"""What `leeward doctor` asks of a deployment beside the ports that every room has. Nothing here changes anything.

Each method may raise a LeewardError; what is not there is None or empty. The rest of the seam is `ports.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.doctor.facts import (
        Alarm,
        Binding,
        ClusterRole,
        Counts,
        EksCluster,
        EventSource,
        FailedExecution,
        Function,
        Identity,
        Network,
        Queue,
        Table,
    )
    from leeward.model.concurrency import Concurrency
    from leeward.model.group import Group


class Rbac(Protocol):
    """What one cluster says of itself and of who may do what there."""

    def version(self) -> str:
        """The API server's, such as v1.33.1."""
        ...

    def cluster_role(self, name: str) -> ClusterRole | None:
        """One ClusterRole."""
        ...

    def binding(self, name: str) -> Binding | None:
        """One ClusterRoleBinding."""
        ...

    def aws_auth(self) -> str | None:
        """`mapRoles` of the ConfigMap kube-system/aws-auth."""
        ...


class Deployment(Protocol):
    """Everything that a deployment consists of, with the caller's credentials."""

    def identity(self) -> Identity:
        """Who calls, and where. Raises AccessDeniedError without credentials, InvalidInputError without a Region."""
        ...

    def concurrency(self) -> Concurrency:
        """Lambda's concurrent executions of the account and Region."""
        ...

    def network(self, vpc: str, subnets: Iterable[str]) -> Network:
        """The VPC's endpoints, and whether all of these subnets have another way out."""
        ...

    def function(self, name: str) -> Function | None:
        """One function."""
        ...

    def counts(self, functions: Iterable[str], since: datetime, now: datetime) -> Mapping[str, Counts]:
        """Errors and throttles of each since then."""
        ...

    def oldest_message(self, queue: str, now: datetime) -> float | None:
        """Seconds, None where nothing was measured lately: an idle queue tells nothing."""
        ...

    def machine(self, name: str) -> str | None:
        """Status of a state machine."""
        ...

    def failures(self, machine: str, since: datetime) -> Sequence[FailedExecution]:
        """Executions that failed or timed out since then, newest first; the newest with its error and cause."""
        ...

    def sources(self, function: str) -> Sequence[EventSource]:
        """The function's event source mappings."""
        ...

    def queue(self, name: str) -> Queue | None:
        """One queue."""
        ...

    def table(self, name: str) -> Table | None:
        """One table."""
        ...

    def rules(self, prefix: str) -> Mapping[str, bool]:
        """Rules of the default bus: name -> enabled."""
        ...

    def targets(self, rule: str) -> Sequence[str]:
        """ARNs of a rule's targets."""
        ...

    def alarms(self, prefix: str) -> Mapping[str, Alarm]:
        """By name."""
        ...

    def groups(self) -> Sequence[Group]:
        """Every Auto Scaling group of the account and Region: also those whose tags are wrong."""
        ...

    def cluster(self, name: str) -> EksCluster | None:
        """As EKS describes it."""
        ...

    def entry(self, cluster: str, role: str) -> Sequence[str] | None:
        """Kubernetes groups of the role's access entry."""
        ...

    def rbac(self, cluster: str) -> Rbac:
        """Nothing is called yet."""
        ...
