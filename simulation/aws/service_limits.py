"""`ports.monitoring.ServiceLimits` of the simulated account, where groups are alone unless a test says so."""

from collections.abc import Iterable
from datetime import datetime


class SimServiceLimits:
    """Limits and running work, as a test sets them. `running`: refreshes by group, `actions`: scheduled ones by group,
    `versions` of clusters, `images`: architecture by AMI, `left`: vCPUs of the quota, by spot.
    """

    def __init__(self) -> None:
        self.running: dict[str, tuple[str, ...]] = {}
        self.actions: dict[str, tuple[str, ...]] = {}
        self.versions: dict[str, str] = {}
        self.images: dict[str, str] = {}
        self.left: dict[bool, int] = {}

    def refreshes(self, group: str) -> tuple[str, ...]:
        """Return the instance refreshes of the group that have not ended."""
        return self.running.get(group, ())

    def scheduled(self, group: str) -> tuple[str, ...]:
        """Return the names of the group's scheduled actions."""
        return self.actions.get(group, ())

    def control_plane(self, cluster: str) -> str:
        """Return the version of the cluster's control plane, empty where none is set."""
        return self.versions.get(cluster, "")

    def architecture(self, image: str) -> str:
        """Return the architecture of an image, empty for an unknown image."""
        return self.images.get(image, "")

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return the vCPUs that the quota leaves, None where none are set."""
        del types, now
        return self.left.get(spot)
