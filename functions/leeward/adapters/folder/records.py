"""Records of a deployment, of which a snapshot folder holds none, and the clock of a folder.

Decides which reads answer "nothing is recorded" (as where Leeward is not installed) and which refuse: what a command
would confuse with an empty answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from leeward.adapters.folder.reader import Refusing
from leeward.errors import NotInSnapshotError
from leeward.model.facts import FactKind, Sheet, cni_content
from leeward.model.zonal_shift import NOT_SHIFTED, ZoneRecord
from leeward.placement.cni import variables_of

if TYPE_CHECKING:
    from leeward.adapters.folder.kubernetes import FolderClusters
    from leeward.disruption.record import DisruptionRecord
    from leeward.model.alarm import Alarm
    from leeward.model.termination import TerminationRecord
    from leeward.model.zonal_shift import ZonalShifts
    from leeward.upgrade.record import UpgradeRecord


class FolderClock:
    """`ports.clock.Clock` that stands still at the time at which the folder is judged."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return that time."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Return at once: nothing changes in a folder."""


class FolderClaims(Refusing):
    """Reads of `ports.records.Claims`: no termination is recorded."""

    reason = "it has no termination records"

    def read(self, instance: str) -> TerminationRecord | None:
        """Return no record."""
        del instance
        return None

    def read_all(self, instances: Iterable[str]) -> Mapping[str, TerminationRecord]:
        """Return no records."""
        del instances
        return {}

    def open_instances(self) -> Sequence[str]:
        """Return no instances."""
        return ()


class FolderUpgrades(Refusing):
    """Reads of `ports.records.Upgrades`: no upgrade is recorded."""

    reason = "it has no records of upgrades"

    def read(self, group: str) -> UpgradeRecord | None:
        """Return no record."""
        del group
        return None

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Return no records."""
        del groups
        return {}


class FolderDisruptions(Refusing):
    """Reads of `ports.records.Disruptions`: no run is recorded."""

    reason = "it has no records of disruption runs"

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Return no record."""
        del cluster
        return None


class FolderCatalog(Refusing):
    """Reads of `ports.records.Catalog`: of the facts that function sync records, the settings of the VPC CNI."""

    reason = "it has no facts of function sync"

    def __init__(self, clusters: FolderClusters, clock: FolderClock) -> None:
        self._clusters, self._clock = clusters, clock

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """Return the sheet of the CNI, from its DaemonSet. Raises InvalidInputError."""
        found = self._clusters.kubernetes(cluster).aws_node()
        variables = None if found is None else variables_of(found)
        return {FactKind.CNI: Sheet(synced=self._clock.now(), content=cni_content(variables))}

    def zonal_shifts(self, cluster: str) -> ZonalShifts:
        """Return no shift: a folder does not have ARC's answer."""
        del cluster
        return NOT_SHIFTED

    def zone_record(self, cluster: str) -> ZoneRecord:
        """Return no evacuation: a folder has no records."""
        return ZoneRecord(cluster=cluster)


class FolderAlarms(Refusing):
    """Alarms, of which a folder has none."""

    def describe(self, names: Iterable[str]) -> Mapping[str, Alarm]:
        """Raise NotInSnapshotError: no answer is better than alarms that seem quiet."""
        raise NotInSnapshotError(f"{', '.join(names)}: a snapshot folder holds no alarms, --cluster NAME reads them")
