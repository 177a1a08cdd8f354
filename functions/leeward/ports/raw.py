"""Port for writing a snapshot folder: AWS' answers as the `aws` command prints them.

The Kubernetes half of it is `Kubernetes.read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from leeward.model.launch import LaunchTemplateRef

Raw = Mapping[str, Any]


class RawAws(Protocol):
    """Raw AWS answers: members have AWS' own names, times are text. Raises LeewardError naming the call and its
    purpose.
    """

    def groups_tagged(self, tag_keys: Iterable[str]) -> Sequence[Raw]:
        """Return `AutoScalingGroups` with one of these tag keys, whatever the value."""
        ...

    def hooks(self, group: str) -> Sequence[Raw]:
        """Return `LifecycleHooks`; none for a group that is gone."""
        ...

    def launch_configurations(self, names: Iterable[str]) -> Sequence[Raw]:
        """Return `LaunchConfigurations`, those that exist."""
        ...

    def template_versions(self, template: LaunchTemplateRef, versions: Iterable[str]) -> Sequence[Raw]:
        """Return `LaunchTemplateVersions` of the template, whatever version the reference itself names: numbers,
        `$Latest` and `$Default`; those that exist.
        """
        ...

    def reservations(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Return `Reservations` with those of the instances that EC2 knows."""
        ...

    def impaired(self) -> Sequence[Raw]:
        """Return `InstanceStatuses` of the Region's instances that fail a check; one that fails two
        may be there twice.
        """
        ...

    def instance_types(self, names: Iterable[str]) -> Sequence[Raw]:
        """Return `InstanceTypes`, those that the Region has."""
        ...

    def all_instance_types(self) -> Sequence[Raw]:
        """Return `InstanceTypes`, all of the Region's."""
        ...

    def images(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Return `Images`, those that EC2 knows."""
        ...

    def subnets(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Return `Subnets`, those that EC2 knows."""
        ...

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Sequence[Raw]:
        """Return `Subnets` of the VPCs that carry a tag with the key."""
        ...

    def nodegroup(self, cluster: str, name: str) -> Raw:
        """Return DescribeNodegroup's whole answer. Raises ObjectGoneError."""
        ...

    def cluster(self, name: str) -> Raw:
        """Return DescribeCluster's whole answer. Raises ObjectGoneError."""
        ...

    def policies(self, cluster: str) -> Sequence[Raw]:
        """Return the policy documents that are deployed for the cluster, in their order. Raises InvalidPolicyError."""
        ...
