"""`ports.compute.Instances` and `Network` on EC2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call
from leeward.adapters.cache import RecentlyEmpty
from leeward.model.instance import Instance
from leeward.model.times import as_instant

if TYPE_CHECKING:
    from leeward.model.instance_status import Impairment, ScheduledEvent
    from leeward.model.subnet import Subnet
    from leeward.ports.clock import Clock

FILTER_VALUES = 200  # EC2 takes at most 200 values in one filter
MOST_NAMED = 3  # instances in an error
BLOCKS = [{"Name": "state", "Values": ["active"]}, {"Name": "end-date-type", "Values": ["limited"]}]
CHECKS = ("system-status.status", "instance-status.status", "attached-ebs-status.status")
EMPTY_LASTS = timedelta(seconds=150)  # the minute reconciler asks in each third minute while nothing fails


class Ec2Instances:
    """Instances by DescribeInstances with a filter: a call by InstanceIds fails as a whole for one unknown id."""

    def __init__(self, clients: AwsClients, clock: Clock | None = None) -> None:
        self._clients = clients
        self._no_events, self._no_impaired = RecentlyEmpty(clock, EMPTY_LASTS), RecentlyEmpty(clock, EMPTY_LASTS)

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Return the instances that EC2 knows, by id; AWS calls grow with the ids / 200."""
        found: dict[str, Instance] = {}
        for chunk in chunks(ids, FILTER_VALUES):
            with aws_call("ec2:DescribeInstances", ", ".join(chunk[:MOST_NAMED])):
                arguments = {"Filters": [{"Name": "instance-id", "Values": chunk}]}
                for page in pages(self._clients.get("ec2"), "describe_instances", **arguments):
                    for reservation in page.get("Reservations", ()):
                        for raw in reservation.get("Instances", ()):
                            found[raw["InstanceId"]] = Instance.from_json(raw)
        return found

    def block_ends(self) -> Mapping[str, datetime]:
        """Return the ends of active Capacity Blocks, with one paged call."""
        found: dict[str, datetime] = {}
        with aws_call("ec2:DescribeCapacityReservations", "Capacity Blocks"):
            for page in pages(self._clients.get("ec2"), "describe_capacity_reservations", Filters=BLOCKS):
                for raw in page.get("CapacityReservations", ()):
                    if raw.get("ReservationType") == "capacity-block" and raw.get("EndDate"):
                        found[raw["CapacityReservationId"]] = as_instant(raw["EndDate"])
        return found

    def in_reservations(self, reservations: Iterable[str]) -> Mapping[str, str]:
        """Return the reservation of each instance; AWS calls grow with the reservations / 200."""
        found: dict[str, str] = {}
        for chunk in chunks(reservations, FILTER_VALUES):
            with aws_call("ec2:DescribeInstances", f"{len(chunk)} capacity reservations from {chunk[0]}"):
                arguments = {"Filters": [{"Name": "capacity-reservation-id", "Values": chunk}]}
                for page in pages(self._clients.get("ec2"), "describe_instances", **arguments):
                    for reservation in page.get("Reservations", ()):
                        for raw in reservation.get("Instances", ()):
                            found[raw["InstanceId"]] = raw.get("CapacityReservationId", "")
        return found

    def reboot(self, instance: str) -> None:
        """Request a reboot with one call, which botocore does not repeat: each one is another reboot."""
        with aws_call("ec2:RebootInstances", instance):
            self._clients.get("ec2", retries=False).reboot_instances(InstanceIds=[instance])

    def scheduled_events(self, *, recent: bool = False) -> Mapping[str, tuple[ScheduledEvent, ...]]:
        """Return scheduled events, with one paged call that lists only instances that have any; without a call where
        `recent` allows the last answer and that was empty.
        """
        return self._no_events.get(self._scheduled_events, recent=recent)

    def impaired(self, *, recent: bool = False) -> Mapping[str, Impairment]:
        """Return impaired instances, with one call for each kind of check, because EC2 joins filters with AND; each
        returns only those that fail it. Without a call where `recent` allows the last answer and that was empty.
        """
        return self._no_impaired.get(self._impaired, recent=recent)

    def _scheduled_events(self) -> Mapping[str, tuple[ScheduledEvent, ...]]:
        from leeward.model.instance_status import CODES, ScheduledEvent  # late: the minute reconciler alone asks

        found: dict[str, tuple[ScheduledEvent, ...]] = {}
        with aws_call("ec2:DescribeInstanceStatus", "event.code"):
            arguments = {"Filters": [{"Name": "event.code", "Values": list(CODES)}]}
            for page in pages(self._clients.get("ec2"), "describe_instance_status", **arguments):
                for raw in page.get("InstanceStatuses", ()):
                    name = raw["InstanceId"]
                    found[name] = tuple(ScheduledEvent.from_json(name, event) for event in raw.get("Events") or ())
        return found

    def _impaired(self) -> Mapping[str, Impairment]:
        from leeward.model.instance_status import IMPAIRED, Impairment  # late, as above

        found: dict[str, Impairment] = {}
        for check in CHECKS:
            with aws_call("ec2:DescribeInstanceStatus", check):
                arguments = {"Filters": [{"Name": check, "Values": [IMPAIRED]}]}
                for page in pages(self._clients.get("ec2"), "describe_instance_status", **arguments):
                    known = (Impairment.from_json(raw) for raw in page.get("InstanceStatuses", ()))
                    found.update((one.instance, one) for one in known if one is not None)
        return found


class Ec2Network:
    """Subnets by filter: a call by id fails as a whole for one that is unknown."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def subnets(self, ids: Iterable[str]) -> Mapping[str, Subnet]:
        """Return the subnets that EC2 knows, with the addresses that are free now."""
        return {subnet.id: subnet for subnet in self._subnets("subnet-id", ids)}

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """Return the subnets of the VPCs that have a tag with the key."""
        return {subnet.id: subnet for subnet in self._subnets("vpc-id", vpcs, ("tag-key", key))}

    def _subnets(self, name: str, values: Iterable[str], *more: tuple[str, str]) -> Iterator[Subnet]:
        from leeward.model.subnet import Subnet  # late: the spot path reads no subnets

        for chunk in chunks(values, FILTER_VALUES):
            with aws_call("ec2:DescribeSubnets", f"{len(chunk)} with {name} from {chunk[0]}"):
                filters = [(name, chunk), *((key, [value]) for key, value in more)]
                for page in self._pages("describe_subnets", *filters):
                    yield from (Subnet.from_json(raw) for raw in page.get("Subnets", ()))

    def _pages(self, operation: str, *filters: tuple[str, list[str]]) -> Iterator[Mapping[str, Any]]:
        wanted = [{"Name": name, "Values": values} for name, values in filters]
        return pages(self._clients.get("ec2"), operation, Filters=wanted)
