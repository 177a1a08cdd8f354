"""Subnets that somebody else fills: addresses that are taken beside those of the instances here.

moto counts one address for each interface; pods, load balancers and whoever shares the subnet take the rest."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.subnets import Subnet

from local.aws.control import Control, Request
from local.aws.moto_backend import model_lock
from local.aws.pins import expect, replace


class Tenants:
    """Who else holds addresses, by subnet id. Instances that come and go afterwards are counted as always."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}  # asked for, and not yet reckoned
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
        """Others take or give up addresses until `freeIps` are left; null: they give up all."""
        name, free = request.path["id"], request.body.get("freeIps")
        with model_lock:
            self._held.pop(name, None)
            self._left.pop(name, None)
            if free is not None:
                self._left[name] = int(free)
