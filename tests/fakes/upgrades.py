"""What upgrades need beside the other ports: the simulation's models, with calls counted and failures planned."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from threading import RLock
from typing import Any, Unpack

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.alarm import Alarm
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.ports.eks import ManagedState, ManagedUpdate, UpdateWanted
from leeward.upgrade.record import UpgradeRecord
from simulation.aws.alarms import SimAlarms
from simulation.aws.managed import SimManagedUpdates
from simulation.aws.service_limits import SimServiceLimits
from simulation.aws.templates import SimTemplate, SimTemplates, template_of
from simulation.aws.upgrades import SimUpgrades
from tests.fakes.calls import Calls
from tests.fakes.groups import FakeGroups


class FakeGroupChanges(Calls):
    """Changes what `FakeGroups` returns; launching what is missing is `groups.refill`'s, as ever."""

    def __init__(self, groups: FakeGroups) -> None:
        super().__init__()
        self._groups = groups

    def point_at(self, group: Group, template: LaunchTemplateRef) -> None:
        """Overrides stay."""
        self._call("point_at")
        there = self._there(group.name)
        if there.launch.configuration is not None:
            raise InvalidInputError(f"group {group.name}: found a launch configuration, expected a launch template")
        source = LaunchSource(template=template, overrides=there.launch.overrides)
        self._groups.by_name[group.name] = replace(there, launch=source)

    def raise_to(
        self, group: str, *, desired: int | None = None, maximum: int | None = None, only_from: int | None = None
    ) -> bool:
        """Never lowers."""
        self._call("raise_to")
        there = self._there(group)
        if only_from is not None and there.desired != only_from:
            return False
        wanted, limit = max(desired or 0, there.desired), max(maximum or 0, there.maximum)
        if wanted > limit:
            raise InvalidInputError(f"ValidationError: Desired capacity:{wanted} must be at most max size:{limit}")
        self._groups.by_name[group] = replace(there, desired=wanted, maximum=limit)
        return True

    def put_back_maximum(self, group: str, maximum: int, *, partly: bool = False) -> bool:
        """Not below the desired size."""
        self._call("put_back_maximum")
        there = self._there(group)
        fits = there.desired <= maximum
        if fits or partly:
            lowest = max(maximum, there.desired)
            self._groups.by_name[group] = replace(there, maximum=min(there.maximum, lowest))
        return fits

    def suspend(self, group: str, process: str) -> None:
        """Once."""
        self._call("suspend")
        there = self._there(group)
        self._groups.by_name[group] = replace(there, suspended=tuple(sorted({*there.suspended, process})))

    def resume(self, group: str, process: str) -> None:
        """Not suspended is the same."""
        self._call("resume")
        there = self._there(group)
        self._groups.by_name[group] = replace(there, suspended=tuple(sorted({*there.suspended} - {process})))

    def _there(self, group: str) -> Group:
        if group not in self._groups.by_name:
            raise ObjectGoneError(f"no Auto Scaling group {group}")
        return self._groups.by_name[group]


class FakeTemplates(Calls):
    """`by_name`: launch templates by id and name; `parameters`: SSM's; `missing`: images that EC2 does not have."""

    def __init__(self, templates: Iterable[SimTemplate] = ()) -> None:
        super().__init__()
        self._model = SimTemplates([template_of("web-a"), *templates])
        self.parameters, self.missing = self._model.parameters, self._model.missing

    def version_for(
        self, template: LaunchTemplateRef, image: str, *, token: str, again: bool = False
    ) -> LaunchTemplateRef:
        """The same token gives the same version."""
        self._call("version_for")
        return self._model.version_for(template, image, token=token, again=again)

    def numbered(self, template: LaunchTemplateRef) -> LaunchTemplateRef:
        """With number and id."""
        self._call("numbered")
        return self._model.numbered(template)

    def image_behind(self, parameter: str) -> str:
        """Of those that a test put there."""
        self._call("image_behind")
        return self._model.image_behind(parameter)

    def image_exists(self, image: str) -> bool:
        """All but the missing."""
        self._call("image_exists")
        return self._model.image_exists(image)


class FakeManagedUpdates(Calls):
    """`model.know` makes a node group be there; `model.end` ends an update."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SimManagedUpdates()

    def start(self, cluster: str, nodegroup: str, *, token: str, **wanted: Unpack[UpdateWanted]) -> str:
        """The same token gives the same update."""
        self._call("start")
        return self.model.start(cluster, nodegroup, token=token, **wanted)

    def look(self, cluster: str, nodegroup: str, update: str) -> ManagedUpdate:
        """How it stands."""
        self._call("look")
        return self.model.look(cluster, nodegroup, update)

    def nodegroup(self, cluster: str, name: str) -> Nodegroup:
        """As it stands."""
        self._call("nodegroup")
        return self.model.nodegroup(cluster, name)

    def end(self, update: str, state: ManagedState = ManagedState.SUCCESSFUL, *errors: str) -> None:
        """It ends so."""
        self.model.end(update, state, *errors)


class FakeServiceLimits(Calls):
    """What `model` says."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SimServiceLimits()

    def refreshes(self, group: str) -> tuple[str, ...]:
        """Of the group."""
        self._call("refreshes")
        return self.model.refreshes(group)

    def scheduled(self, group: str) -> tuple[str, ...]:
        """Of the group."""
        self._call("scheduled")
        return self.model.scheduled(group)

    def control_plane(self, cluster: str) -> str:
        """Of the cluster."""
        self._call("control_plane")
        return self.model.control_plane(cluster)

    def images(self, ids: Iterable[str]) -> Mapping[str, Image]:
        """Those that are known."""
        self._call("images")
        return self.model.images(ids)

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Of the quota."""
        self._call("vcpus_left")
        return self.model.vcpus_left(types, now, spot=spot)


class FakeAlarms(Calls):
    """`ring` and `quiet` make an alarm exist and say how it stands."""

    def __init__(self) -> None:
        super().__init__()
        self._model = SimAlarms()
        self.ring, self.quiet = self._model.ring, self._model.quiet

    def describe(self, names: Iterable[str]) -> Mapping[str, Alarm]:
        """Those that exist."""
        self._call("describe")
        return self._model.describe(names)


class FakeUpgrades(Calls):
    """`records` by group."""

    def __init__(self) -> None:
        super().__init__()
        self._table = SimUpgrades()
        self._lock = RLock()
        self.records = self._table.records

    def read(self, group: str) -> UpgradeRecord | None:
        """The latest."""
        self._call("read")
        return self._table.read(group)

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """By group."""
        self._call("read_all")
        return self._table.read_all(groups)

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """None when another writer was faster."""
        with self._lock:
            self._call("write")
            return self._table.write(record)

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """The latest."""
        self._call("keep_plan")
        self._table.keep_plan(group, document)

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """The latest."""
        self._call("plan")
        return self._table.plan(group)
