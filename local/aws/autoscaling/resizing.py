"""Requests for another size, in Auto Scaling's own words: causes of the activities that follow begin with them.

The sentences are those of the user guide's examples of scaling activities ("Verify a scaling activity").
"""

from __future__ import annotations

from typing import Any

from local.aws.autoscaling import messages

_STARTED = "an instance was started in response to a difference between desired and actual capacity"


def note_resize(group: Any, before: int, after: int) -> None:
    """Note the request of SetDesiredCapacity."""
    _note(group, "a user request explicitly set group desired capacity", before, after)


def note_update(group: Any, limits: tuple[int, int], after: int) -> None:
    """Note the request of UpdateAutoScalingGroup before it changes the group; `limits`: MinSize and MaxSize from then
    on.
    """
    if after != group.desired_capacity:
        sizes = f"min: {limits[0]}, max: {limits[1]}, desired: {after}"
        asked = f"a user request update of AutoScalingGroup constraints to {sizes}"
        _note(group, asked, group.desired_capacity, after)


def growth_cause(group: Any, before: int, after: int) -> str:
    """Return the cause of one more launch; it names the request until the requested size is reached."""
    asked, wanted = getattr(group, "local_growing", ("", 0))
    if after >= wanted:
        group.local_growing = ("", 0)
    return f"{asked}At {messages.timestamp()} {_STARTED}, increasing the capacity from {before} to {after}."


def _note(group: Any, request: str, before: int, after: int) -> None:
    change = f"changing the desired capacity from {before} to {after}"
    group.local_resized = f"At {messages.timestamp()} {request} {change}.  "
    group.local_growing = (group.local_resized, after) if after > before else ("", 0)
