"""Subnets with other users: addresses in use beyond those of the local instances.

moto counts one address for each network interface. In a real subnet, pods, load balancers and others use more.
"""

from __future__ import annotations

from typing import Any

from moto.ec2.models.subnets import Subnet

from local.aws.control import Control, Request
from local.aws.moto_backend import model_lock
from local.aws.pins import expect, replace


class Tenants:
    """Addresses that other users hold, by subnet id. Instances started or terminated later are counted as usual."""

    def __init__(self) -> None:
        self._requested: dict[str, int] = {}  # free addresses to leave, until the next read turns them into `_held`
        self._held: dict[str, int] = {}

    def install(self, control: Control) -> None:
        """Patch the count that DescribeSubnets and launches read, and add the route `PUT subnets/ID`."""
        counted = Subnet.__dict__.get("available_ip_address_count")
        expect("moto", isinstance(counted, property), "Subnet.available_ip_address_count is no property")
        assert isinstance(counted, property)
        replace(Subnet, available_ip_address_count=property(lambda subnet: self._free(counted, subnet)))
        control.add("PUT", "subnets/{id}", self._put)

    def _free(self, counted: property, subnet: Any) -> int:
        unheld = int(counted.__get__(subnet))
        if subnet.id in self._requested:
            self._held[subnet.id] = max(unheld - self._requested.pop(subnet.id), 0)
        return max(unheld - self._held.get(subnet.id, 0), 0)

    def _put(self, request: Request) -> None:
        """Let other users take or release addresses until `freeIps` are free; null: they release all of theirs."""
        name, free = request.path["id"], request.body.get("freeIps")
        with model_lock:
            self._held.pop(name, None)
            self._requested.pop(name, None)
            if free is not None:
                self._requested[name] = int(free)
