"""Ports to what an upgrade watches: service quotas, health and CloudWatch alarms."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol


class ServiceLimits(Protocol):
    """Reads that only pre-flight makes: what runs beside a group, and what the account and the cluster allow. Any of
    them may be denied: an input that cannot be read is not judged.
    """

    def refreshes(self, group: str) -> tuple[str, ...]:
        """Return the ids of the group's instance refreshes that have not ended."""
        ...

    def scheduled(self, group: str) -> tuple[str, ...]:
        """Return the names of its scheduled actions that are still to come."""
        ...

    def control_plane(self, cluster: str) -> str:
        """Return the Kubernetes version of the cluster, such as 1.33; empty where EKS does not report it."""
        ...

    def architecture(self, image: str) -> str:
        """Return the architecture of an AMI, in Kubernetes' term; empty for an image that EC2 does not know."""
        ...

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return the vCPUs that the account may still start in the Region, by its quota less the usage in CloudWatch;
        None where the types do not share the quota of standard instances, or nothing is measured yet.
        """
        ...


class Alarms(Protocol):
    """CloudWatch alarms."""

    def ringing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those in state ALARM, and those that do not exist: a canary without a working alarm does not pass."""
        ...
