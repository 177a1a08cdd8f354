"""LaunchInstances call: synchronous, in one zone, idempotent by client token.

Rules from "Launch instances with synchronous provisioning" in the Auto Scaling user guide: a launch template is needed,
a mixed instances policy must be all on-demand or all spot, a group over several zones needs a zone or a subnet in the
call, at most 100 instances a call, and the desired capacity rises by what was launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError

from local.aws.autoscaling import shape
from local.aws.autoscaling.engine import Engine, is_suspended, key_of
from local.aws.autoscaling.hooks import GroupKey
from local.aws.autoscaling.shape import CapacityError, Offering

MAXIMUM_PER_CALL = 100


class IdempotentParameterMismatch(AutoscalingClientError):
    """Error: a client token was used before for another request."""

    code = "IdempotentParameterMismatch"
    message = "The client token has already been used with different request parameters."


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request of the call."""

    capacity: int
    zones: tuple[str, ...]
    zone_ids: tuple[str, ...]
    subnets: tuple[str, ...]
    retry: str


class LaunchInstances:
    """Handler of the call; it remembers each client token and its answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers: dict[tuple[GroupKey, str], tuple[Request, dict[str, Any]]] = {}

    def answer(self, group: Any, token: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call's result. Raises moto's ``ValidationError`` and ``IdempotentParameterMismatch``."""
        request = Request(
            capacity=int(parameters.get("RequestedCapacity") or 0),
            zones=tuple(parameters.get("AvailabilityZones") or ()),
            zone_ids=tuple(parameters.get("AvailabilityZoneIds") or ()),
            subnets=tuple(parameters.get("SubnetIds") or ()),
            retry=str(parameters.get("RetryStrategy") or "none"),
        )
        known = self._answers.get((key_of(group), token))
        if known is not None:
            if known[0] != request:
                raise IdempotentParameterMismatch
            return known[1]
        _check(group, request)
        places = _places(group, request)
        result = self._launch(group, request, places)
        result["ClientToken"] = token
        self._answers[key_of(group), token] = (request, result)
        return result

    def _launch(self, group: Any, request: Request, places: list[Offering]) -> dict[str, Any]:
        launched: list[tuple[Offering, str]] = []
        errors: list[dict[str, Any]] = []
        for offering in places:
            while len(launched) < request.capacity:
                try:
                    state = self._engine.launch_one(group, offering, "LaunchInstances was called.")
                except CapacityError as refused:
                    failed = {"ErrorCode": refused.code, "ErrorMessage": refused.message}
                    errors.append({**_described(group, offering), **failed})
                    break
                launched.append((offering, state.instance.id))
        group.desired_capacity += len(launched)
        missing = request.capacity - len(launched)
        if missing and request.retry == "retry-with-group-configuration":
            group.desired_capacity += missing
            self._engine.reconcile(group)
        return {
            "AutoScalingGroupName": group.name,
            "Instances": _collected(group, launched),
            "Errors": errors if missing else [],
        }


def _check(group: Any, request: Request) -> None:
    if not 1 <= request.capacity <= MAXIMUM_PER_CALL:
        raise ValidationError(f"RequestedCapacity must be between 1 and {MAXIMUM_PER_CALL}.")
    if group.ec2_launch_template is None:
        raise ValidationError("LaunchInstances is only supported for Auto Scaling groups that use a launch template.")
    shares = shape.distribution(group)
    if shares is not None and shares not in {(0, 0)} and shares[1] != 100:
        raise ValidationError("LaunchInstances is not supported for groups with mixed purchase options.")
    if is_suspended(group, "Launch"):
        raise ValidationError("The Launch process of the Auto Scaling group is suspended.")
    if (group.desired_capacity or 0) + request.capacity > group.max_size:
        raise ValidationError(
            f"The requested capacity {request.capacity} would raise the desired capacity {group.desired_capacity} "
            f"above the maximum size {group.max_size} of the Auto Scaling group."
        )


def _places(group: Any, request: Request) -> list[Offering]:
    """Return the offerings within the zone or subnet that the call names; several zones without a name are refused."""
    if sum(map(bool, (request.zones, request.zone_ids, request.subnets))) > 1:
        raise ValidationError("Specify only one of AvailabilityZones, AvailabilityZoneIds and SubnetIds.")
    offerings = list(shape.offerings(group, shape.next_market(group)))
    if request.subnets:
        found = [offering for offering in offerings if offering.subnet_id in request.subnets]
        _require(found, f"The subnet {request.subnets[0]} is not one of the group's subnets.")
        return found
    if request.zones or request.zone_ids:
        wanted = {*request.zones, *request.zone_ids}
        found = [item for item in offerings if item.zone in wanted or _zone_id(group, item.zone) in wanted]
        _require(found, f"The Availability Zone {sorted(wanted)[0]} is not one of the group's Availability Zones.")
        return found
    zones = {offering.zone for offering in offerings}
    if len(zones) > 1:
        raise ValidationError(
            "AvailabilityZones, AvailabilityZoneIds or SubnetIds is required for a group with several zones."
        )
    return offerings


def _require(found: list[Offering], message: str) -> None:
    if not found:
        raise ValidationError(message)


def _zone_id(group: Any, zone: str) -> str | None:
    for known in group.ec2_backend.describe_availability_zones():
        if known.name == zone:
            return str(known.zone_id)
    return None


def _described(group: Any, offering: Offering) -> dict[str, Any]:
    return {
        "InstanceType": offering.instance_type,
        "MarketType": offering.market,
        "SubnetId": offering.subnet_id,
        "AvailabilityZone": offering.zone,
        "AvailabilityZoneId": _zone_id(group, offering.zone),
    }


def _collected(group: Any, launched: list[tuple[Offering, str]]) -> list[dict[str, Any]]:
    collections: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    for offering, instance_id in launched:
        key = (offering.instance_type, offering.zone, offering.subnet_id)
        entry = collections.setdefault(key, {**_described(group, offering), "InstanceIds": []})
        entry["InstanceIds"].append(instance_id)
    return list(collections.values())
