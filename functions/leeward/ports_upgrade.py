"""Ports of upgrades beside the ports that every package has: changes to a group and to its launch template, EKS' own
updates, the alarms that a canary watches, and the record of an upgrade. The rest of the seam is `ports.py`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.upgrade.record import UpgradeRecord


class GroupChanges(Protocol):
    """Writes to an Auto Scaling group. Desired size is only ever raised, maximum never set below the desired size."""

    def point_at(self, group: Group, template: LaunchTemplateRef) -> None:
        """Launch new instances from this version from now on: of the group's launch template, or of the one in its
        mixed instances policy, all else unchanged. Idempotent. Raises TerminalError for a group with a launch
        configuration.
        """
        ...

    def raise_to(self, group: str, *, desired: int | None = None, maximum: int | None = None) -> None:
        """Raise the sizes, never lower them: a size that is larger already stays."""
        ...

    def put_back_maximum(self, group: str, maximum: int) -> bool:
        """Lower MaxSize to its earlier value; False, and nothing changed, while the desired size is above that."""
        ...

    def suspend(self, group: str, process: str) -> None:
        """Call SuspendProcesses; a process that is suspended already counts as done."""
        ...

    def resume(self, group: str, process: str) -> None:
        """Call ResumeProcesses; a process that is not suspended counts as done."""
        ...


class Templates(Protocol):
    """Launch templates and images."""

    def version_for(self, template: LaunchTemplateRef, image: str, *, token: str) -> LaunchTemplateRef:
        """Return a version of the template like this one, with that image; the same token gives the same version."""
        ...

    def numbered(self, template: LaunchTemplateRef) -> LaunchTemplateRef:
        """Return the reference with the number that `$Latest` or `$Default` means now, and with its id. Raises
        ObjectGoneError.
        """
        ...

    def image_behind(self, parameter: str) -> str:
        """Return the AMI id in an SSM parameter, such as EKS' recommended images. Raises ObjectGoneError."""
        ...

    def image_exists(self, image: str) -> bool:
        """Return whether EC2 knows the AMI and it is available."""
        ...


class ManagedState(StrEnum):
    """State of an update in EKS."""

    IN_PROGRESS = "InProgress"
    SUCCESSFUL = "Successful"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedUpdate:
    """One update of a managed node group. `errors`: EKS' codes with their messages and resources, as sentences."""

    id: str
    state: ManagedState
    errors: tuple[str, ...] = ()


class ManagedUpdates(Protocol):
    """The port to EKS' UpdateNodegroupVersion. Leeward never writes a managed group through the Auto Scaling API."""

    def start(
        self,
        cluster: str,
        nodegroup: str,
        *,
        token: str,
        version: str | None = None,
        template_version: str | None = None,
        force: bool = False,
    ) -> str:
        """Start the update and return its id; the same token gives the same update. Raises TerminalError where EKS
        refuses it.
        """
        ...

    def look(self, cluster: str, nodegroup: str, update: str) -> ManagedUpdate:
        """Return the current state of the update. Raises ObjectGoneError."""
        ...

    def nodegroup(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group as EKS describes it now. Raises ObjectGoneError, InvalidInputError for an unusable
        answer.
        """
        ...


class ServiceLimits(Protocol):
    """Reads that only pre-flight makes: what runs beside a group, and what the account and the cluster allow. Any of
    them may be denied: an input that cannot be read is not judged.
    """

    def refreshes(self, group: str) -> tuple[str, ...]:
        """Return the ids of the group's instance refreshes that have not ended."""
        ...

    def scheduled(self, group: str) -> tuple[str, ...]:
        """Return the names of its scheduled actions that are still to come."""
        ...

    def control_plane(self, cluster: str) -> str:
        """Return the Kubernetes version of the cluster, such as 1.33; empty where EKS does not report it."""
        ...

    def architecture(self, image: str) -> str:
        """Return the architecture of an AMI, in Kubernetes' term; empty for an image that EC2 does not know."""
        ...

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return the vCPUs that the account may still start in the Region, by its quota less the usage in CloudWatch;
        None where the types do not share the quota of standard instances, or nothing is measured yet.
        """
        ...


class Alarms(Protocol):
    """CloudWatch alarms."""

    def ringing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those in state ALARM, and those that do not exist: a canary without a working alarm does not pass."""
        ...


class Upgrades(Protocol):
    """The table's records of upgrades, one for each group: its lease. Writes are conditional: the loser reads again."""

    def read(self, group: str) -> UpgradeRecord | None:
        """Return the group's latest record, open or ended, strongly consistent."""
        ...

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Return the latest records of many groups, by group; those without a record are left out."""
        ...

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """Return the record with version + 1, written if the version that it carries is still the newest (0: there is
        no record, or the last one has ended); None when another writer was faster.
        """
        ...

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """Overwrite the pre-flight findings of the group's latest upgrade; the document has JSON types alone."""
        ...

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """Return the document of `keep_plan`, None where there is none."""
        ...


class UpgradeExecutions(Protocol):
    """The node-group-upgrade state machine."""

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """Start an execution; True when it runs (new or already open), False when a closed one holds the name."""
        ...

    def running(self, name: str) -> bool:
        """Return whether the execution is open."""
        ...
