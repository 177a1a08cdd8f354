"""Ports to what surrounds groups: service quotas, health and CloudWatch alarms; Application Recovery Controller (ARC),
which shifts the traffic of a cluster away from a zone; Elastic Load Balancing, through which a drain waits for the
deregistration of its node's targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.alarm import Alarm
    from leeward.model.image import Image
    from leeward.model.instance import Instance
    from leeward.model.load_balancing import LoadBalancerTarget
    from leeward.model.zonal_shift import ZonalShift


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


class RecoveryController(Protocol):
    """Zonal shifts and autoshifts of clusters. Read-only: who starts a shift ends it."""

    def shifts(self, cluster: str, now: datetime) -> Sequence[ZonalShift]:
        """Return the shifts in effect for the cluster, by zone id and without zone names. None for a cluster that ARC
        does not manage: zonal shift is not enabled for it.
        """
        ...


class LoadBalancers(Protocol):
    """Target groups tagged for a cluster. Read-only: the controller that registered a target deregisters it."""

    def targets(self, cluster: str, instance: Instance) -> Sequence[LoadBalancerTarget]:
        """Return the cluster's targets on the instance with their current health, without those in state `unused`.

        The list of target groups is cached for up to a minute.
        """
        ...
