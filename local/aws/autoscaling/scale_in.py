"""Selection of the instances that a group terminates when it is larger than desired, and Auto Scaling's words for
it.
"""

from __future__ import annotations

from typing import Any

from local.aws.autoscaling import messages
from local.aws.autoscaling.shape import counted

_SURPLUS = "an instance was taken out of service in response to a difference between desired and actual capacity"


def surplus_cause(group: Any, before: int, after: int) -> str:
    """Return the cause of a scale-in termination; the sentences are those of the user guide's examples of scaling
    activities.
    """
    asked = getattr(group, "local_resized", "")
    return f"{asked}At {messages.timestamp()} {_SURPLUS}, shrinking the capacity from {before} to {after}."


def victims(group: Any, surplus: int) -> list[Any]:
    """Return the instances to terminate on scale-in: the fullest zone first, there the oldest template version, then
    the oldest instance.
    """
    chosen: list[Any] = []
    left = counted(group)
    while len(chosen) < surplus:
        free = [state for state in left if not state.protected_from_scale_in]
        if not free:
            break
        zones = [state.availability_zone for state in left]
        victim = min(free, key=lambda state: (-zones.count(state.availability_zone), *_age(state)))
        left.remove(victim)
        chosen.append(victim)
    return chosen


def _age(state: Any) -> tuple[int, float]:
    version = getattr(state.instance, "launched_from", {}).get("Version", "0")
    return int(version), state.instance.launch_time.timestamp()
