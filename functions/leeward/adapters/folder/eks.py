"""EKS of a snapshot folder: managed node groups and the control plane, and the limits of services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from leeward.adapters.folder.reader import Folder, Refusing
from leeward.errors import ObjectGoneError
from leeward.model.image import Image
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.cache import NodegroupCache
from leeward.ports.clock import Clock


class FolderNodegroups:
    """`ports.eks.Nodegroups` of a folder. A node group that it lacks stands for a call that failed."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group. Raises ObjectGoneError for an absent one, InvalidInputError for an unknown taint
        effect.
        """
        for raw in (element["nodegroup"] for element in self._folder.elements("nodegroups")):
            if raw["nodegroupName"] == name and (not cluster or raw.get("clusterName", cluster) == cluster):
                return Nodegroup.from_json(raw)
        raise ObjectGoneError(f"{self._folder.path('nodegroups')} does not hold it")


class FolderKnownNodegroups:
    """`ports.eks.KnownNodegroups` of a folder. `say` takes one sentence for each node group that it lacks."""

    def __init__(self, folder: Folder, clock: Clock, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._cache = NodegroupCache(FolderNodegroups(folder), clock, chance=lambda: 0.0, say=say)

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """Return the node group, None when the folder lacks it. Raises InvalidInputError for a broken file, which is no
        failed call.
        """
        self._folder.elements("nodegroups")
        return self._cache.get(cluster, name, lasts)


class FolderManagedUpdates(Refusing):
    """Reads of `ports.eks.ManagedUpdates`; others raise NotInSnapshotError."""

    reason = "it has no updates of EKS"

    def __init__(self, folder: Folder) -> None:
        self._nodegroups = FolderNodegroups(folder)

    def nodegroup(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group, as `FolderNodegroups.describe`. Raises ObjectGoneError, InvalidInputError."""
        return self._nodegroups.describe(cluster, name)


class FolderServiceLimits:
    """`ports.monitoring.ServiceLimits` of a folder, which has the control plane's version and images: no instance
    refreshes and scheduled actions are recorded, and no quota is known. Raises InvalidInputError.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def refreshes(self, group: str) -> tuple[str, ...]:
        """Return no instance refreshes."""
        del group
        return ()

    def scheduled(self, group: str) -> tuple[str, ...]:
        """Return no scheduled actions."""
        del group
        return ()

    def control_plane(self, cluster: str) -> str:
        """Return the version of cluster.json, empty where it has none."""
        del cluster
        return next((str(raw["cluster"].get("version", "")) for raw in self._folder.elements("cluster")), "")

    def images(self, ids: Iterable[str]) -> Mapping[str, Image]:
        """Return the images of images.json; of one that it lacks the id alone, as EC2 may well have it."""
        known = {image.id: image for image in map(Image.from_json, self._folder.elements("images"))}
        return {name: known.get(name) or Image(id=name) for name in ids}

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return no number: a folder has no quotas."""
        del types, now, spot
        return None
