"""Images that move: the newest image of groups whose policy says `update.auto`, and since when nodes lack it.

Decides which image that is: of a self-managed group the one behind the SSM parameter (`resolve:ssm:`) that its launch
template names, of a managed node group the one that EKS recommends for its version and AMI type. Each old node carries
since when that image is known (`leeward.dev/image-moved`), so that the wait survives every function."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from leeward.errors import LeewardError
from leeward.isolation import attempt
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.nodegroup import Nodegroup
from leeward.model.times import format_instant, parse_instant
from leeward.model.well_known import IMAGE_MOVED
from leeward.policy.document import NodePolicy
from leeward.ports.compute import Templates
from leeward.ports.eks import KnownNodegroups
from leeward.snapshot.cluster import ClusterSnapshot

AL2023 = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{kind}/recommended/image_id"
KINDS: Mapping[str, str] = {
    "AL2023_x86_64_STANDARD": "x86_64/standard",
    "AL2023_ARM_64_STANDARD": "arm64/standard",
    "AL2023_x86_64_NVIDIA": "x86_64/nvidia",
    "AL2023_ARM_64_NVIDIA": "arm64/nvidia",
    "AL2023_x86_64_NEURON": "x86_64/neuron",
}
"""EKS' amiType -> the part of its public parameter (EKS user guide, "Retrieve recommended Amazon Linux AMI IDs")."""


def with_newest_images(snapshot: ClusterSnapshot, nodegroups: KnownNodegroups, templates: Templates) -> ClusterSnapshot:
    """Return the snapshot with the image of each group whose policy upgrades automatically. A group whose image cannot
    be read is left out; managed node groups of one version and kind share a call.
    """
    behind: dict[str, str | LeewardError] = {}
    images: dict[str, str] = {}
    for group, policy in automatic_groups(snapshot):
        image = _behind_template(snapshot, group)
        if group.nodegroup is not None:
            nodegroup = nodegroups.get(snapshot.cluster, group.nodegroup, policy.template.ttl)
            parameter = parameter_of(nodegroup) if nodegroup is not None else ""
            if parameter and parameter not in behind:
                behind[parameter] = attempt(partial(templates.image_behind, parameter))
            found = behind.get(parameter, "")
            image = found if isinstance(found, str) else ""
        if image:
            images[group.name] = image
    return replace(snapshot, newest_images=images)


def parameter_of(nodegroup: Nodegroup) -> str:
    """Return the SSM parameter with the newest image of the node group's version and kind; empty where EKS publishes
    none under its own path (Bottlerocket, Windows) or the image is the owner's.
    """
    kind = KINDS.get(nodegroup.ami_type)
    return AL2023.format(version=nodegroup.version, kind=kind) if kind and nodegroup.version else ""


def image_moved(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> str | None:
    """Return the value of `leeward.dev/image-moved`, None where the node must not carry it: `IMAGE SINCE`. While the
    image cannot be read, the value stays as it is; a time that is yet to come, of a clock that is ahead, begins now.
    """
    group, instance = snapshot.group_of(node), snapshot.instance_of(node)
    if policy.update.auto is None or group is None:
        return None
    present, image = node.annotations.get(IMAGE_MOVED), snapshot.newest_images.get(group.name)
    if image is None or instance is None or not instance.image:
        return present
    if instance.image == image:
        return None
    known = any(since <= snapshot.now for since in known_since([node], image))
    return present if known else f"{image} {format_instant(snapshot.now)}"


def automatic_groups(snapshot: ClusterSnapshot) -> Iterator[tuple[Group, NodePolicy]]:
    for group in sorted(snapshot.selected, key=lambda group: group.name):
        policy = snapshot.policy_of(group)
        if policy is not None and policy.update.auto is not None:
            yield group, policy


def members_of(snapshot: ClusterSnapshot, group: Group) -> list[Node]:
    """Return the nodes of the group."""
    return [node for node in snapshot.nodes if (own := snapshot.group_of(node)) and own.name == group.name]


def known_in_group(snapshot: ClusterSnapshot, group: Group, image: str) -> datetime | None:
    """Return since when the group's nodes lack the image: the second earliest of their annotations, so that no node
    decides alone about the others, while nodes that come and go do not delay the upgrade. An old node without the
    annotation counts as of now. None where no node carries the annotation.
    """
    members = members_of(snapshot, group)
    if not list(known_since(members, image)):
        return None
    instances = ((node, snapshot.instance_of(node)) for node in members)
    old = [node for node, instance in instances if instance is not None and instance.image not in ("", image)]
    moments = sorted(next(known_since([node], image), snapshot.now) for node in old)
    return moments[min(1, len(moments) - 1)] if moments else None


def known_since(nodes: Iterable[Node], image: str) -> Iterator[datetime]:
    """Yield since when each node is known to lack the image; a value of another image or that cannot be read counts as
    none.
    """
    for node in nodes:
        named, _, moment = node.annotations.get(IMAGE_MOVED, "").partition(" ")
        if named == image and image:
            try:
                yield parse_instant(moment)
            except (ValueError, OverflowError):
                continue


def _behind_template(snapshot: ClusterSnapshot, group: Group) -> str:
    """Return the image behind the parameter that the group's launch template names; empty where it names none, the
    parameter cannot be read, or single types have templates or images of their own.
    """
    launchable = snapshot.launchables.get(group.name)
    if launchable is None or any(one.template or one.image for one in group.launch.overrides):
        return ""
    launch = launchable.launch_of(next(iter(launchable.types), ""))
    return launch.image if launch is not None and launch.alias and launch.image.startswith("ami-") else ""
