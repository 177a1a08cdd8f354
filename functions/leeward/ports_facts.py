"""Ports for facts beside the cluster: subnets, types, prices, templates, and where facts are stored.

The rest of the seam is `ports.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.facts import FactKind, Sheet
    from leeward.model.group import Group
    from leeward.model.instance_type import InstanceType
    from leeward.model.launch import LaunchSettings
    from leeward.model.nodegroup import Nodegroup
    from leeward.model.reservation import IpReservation, Pool, Promises
    from leeward.model.subnet import Subnet


class Network(Protocol):
    """EC2's subnets."""

    def subnets(self, ids: Iterable[str]) -> Mapping[str, Subnet]:
        """Return the subnets that EC2 knows, by id, with the addresses that are free now."""
        ...

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """Return the VPCs' subnets that carry a tag with the key, by id."""
        ...


class PriceList(Protocol):
    """Prices of instances in the home Region, US dollars an hour."""

    def on_demand(self, types: Iterable[str]) -> Mapping[str, float]:
        """Return prices by type; those without a price are absent. Raises ObjectGoneError in a partition without a
        price list.
        """
        ...

    def spot(self, types: Iterable[str], zones: Iterable[str], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """Return current prices by type and zone."""
        ...


class Catalog(Protocol):
    """Facts that fn sync has stored."""

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """Return all sheets of the cluster, with one call; a sheet that was never gathered is absent."""
        ...

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Overwrite the sheet, unless one of a later read is there."""
        ...

    def promises(self, cluster: str) -> Promises:
        """Return the addresses reserved by launches in progress, and which spot capacity is short;
        strongly consistent.
        """
        ...

    def run_short(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Record that spot capacity is short; a repeat writes the same, reservations stay unchanged."""
        ...

    def promise(self, cluster: str, instance: str, promise: IpReservation, *, after: int) -> bool:
        """Record one reservation; False when the version is not `after` any more, or the response
        was lost: read again.
        """
        ...


class Nodegroups(Protocol):
    """EKS' managed node groups."""

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group as EKS describes it now. Raises ObjectGoneError, and InvalidInputError for an unusable
        answer.
        """
        ...


class KnownNodegroups(Protocol):
    """Managed node groups, kept for a while (`leeward.node_template.cache`)."""

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """Return the node group, None when it cannot be read: then the tags of its group alone are
        used. Never raises.
        """
        ...


class LaunchSources(Protocol):
    """Launch settings of groups, and properties of instance types."""

    def settings(self, group: Group) -> LaunchSettings | None:
        """Return the settings of its launch template version or launch configuration, None when there is none (any
        more).
        """
        ...

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Return the types that EC2 offers, by name, kept for the life of the process."""
        ...

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return every type of the Region, kept for the life of the process."""
        ...
