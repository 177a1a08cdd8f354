"""How many volumes a node that does not exist yet will be able to attach.

What nodes of the same type say is asked first (their CSINodes); of a type that no node has, what the EBS driver would
reckon, on the careful side. Source: aws-ebs-csi-driver, pkg/driver/node.go (getVolumesLimit); EC2 user guide, "Amazon
EBS volume limits"."""

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
    """The fewest that any node of each type says, by driver."""
    found: dict[str, dict[str, int]] = {}
    for node in nodes:
        kind = node.labels.get(well_known.INSTANCE_TYPE_LABEL)
        if kind is not None:
            of_type = found.setdefault(kind, {})
            for driver, count in node.attach_limits.items():
                of_type[driver] = min(count, of_type.get(driver, count))
    return found


def attaching(found: Launchable, types: Mapping[str, InstanceType], seen: SeenLimits) -> Launchable:
    """With the fewest that any of its types can attach, so that what fits there fits on each of them."""
    limits: dict[str, int] = {}
    for name in found.types:
        for driver, count in _of_type(name, types.get(name), seen).items():
            limits[driver] = min(count, limits.get(driver, count))
    node = replace(found.template.node, attach_limits=limits)
    return replace(found, template=replace(found.template, node=node))


def _of_type(name: str, kind: InstanceType | None, seen: SeenLimits) -> Mapping[str, int]:
    """Of a type that is not known nothing is told: its room is not known either, and nothing is thought to fit."""
    told = seen.get(name, {})
    if EBS_DRIVER in told or kind is None:
        return told
    return {**told, EBS_DRIVER: reckoned(kind)}


def reckoned(kind: InstanceType) -> int:
    """As if every network interface that the type can have were attached, and one disk were the root; at least 1. Types
    with a limit of their own for volumes are held to the shared one all the same: EC2 does not say here which they are.
    """
    most = NITRO if kind.nitro else XEN
    if kind.max_volumes is not None:
        most = min(most, kind.max_volumes)
    shared = kind.max_enis + bool(kind.local_storage_gb) if kind.nitro else 0
    return max(most - shared - 1, 1)
