"""Ports to what upgrades and disruption watch: service quotas, health and CloudWatch alarms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.alarm import Alarm
    from leeward.model.image import Image


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

    def images(self, ids: Iterable[str]) -> Mapping[str, Image]:
        """Return the AMIs by id; one that EC2 does not know, or that is not shared with the account, is absent."""
        ...

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return the vCPUs that the account may still start in the Region, by its quota less the usage in CloudWatch;
        None where the types do not share the quota of standard instances, or nothing is measured yet.
        """
        ...


class Alarms(Protocol):
    """CloudWatch alarms."""

    def describe(self, names: Iterable[str]) -> Mapping[str, Alarm]:
        """Return metric and composite alarms by name; one that does not exist is absent."""
        ...
