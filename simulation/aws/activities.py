"""A group's scaling history, in Auto Scaling's own sentences: DescribeScalingActivities as the product reads it.

The sentences are those of the API reference's examples (TerminateInstanceInAutoScalingGroup) and of the AWS knowledge
centre's articles on scale-in and on terminated instances."""

from collections import deque
from datetime import UTC, datetime

from leeward.model.group import ScalingActivity
from leeward.model.times import format_instant

KEPT = 1000  # activities of a group; AWS keeps six weeks
HEALTH = "an instance was taken out of service in response to an EC2 health check indicating it has been terminated"
UNHEALTHY = "an instance was taken out of service in response to a user health-check"
REBALANCED = "an instance was taken out of service in response to an instance rebalance recommendation"
REFRESHED = "an instance was taken out of service in response to an instance refresh"
BALANCED = "instances were launched to balance instances with other zones, and an instance was taken out of service"
STARTED = "an instance was started in response to a difference between desired and actual capacity"
DIFFERENCE = "an instance was taken out of service in response to a difference between desired and actual capacity"


class History:
    """Scaling activities of one group; they are read newest first."""

    def __init__(self) -> None:
        self._activities: deque[ScalingActivity] = deque(maxlen=KEPT)
        self._resized = ""
        self._growing: tuple[str, int] | None = None  # the sentence of the request for a larger size, and that size

    def left(self, instance: str, cause: str, now: float, *, sizes: tuple[int, int] | None = None) -> None:
        """Record that an instance leaves; `sizes` (before, after) where that shrinks the group."""
        shrunk = "" if sizes is None else f", shrinking the capacity from {sizes[0]} to {sizes[1]}"
        self._add(f"At {_when(now)} {cause}{shrunk}.", instance, now)

    def asked(
        self, instance: str, now: float, *, sizes: tuple[int, int] | None, verb: str = "taken out of service"
    ) -> None:
        """Record a request that names this instance, with decrement where `sizes` says so."""
        self.left(instance, f"instance {instance} was {verb} in response to a user request", now, sizes=sizes)

    def resized(self, before: int, after: int, now: float) -> None:
        """Record a request for another desired size. The next activity of the group begins with its sentence."""
        self._resized = (
            f"At {_when(now)} a user request explicitly set group desired capacity changing the desired capacity from "
            f"{before} to {after}.  "
        )
        self._growing = (self._resized, after) if after > before else None

    def updated(self, limits: tuple[int, int], before: int, after: int, now: float) -> None:
        """Record another desired size by UpdateAutoScalingGroup; `limits`: the current MinSize and MaxSize."""
        self._resized = (
            f"At {_when(now)} a user request update of AutoScalingGroup constraints to min: {limits[0]}, max: "
            f"{limits[1]}, desired: {after} changing the desired capacity from {before} to {after}.  "
        )
        self._growing = (self._resized, after)

    def grown(self, now: float, sizes: tuple[int, int]) -> None:
        """Record a launch that a requested size asks for; other launches record nothing, since no reader needs them."""
        if self._growing is None:
            return
        asked, wanted = self._growing
        grown = f"{STARTED}, increasing the capacity from {sizes[0]} to {sizes[1]}"
        self._add(f"{asked}At {_when(now)} {grown}.", None, now)
        if sizes[1] >= wanted:
            self._growing = None

    def surplus(self, instance: str, now: float, sizes: tuple[int, int]) -> None:
        """Record that the group is larger than its desired size and chose this instance."""
        shrunk = f"{DIFFERENCE}, shrinking the capacity from {sizes[0]} to {sizes[1]}"
        self._add(f"{self._resized}At {_when(now)} {shrunk}.", instance, now)

    def since(self, moment: datetime) -> tuple[ScalingActivity, ...]:
        """Return the activities since `moment`, newest first."""
        return tuple(activity for activity in reversed(self._activities) if activity.at >= moment)

    def _add(self, cause: str, instance: str | None, now: float) -> None:
        self._activities.append(ScalingActivity(at=datetime.fromtimestamp(now, UTC), cause=cause, leaves=instance))


def _when(now: float) -> str:
    return format_instant(datetime.fromtimestamp(int(now), UTC))
