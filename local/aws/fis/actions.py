"""Actions of AWS FIS that the local AWS plays: their targets and parameters (FIS user guide, "actions reference")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

INTERRUPT = "aws:ec2:send-spot-instance-interruptions"
SHIFT = "aws:arc:start-zonal-autoshift"
WAIT = "aws:fis:wait"
SPOT_INSTANCE, MANAGED_RESOURCE = "aws:ec2:spot-instance", "aws:arc:zonal-shift-managed-resource"
RESOURCE_TYPES = frozenset({SPOT_INSTANCE, MANAGED_RESOURCE})
SHIFTED_TYPES = frozenset({"ASG", "ALB", "NLB", "EKS"})
AUTOSHIFT_STATES = frozenset({"ENABLED", "DISABLED", "ANY"})
NOTICE = timedelta(minutes=2)  # between the interruption notice and the interruption
_DURATION = re.compile(r"PT(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]|[a-z]+\d-az\d")  # us-east-1a or use1-az1


def duration(text: str) -> timedelta:
    """Parse a duration of ISO 8601, such as PT2M. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is not a duration in ISO 8601 format")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Parameter of an action. `accepts` may raise ValueError for a value that it refuses."""

    description: str
    accepts: Callable[[str], bool]
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Action of the catalog. `targets`: resource types by the key that an action names them with."""

    id: str
    description: str
    targets: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def shown(self, arn: str) -> dict[str, Any]:
        """Return the element `action` of GetAction."""
        parameters = {
            name: {"description": one.description, "required": one.required} for name, one in self.parameters.items()
        }
        targets = {key: {"resourceType": kind} for key, kind in self.targets.items()}
        named = {"id": self.id, "arn": arn, "description": self.description, "tags": {}}
        return {**named, "parameters": parameters, "targets": targets}


def _between(low: timedelta, high: timedelta) -> Callable[[str], bool]:
    return lambda text: low <= duration(text) <= high


def _among(allowed: frozenset[str]) -> Callable[[str], bool]:
    return lambda text: set(text.split(",")) <= allowed


_LASTS = _between(timedelta(minutes=1), timedelta(hours=12))
ACTIONS: Mapping[str, Action] = {
    one.id: one
    for one in (
        Action(
            id=INTERRUPT,
            description="Send a spot instance interruption to the target instances.",
            targets={"SpotInstances": SPOT_INSTANCE},
            parameters={
                "durationBeforeInterruption": Parameter(
                    description="The time before the interruption, from 2 to 15 minutes.",
                    accepts=_between(NOTICE, timedelta(minutes=15)),
                    required=True,
                )
            },
        ),
        Action(
            id=SHIFT,
            description="Shift traffic of the target resources away from a zone.",
            targets={"ManagedResources": MANAGED_RESOURCE},
            parameters={
                "duration": Parameter(description="The duration of the shift.", accepts=_LASTS, required=True),
                "availabilityZoneIdentifier": Parameter(
                    description="The name or the id of the zone.",
                    accepts=lambda text: _ZONE.fullmatch(text) is not None,
                    required=True,
                ),
                "managedResourceTypes": Parameter(
                    description="The types of the resources.", accepts=_among(SHIFTED_TYPES)
                ),
                "zonalAutoshiftStatus": Parameter(
                    description="The autoshift status of the resources.",
                    accepts=lambda text: text in AUTOSHIFT_STATES,
                ),
            },
        ),
        Action(
            id=WAIT,
            description="Wait.",
            parameters={"duration": Parameter(description="The duration.", accepts=_LASTS, required=True)},
        ),
    )
}
