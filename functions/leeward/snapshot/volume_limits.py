"""Number of volumes that a node that does not exist yet will be able to attach.

The limits of nodes of the same type are used first (their CSINodes); for a type that no node has, a conservative
estimate of the EBS driver's value. Source: aws-ebs-csi-driver, pkg/driver/node.go (getVolumesLimit); EC2 user guide,
"Amazon EBS volume limits"."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leeward.model import well_known
from leeward.model.instance_type import InstanceType
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.volumes import EBS_DRIVER
from leeward.snapshot.launchable import Launchable

SeenLimits = Mapping[str, Mapping[str, int]]  # type -> CSI driver -> volumes
NITRO, XEN = 28, 39  # attachments of an instance, volumes and on Nitro network interfaces and local disks together


def seen_limits(nodes: Iterable[NodeSpec]) -> SeenLimits:
    """Return the lowest limits that any node of each type reports, by driver."""
    limits: dict[str, dict[str, int]] = {}
    for node in nodes:
        kind = node.labels.get(well_known.INSTANCE_TYPE_LABEL)
        if kind is not None:
            of_type = limits.setdefault(kind, {})
            for driver, count in node.attach_limits.items():
                of_type[driver] = min(count, of_type.get(driver, count))
    return limits


def with_volume_limits(launchable: Launchable, types: Mapping[str, InstanceType], seen: SeenLimits) -> Launchable:
    """Return the launchable with the lowest limits of its types, so that pods that fit there fit on each of them."""
    limits: dict[str, int] = {}
    for name in launchable.types:
        for driver, count in _of_type(name, types.get(name), seen).items():
            limits[driver] = min(count, limits.get(driver, count))
    node = replace(launchable.template.node, attach_limits=limits)
    return replace(launchable, template=replace(launchable.template, node=node))


def _of_type(name: str, kind: InstanceType | None, seen: SeenLimits) -> Mapping[str, int]:
    """Return the limits of a type. An unknown type has only those that its nodes report: its capacity is not known
    either, and no pod is assumed to fit.
    """
    reported = seen.get(name, {})
    if EBS_DRIVER in reported or kind is None:
        return reported
    return {**reported, EBS_DRIVER: estimated_limit(kind)}


def estimated_limit(kind: InstanceType) -> int:
    """Return the limit calculated as if every network interface that the type can have were attached, and one disk were
    the root; at least 1. Types with a limit of their own for volumes are held to the shared one as well: EC2 does not
    report here which they are.
    """
    most = NITRO if kind.nitro else XEN
    if kind.max_volumes is not None:
        most = min(most, kind.max_volumes)
    shared = kind.max_enis + bool(kind.local_storage_gb) if kind.nitro else 0
    return max(most - shared - 1, 1)
