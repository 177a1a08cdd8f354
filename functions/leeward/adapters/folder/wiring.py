"""Construction of the ports of a snapshot folder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leeward.adapters.folder.compute import (
    FolderGroups,
    FolderInstances,
    FolderLaunchSources,
    FolderNetwork,
    FolderPriceList,
    FolderTemplates,
)
from leeward.adapters.folder.eks import FolderKnownNodegroups, FolderManagedUpdates, FolderServiceLimits
from leeward.adapters.folder.kubernetes import FolderClusters
from leeward.adapters.folder.reader import Folder, NotInFolder
from leeward.adapters.folder.records import (
    FolderAlarms,
    FolderCatalog,
    FolderClaims,
    FolderClock,
    FolderDisruptions,
    FolderUpgrades,
)
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
    templates: Any = FolderTemplates(folder)
    managed_updates: Any = FolderManagedUpdates(folder)
    upgrades: Any = FolderUpgrades()
    alarms: Any = FolderAlarms()
    disruptions: Any = FolderDisruptions()
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
        templates=templates,
        managed_updates=managed_updates,
        service_limits=FolderServiceLimits(folder),
        alarms=alarms,
        upgrades=upgrades,
        upgrade_executions=_absent(EXECUTIONS),
        managed_upgrade_executions=_absent(EXECUTIONS),
        disruptions=disruptions,
        disruption_executions=_absent(EXECUTIONS),
        pauses=_absent("it has no pauses"),
        policy_store=_absent("it has policy.yaml"),
        recovery=_absent("it has no zonal shifts"),
        deployment="",
        origins=_origins(folder),
    )


def _origins(folder: Folder) -> frozenset[tuple[str, str]]:
    """Return the cluster's (account, region) by its ARN in cluster.json; empty where the file or the ARN is missing."""
    arns = [str(raw["cluster"].get("arn") or "").split(":") for raw in folder.elements("cluster")]
    return frozenset((arn[4], arn[3]) for arn in arns if len(arn) > 5)


def _absent(reason: str) -> Any:
    return NotInFolder(reason)
