"""Part of the world's view (`view.WorldView`) that only the rules about images and managed node groups read."""

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from leeward.model.zonal_shift import ZoneRecord
from leeward.notifications.workflow_events import RunEvent, UpgradeEvent
from simulation.aws.managed import SimUpdate
from simulation.aws.recovery import Shifted
from simulation.endings import Ending
from simulation.ordered import Ordered


class AwsView(Protocol):
    """Present state of images, parameters and EKS. Sequences grow only at their end."""

    def image(self, instance: str) -> str:
        """Return the image from which EC2 launched the instance; empty for an unknown instance."""
        ...

    @property
    def launched_images(self) -> Mapping[str, str]:
        """Image of each group's next instance, by group."""
        ...

    @property
    def deleted_versions(self) -> Mapping[str, Set[str]]:
        """Versions of each group's launch template that their owner has deleted, by group."""
        ...

    @property
    def parameters(self) -> Mapping[str, str]:
        """Image behind each SSM parameter."""
        ...

    @property
    def readable(self) -> bool:
        """True if our role may read the parameters."""
        ...

    @property
    def decided(self) -> Sequence[tuple[float, float]]:
        """Runs of fn disruption-planner without an error, each as (begin, end) in seconds since 1970."""
        ...

    @property
    def ordered(self) -> Sequence[Ordered]:
        """Requests of operators to start or control upgrades."""
        ...

    @property
    def cluster_deleted(self) -> float | None:
        """Time at which EKS has deleted the cluster; None while it exists."""
        ...

    @property
    def over(self) -> bool:
        """True once arrivals and faults have stopped."""
        ...

    @property
    def notified(self) -> Sequence[UpgradeEvent | RunEvent]:
        """Notifications of upgrades and disruption runs."""
        ...

    @property
    def endings(self) -> Sequence[Ending]:
        """Ends of executions of all state machines."""
        ...

    def rolls(self, group: str) -> bool:
        """Return whether an execution that upgrades the group is open."""
        ...

    @property
    def short_zones(self) -> Mapping[str, float]:
        """Zones in which a launch has failed for want of capacity or addresses, and when the last one did."""
        ...

    def free_addresses(self, zone: str) -> int:
        """Return the addresses that the nodes of all clusters leave of the zone's subnet."""
        ...

    def stood_still(self, within: float) -> bool:
        """Return whether the table, the queue or Lambda's concurrency has been away in the last `within` seconds."""
        ...

    def is_bad(self, group: str) -> bool:
        """Return whether the group launches a version whose instances never join."""
        ...

    @property
    def written(self) -> Sequence[tuple[str, str]]:
        """Changes that Leeward has made to groups' templates and sizes, each as (group, change)."""
        ...

    @property
    def updates(self) -> Mapping[str, SimUpdate]:
        """Updates of managed node groups that EKS has accepted, by id, oldest first."""
        ...

    @property
    def shifted(self) -> Sequence[Shifted]:
        """Zonal shifts of the cluster, in the order in which they began."""
        ...

    @property
    def known_shifts(self) -> Set[str]:
        """Zones of a shift by what we have written into the table."""
        ...

    @property
    def zone_record(self) -> ZoneRecord:
        """Evacuations by what is in the table."""
        ...

    @property
    def switched(self) -> Sequence[tuple[str, str, bool]]:
        """Processes of groups that we have suspended (True) or resumed, as (group, process, suspended)."""
        ...

    def images_of(self, nodegroup: str) -> Sequence[str]:
        """Return the image in each version of the node group's own launch template; empty without a template."""
        ...
