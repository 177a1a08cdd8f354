"""`ports.monitoring.ServiceLimits` of the simulated account, where groups are alone unless a test says so."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from leeward.model.image import Image

AWS_IMAGES = "602401143452"  # the account of EKS' own images


class SimServiceLimits:
    """Limits and running work, as a test sets them. `running`: refreshes by group, `actions`: scheduled ones by group,
    `versions` of clusters, `known_images` by id, any other but the `deregistered` is AWS's; `left`: vCPUs of the quota,
    by spot.
    """

    def __init__(self) -> None:
        self.running: dict[str, tuple[str, ...]] = {}
        self.actions: dict[str, tuple[str, ...]] = {}
        self.versions: dict[str, str] = {}
        self.known_images: dict[str, Image] = {}
        self.deregistered: set[str] = set()
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

    def images(self, ids: Iterable[str]) -> Mapping[str, Image]:
        """Return the images that are known, and as AWS's all others that are not deregistered."""
        found = {
            name: Image(id=name, owner=AWS_IMAGES, alias="amazon") for name in ids if name not in self.deregistered
        }
        return {name: self.known_images.get(name, image) for name, image in found.items()}

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return the vCPUs that the quota leaves, None where none are set."""
        del types, now
        return self.left.get(spot)
