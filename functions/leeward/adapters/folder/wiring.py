"""Construction of the ports of a snapshot folder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leeward.adapters.folder.autoscaling import FolderGroups, FolderInstances
from leeward.adapters.folder.compute import (
    FolderKnownNodegroups,
    FolderLaunchSources,
    FolderNetwork,
    FolderPriceList,
)
from leeward.adapters.folder.kubernetes import FolderClusters
from leeward.adapters.folder.reader import Folder
from leeward.adapters.folder.records import FolderCatalog, FolderClaims, FolderClock
from leeward.adapters.folder.refusals import NotInFolder
from leeward.ports import Ports

_ABSENT = {
    "executions": "it has no executions",
    "dead_letters": "it has no queues",
    "redelivery": "it has no queues",
    "load_balancers": "it has no load balancers",
    "group_changes": "it can only be read",
    "maxima": "it has no records of sizes",
    "templates": "it can only be read",
    "managed_updates": "it has no updates of EKS",
    "service_limits": "it has no quotas, instance refreshes and scheduled actions",
    "alarms": "it has no alarms",
    "upgrades": "it has no records of upgrades",
    "upgrade_executions": "it has no executions",
    "disruptions": "it has no records of disruption runs",
    "disruption_executions": "it has no executions",
}


def folder_ports(folder: Folder, now: datetime, say: Callable[[str], None]) -> Ports:
    """Build the ports. Nothing is read before it is asked for. `now`: what the clock shows; `say` takes messages that
    matter although nothing fails. A folder is of no deployment: its `deployment` is empty, and no origin is checked.
    """
    groups, clusters, clock = FolderGroups(folder), FolderClusters(folder), FolderClock(now)
    absent: dict[str, Any] = {name: NotInFolder(holds) for name, holds in _ABSENT.items()}
    readers: dict[str, Any] = {  # mypy cannot see that the methods which they lack are refused
        "groups": groups,
        "instances": FolderInstances(folder, groups),
        "claims": FolderClaims(),
        "catalog": FolderCatalog(clusters, clock),
    }
    return Ports(
        clock=clock,
        clusters=clusters,
        network=FolderNetwork(folder),
        price_list=FolderPriceList(folder),
        nodegroups=FolderKnownNodegroups(folder, clock, say),
        launches=FolderLaunchSources(folder),
        deployment="",
        **readers,
        **absent,
    )
