"""Ports to Auto Scaling: groups, the changes that upgrades make to them, and raised maximum sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.capacity import RaisedMaximum
    from leeward.model.group import Group, HookResult, LifecycleHook, ScalingActivity
    from leeward.model.launch import LaunchTemplateRef
    from leeward.model.termination import Replacement


class Groups(Protocol):
    """Auto Scaling groups."""

    def describe(self, names: Iterable[str]) -> Mapping[str, Group]:
        """Return the groups that exist, by name."""
        ...

    def of_clusters(self, clusters: Iterable[str]) -> Sequence[Group]:
        """Return every group tagged for one of the clusters (`kubernetes.io/cluster/NAME` or `eks:cluster-name`)."""
        ...

    def lifecycle_of(self, instance: str) -> tuple[str, str] | None:
        """Return (group, lifecycle state) now, None when no group holds the instance."""
        ...

    def hooks(self, group: str) -> Sequence[LifecycleHook]:
        """Return all hooks of the group, those of Leeward and of others."""
        ...

    def put_hook(self, hook: LifecycleHook, *, default_result: HookResult) -> None:
        """Create or overwrite; the same call twice is one hook."""
        ...

    def delete_hook(self, *, group: str, hook: str) -> None:
        """Delete a hook; one that does not exist counts as done. Instances that it holds are released: launches are
        abandoned, all others continue.
        """
        ...

    def complete(self, *, group: str, hook: str, instance: str, result: HookResult) -> bool:
        """Complete the action by instance id; False when no such action waits (completed before, or timed out)."""
        ...

    def heartbeat(self, *, group: str, hook: str, instance: str) -> bool:
        """Extend a waiting action; False when there is none."""
        ...

    def launch(self, *, group: str, subnet: str, token: str, count: int = 1) -> Replacement:
        """Launch `count` instances (at most 100) by LaunchInstances in the subnet, fewer where there is capacity for
        fewer; the same token, with the same count, gives the same instances.

        Where nothing is launched the answer has no instance and the reason: `refused` (mixed purchase options, launch
        configuration, MaxSize, permission denied, operation unknown), or `no_capacity` where another subnet may have
        what this one lacks, wholly or for a part.
        """
        ...

    def terminate(self, *, instance: str, decrement: bool, anyway: bool = False) -> bool:
        """Call TerminateInstanceInAutoScalingGroup after a fresh read of the instance's state in its group; False when
        no group holds the instance, it is already leaving, or has left for the warm pool or is retained (those only
        with `anyway`).
        """
        ...

    def activities(self, group: str, since: datetime) -> Sequence[ScalingActivity]:
        """Return the group's scaling activities begun since then, newest first; none for a group that is gone."""
        ...


class GroupChanges(Protocol):
    """Writes to an Auto Scaling group. Desired size is only ever raised, maximum never set below the desired size."""

    def point_at(self, group: Group, template: LaunchTemplateRef) -> None:
        """Launch new instances from this version from now on: of the group's launch template, or of the one in its
        mixed instances policy, all else unchanged. Idempotent. Raises TerminalError for a group with a launch
        configuration.
        """
        ...

    def raise_to(
        self, group: str, *, desired: int | None = None, maximum: int | None = None, only_from: int | None = None
    ) -> bool:
        """Raise the sizes, never lower them: a size that is larger already stays. False where the desired size is not
        `only_from`: others have set it since it was read, and nothing is changed.
        """
        ...

    def put_back_maximum(self, group: str, maximum: int, *, partly: bool = False) -> bool:
        """Lower MaxSize to its earlier value; False while the desired size is above that: nothing is changed then, or
        with `partly` MaxSize is lowered to the desired size.
        """
        ...

    def suspend(self, group: str, process: str) -> None:
        """Call SuspendProcesses; a process that is suspended already counts as done."""
        ...

    def resume(self, group: str, process: str) -> None:
        """Call ResumeProcesses; a process that is not suspended counts as done."""
        ...


class Maxima(Protocol):
    """The table's items of raised maximum sizes, one for each group. Writes are conditional: the loser reads again."""

    def read(self, group: str) -> RaisedMaximum | None:
        """Return the item, strongly consistent; None for a group that was never raised."""
        ...

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """Return the items that exist, by group, strongly consistent; one call reads a hundred."""
        ...

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """Return the item with version + 1, written if the version that it carries is still the newest (0: there is
        none); None when another writer was faster.
        """
        ...
