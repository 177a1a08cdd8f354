"""Ports to EC2: instances, subnets, prices and launch templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.group import Group
    from leeward.model.image import Image
    from leeward.model.instance import Instance
    from leeward.model.instance_status import Impairment, ScheduledEvent
    from leeward.model.instance_type import InstanceType
    from leeward.model.launch import LaunchSettings, LaunchTemplateRef
    from leeward.model.subnet import Subnet


class Instances(Protocol):
    """EC2 instances."""

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Return the instances that EC2 knows, by id, looked up by filter in batches: an unknown id is absent."""
        ...

    def block_ends(self) -> Mapping[str, datetime]:
        """Return the active Capacity Blocks of the account and Region: reservation -> its end."""
        ...

    def in_reservations(self, reservations: Iterable[str]) -> Mapping[str, str]:
        """Return the instances that were launched into these capacity reservations: instance -> reservation."""
        ...

    def reboot(self, instance: str) -> None:
        """Request a reboot of the instance. EC2 answers before it begins; each request is another reboot. Raises
        ObjectGoneError.
        """
        ...

    def scheduled_events(self, *, recent: bool = False) -> Mapping[str, tuple[ScheduledEvent, ...]]:
        """Return the scheduled events of all running instances of the account and Region, by instance, also those that
        are over. `recent`: an empty answer of the last minutes is good enough.
        """
        ...

    def impaired(self, *, recent: bool = False) -> Mapping[str, Impairment]:
        """Return all running instances of the account and Region whose status checks fail, by id. `recent`: as for
        scheduled events.
        """
        ...


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

    def image(self, name: str) -> Image | None:
        """Return the image with this id, kept for the life of the process; None where EC2 does not return it, or where
        the role may not ask: what it tells is then estimated. Raises LeewardError for other failures.
        """
        ...


class Templates(Protocol):
    """Launch templates and images."""

    def version_for(
        self, template: LaunchTemplateRef, image: str, *, token: str, again: bool = False
    ) -> LaunchTemplateRef:
        """Return a version of the template like this one, with that image; the same token gives the same version.
        `again`: another one also where this one has the image, whose parameter names a newer image now.
        """
        ...

    def numbered(self, template: LaunchTemplateRef) -> LaunchTemplateRef:
        """Return the reference with the number that `$Latest` or `$Default` means now, and with its id. Raises
        ObjectGoneError.
        """
        ...

    def image_behind(self, parameter: str) -> str:
        """Return the AMI id in an SSM parameter, such as EKS' recommended images. Raises ObjectGoneError."""
        ...

    def image_exists(self, image: str) -> bool:
        """Return whether EC2 knows the AMI and it is available."""
        ...
