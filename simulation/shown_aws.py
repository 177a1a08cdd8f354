"""View of a world's images, parameters and managed node groups (`aws_view.AwsView`)."""

from collections.abc import Mapping, Sequence, Set

from leeward.model.zonal_shift import ZoneRecord
from leeward.notifications.workflow_events import RunEvent, UpgradeEvent
from simulation.aws.fleet import SimFleet
from simulation.aws.managed import SimUpdate
from simulation.aws.network import addresses
from simulation.aws.recovery import Shifted
from simulation.definitions import UPGRADES
from simulation.endings import Ending
from simulation.faults import Injector
from simulation.ordered import Ordered
from simulation.system import System


class ShownAws:
    """View over the models of its subclass."""

    fleet: SimFleet
    system: System
    injector: Injector
    cluster_name: str

    def image(self, instance: str) -> str:
        """Return the image that the fleet remembers."""
        there = self.fleet.instances.get(instance)
        return there.image if there is not None else ""

    @property
    def launched_images(self) -> Mapping[str, str]:
        """Image of the version from which each group launches, empty while that is deleted."""
        groups = self.fleet.groups.items()
        return {name: "" if g.template.lacks(g.version) else g.template.image(g.version) for name, g in groups}

    @property
    def deleted_versions(self) -> Mapping[str, Set[str]]:
        """Versions by group."""
        return {name: group.template.gone for name, group in self.fleet.groups.items()}

    @property
    def parameters(self) -> Mapping[str, str]:
        """Image by parameter."""
        return self.system.templates.parameters

    @property
    def readable(self) -> bool:
        """True unless our role is denied the parameters."""
        return self.system.templates.readable

    @property
    def decided(self) -> Sequence[tuple[float, float]]:
        """Runs as (begin, end)."""
        return self.system.decided

    @property
    def ordered(self) -> Sequence[Ordered]:
        """Starts of upgrades, and actions on them."""
        return self.system.upgrades.ordered

    @property
    def cluster_deleted(self) -> float | None:
        """Time by the clients of the API servers, in a world that has them."""
        connections = self.system.clusters.connections
        return None if connections is None else connections.deleted.get(self.cluster_name)

    @property
    def notified(self) -> Sequence[UpgradeEvent | RunEvent]:
        """Events of the whole deployment."""
        return self.system.notified.events

    @property
    def endings(self) -> Sequence[Ending]:
        """Ends of executions."""
        return self.system.ends

    def rolls(self, group: str) -> bool:
        """Return whether the input of an open execution names the group."""
        machines = (self.system.machines[name] for name in UPGRADES)
        inputs = (one.input for machine in machines for one in machine.executions.values())
        return any(group == asked.get("group") or group in (asked.get("groups") or ()) for asked in inputs)

    @property
    def short_zones(self) -> Mapping[str, float]:
        """Zones by the launches that failed."""
        return self.injector.short

    def free_addresses(self, zone: str) -> int:
        """Return the addresses of the fleet's subnet."""
        used = sum(addresses(one.type, one.state) for one in self.fleet.instances.values() if one.zone == zone)
        return self.fleet.subnet_size - used

    def stood_still(self, within: float) -> bool:
        """Return whether the faults say so."""
        injector = self.injector
        ended = max(injector.table_away_until, injector.queue_away_until, injector.concurrency_away_until)
        return ended > 0 and self.injector.now() < ended + within

    def is_bad(self, group: str) -> bool:
        """Return whether the version is one of the template's bad ones."""
        there = self.fleet.groups[group]
        return there.version in there.template.bad

    @property
    def written(self) -> Sequence[tuple[str, str]]:
        """Changes of ours through Auto Scaling that had an effect."""
        return self.system.changes.written

    @property
    def updates(self) -> Mapping[str, SimUpdate]:
        """Updates of EKS."""
        return self.system.managed_updates.updates

    @property
    def shifted(self) -> Sequence[Shifted]:
        """Shifts of this cluster."""
        return self.system.recovery.history(self.cluster_name)

    @property
    def known_shifts(self) -> Set[str]:
        """Zones, as the sheet has them."""
        return self.system.catalog.zonal_shifts(self.cluster_name).zones

    @property
    def zone_record(self) -> ZoneRecord:
        """As the table has it."""
        return self.system.catalog.zone_record(self.cluster_name)

    @property
    def switched(self) -> Sequence[tuple[str, str, bool]]:
        """Processes of any cluster's groups."""
        return self.system.changes.switched

    def images_of(self, nodegroup: str) -> Sequence[str]:
        """Return the images as the versions of the template name them."""
        described = self.system.managed_updates.described.values()
        found = next((one for one in described if one.name == nodegroup), None)
        if found is None or found.template is None:
            return ()
        return tuple(self.system.templates.template(found.template[0]).images)
