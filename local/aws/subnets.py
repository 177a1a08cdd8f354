"""Subnets with other users: addresses that are in use besides those of the instances here.

moto counts one address for each interface; pods, load balancers and other users of the subnet take the rest.
"""

from __future__ import annotations

from typing import Any

from moto.ec2.models.subnets import Subnet

from local.aws.control import Control, Request
from local.aws.moto_backend import model_lock
from local.aws.pins import expect, replace


class Tenants:
    """Addresses held by other users, by subnet id. Instances started or terminated afterwards are counted as usual."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}  # requested, and not yet calculated
        self._held: dict[str, int] = {}

    def install(self, control: Control) -> None:
        """Patch what DescribeSubnets and launches read, and add the route `PUT subnets/ID`."""
        counted = Subnet.__dict__.get("available_ip_address_count")
        expect("moto", isinstance(counted, property), "Subnet.available_ip_address_count is no property")
        assert isinstance(counted, property)
        replace(Subnet, available_ip_address_count=property(lambda subnet: self._free(counted, subnet)))
        control.add("PUT", "subnets/{id}", self._put)

    def _free(self, counted: property, subnet: Any) -> int:
        there = int(counted.__get__(subnet))
        if subnet.id in self._left:
            self._held[subnet.id] = max(there - self._left.pop(subnet.id), 0)
        return max(there - self._held.get(subnet.id, 0), 0)

    def _put(self, request: Request) -> None:
        """Let other users take or release addresses until `freeIps` are left; null: they release all."""
        name, free = request.path["id"], request.body.get("freeIps")
        with model_lock:
            self._held.pop(name, None)
            self._left.pop(name, None)
            if free is not None:
                self._left[name] = int(free)
