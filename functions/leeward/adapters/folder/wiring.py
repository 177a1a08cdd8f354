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

EXECUTIONS, QUEUES, READ_ONLY = "it has no executions", "it has no queues", "it can only be read"


def folder_ports(folder: Folder, now: datetime, say: Callable[[str], None]) -> Ports:
    """Build the ports. Nothing is read before it is asked for. `now`: what the clock shows; `say` takes messages that
    matter although nothing fails. A folder is of no deployment: its `deployment` is empty, and no origin is checked.
    """
    groups, clusters, clock = FolderGroups(folder), FolderClusters(folder), FolderClock(now)
    instances: Any = FolderInstances(folder, groups)  # Any: mypy cannot see that the methods it lacks are refused
    changeable: Any = groups
    claims: Any = FolderClaims()
    catalog: Any = FolderCatalog(clusters, clock)
    return Ports(
        clock=clock,
        clusters=clusters,
        instances=instances,
        network=FolderNetwork(folder),
        price_list=FolderPriceList(folder),
        catalog=catalog,
        nodegroups=FolderKnownNodegroups(folder, clock, say),
        launches=FolderLaunchSources(folder),
        groups=changeable,
        claims=claims,
        executions=_absent(EXECUTIONS),
        dead_letters=_absent(QUEUES),
        redelivery=_absent(QUEUES),
        load_balancers=_absent("it has no load balancers"),
        group_changes=_absent(READ_ONLY),
        maxima=_absent("it has no records of sizes"),
        templates=_absent(READ_ONLY),
        managed_updates=_absent("it has no updates of EKS"),
        service_limits=_absent("it has no quotas, instance refreshes and scheduled actions"),
        alarms=_absent("it has no alarms"),
        upgrades=_absent("it has no records of upgrades"),
        upgrade_executions=_absent(EXECUTIONS),
        managed_upgrade_executions=_absent(EXECUTIONS),
        disruptions=_absent("it has no records of disruption runs"),
        disruption_executions=_absent(EXECUTIONS),
        deployment="",
    )


def _absent(holds: str) -> Any:
    return NotInFolder(holds)
