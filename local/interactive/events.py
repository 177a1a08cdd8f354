"""Events that a person plays on the local stack, each as AWS sends it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from local.aws.autoscaling.rebalancing import RECOMMENDATION
from local.demo import scenario
from local.interactive.targets import Target
from local.stack import LocalStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Event of a name. `play` sends it and returns what was sent. `spot`: only spot instances get it. `replaced`: the
    group keeps its size. `minutes`: time until EC2 takes the instance, None where it does not.
    """

    play: Callable[[LocalStack, Target], str]
    spot: bool = False
    replaced: bool = True
    minutes: float | None = None


def _spot(stack: LocalStack, target: Target) -> str:
    return _emitted(stack, scenario.spot_warning(stack, target.instance))


def _rebalance(stack: LocalStack, target: Target) -> str:
    arn = f"arn:aws:ec2:{target.zone}:instance/{target.instance}"
    detail = {"instance-id": target.instance}
    stack.control("PUT", f"instances/{target.instance}", {"launchedSecondsAgo": 3600})  # a younger node is left
    return _emitted(
        stack, scenario.envelope(stack, source="aws.ec2", kind=RECOMMENDATION, resources=[arn], detail=detail)
    )


def _maintenance(stack: LocalStack, target: Target) -> str:
    return _emitted(stack, scenario.maintenance(stack, (target.instance,)))


def _scale_in(stack: LocalStack, target: Target) -> str:
    stack.client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=target.instance, ShouldDecrementDesiredCapacity=True
    )
    return f"TerminateInstanceInAutoScalingGroup {target.instance}, ShouldDecrementDesiredCapacity true"


def _emitted(stack: LocalStack, event: Mapping[str, Any]) -> str:
    stack.emit(event)
    kept = ("instance-id", "instance-action", "eventTypeCode", "startTime", "affectedEntities")
    detail = {name: value for name, value in event["detail"].items() if name in kept}
    return f"{event['source']} {event['detail-type']!r} {json.dumps(detail)}"


EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "spot": Event(play=_spot, spot=True, minutes=2),
        "rebalance": Event(play=_rebalance, spot=True),
        "maintenance": Event(play=_maintenance),
        "scale-in": Event(play=_scale_in, replaced=False),
    }
)
