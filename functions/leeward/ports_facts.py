"""What the rooms need to know beside the cluster: subnets, types, prices, templates, and where facts are written down.

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
        """Those that EC2 knows, by id, with the addresses that are free now."""
        ...

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """Those of the VPCs that carry a tag with the key, by id."""
        ...


class PriceList(Protocol):
    """What instances cost in the home Region, US dollars an hour."""

    def on_demand(self, types: Iterable[str]) -> Mapping[str, float]:
        """By type; those without a price are absent. Raises ObjectGoneError in a partition without a price list."""
        ...

    def spot(self, types: Iterable[str], zones: Iterable[str], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """By type and zone, as it stands now."""
        ...


class Catalog(Protocol):
    """What fn sync has written down."""

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """All sheets of the cluster, with one call; what was never gathered is absent."""
        ...

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Overwrite the sheet, unless one of a later look is there."""
        ...

    def promises(self, cluster: str) -> Promises:
        """What launches that are being made will take, and which spot capacity is short; strongly consistent."""
        ...

    def run_short(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Write down that spot capacity is short; a repeat writes the same, promises are left alone."""
        ...

    def promise(self, cluster: str, instance: str, promise: IpReservation, *, after: int) -> bool:
        """Write one down; False when the version is not `after` any more, or what came back got lost: read again."""
        ...


class Nodegroups(Protocol):
    """EKS' managed node groups."""

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """As EKS describes it now. Raises ObjectGoneError, and InvalidInputError for an answer that cannot be used."""
        ...


class KnownNodegroups(Protocol):
    """The same, kept for a while (`leeward.node_template.cache`)."""

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """The node group, None when it cannot be had: then the tags of its group alone are used. Never raises."""
        ...


class LaunchSources(Protocol):
    """What groups launch, and what instance types have."""

    def settings(self, group: Group) -> LaunchSettings | None:
        """What its launch template version or launch configuration says, None when there is none (any more)."""
        ...

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Those that EC2 offers, by name, kept for the life of the process."""
        ...

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Every type of the Region, kept for the life of the process."""
        ...
