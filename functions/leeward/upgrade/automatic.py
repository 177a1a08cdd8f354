"""Upgrades that the policy starts: `update.auto`, once a newer image has been known for long enough.

Decides whether an upgrade of a group starts now: inside its windows, outside every freeze and pause, never beside
another upgrade or a disruption run, and once for each image. The name of the execution follows from group and image,
and the upgrade's record keeps the image, so that a failed upgrade is not repeated. fn disruption-planner calls this in
its turn, because it has read nodes and launch settings already; everything else is the state machine's.

The newest image of a self-managed group is the one behind the SSM parameter (`resolve:ssm:`) that its launch template
names, of a managed node group the one that EKS recommends for its version and AMI type. Each old node carries since
when that image is known (`leeward.dev/image-moved`), so that the wait survives every function."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256

from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import attempt
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.nodegroup import Nodegroup
from leeward.model.times import format_instant, parse_instant
from leeward.model.well_known import IMAGE_MOVED
from leeward.policy.document import NodePolicy
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.compute import Templates
from leeward.ports.eks import KnownNodegroups
from leeward.ports.kubernetes import Clusters
from leeward.ports.monitoring import ServiceLimits
from leeward.ports.records import Upgrades
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.upgrade.control import is_open, opens
from leeward.upgrade.record import UpgradeRecord
from leeward.workflow.executions import execution_name

AL2023 = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{kind}/recommended/image_id"
KINDS: Mapping[str, str] = {
    "AL2023_x86_64_STANDARD": "x86_64/standard",
    "AL2023_ARM_64_STANDARD": "arm64/standard",
    "AL2023_x86_64_NVIDIA": "x86_64/nvidia",
    "AL2023_ARM_64_NVIDIA": "arm64/nvidia",
    "AL2023_x86_64_NEURON": "x86_64/neuron",
}
"""EKS' amiType -> the part of its public parameter (EKS user guide, "Retrieve recommended Amazon Linux AMI IDs")."""
AUTOMATIC = "automatic"  # key of an execution's input: the image for which it starts
EVENT = "AutomaticUpgradeFailed"
TURN, HOUR = 300, 3600  # seconds: the rate of fn disruption-planner, and of an Event about a group
LONGEST = 1000  # characters of an Event


def start_due(snapshot: ClusterSnapshot, busy: Iterable[str], ports: Ports) -> list[str]:
    """Start the upgrades that are due, and return the names of their executions. `busy`: groups of a disruption run.
    Idempotent: the name follows from group and image, so that a repeat finds the execution or its end.
    """
    started: list[str] = []
    held = frozenset(busy)
    for group, policy in automatic_groups(snapshot):
        if reason_to_wait(snapshot, group, policy) or group.name in held:
            continue
        image = snapshot.newest_images[group.name]
        if not _may_try(ports.upgrades.read(group.name), image):
            continue
        if _too_young(snapshot, policy, image, ports.service_limits):
            continue
        executions = ports.upgrade_executions if group.nodegroup is None else ports.managed_upgrade_executions
        name = name_of(group.name, image)
        document = {"group": group.name, "cluster": snapshot.cluster, AUTOMATIC: image}
        if executions.start(name, document):
            started.append(name)
    return started


def name_of(group: str, image: str) -> str:
    """Return the name of the execution that upgrades the group to the image. Step Functions keeps it for 90 days."""
    return execution_name(f"{group}-auto-{sha256(image.encode()).hexdigest()[:8]}", 0)


def reason_to_wait(snapshot: ClusterSnapshot, group: Group, policy: NodePolicy) -> str:
    """Return why no upgrade of the group starts now, whatever was tried before; empty when one is due."""
    after, image = policy.update.auto, snapshot.newest_images.get(group.name)
    if after is None or not image:
        return "the image that new nodes would have is not known"
    since = known_in_group(snapshot, group, image)
    if since is None:
        return "no node has another image for a while"
    if snapshot.now - since < after:
        return f"{image} is known since {format_instant(since)}: update.auto asks for {format_duration(after)}"
    shifted = next((why for zone in group.zones if (why := snapshot.why_shifted(zone))), "")
    if held := snapshot.policies.pauses.voluntary(group.name) or shifted:
        return held
    windows, freeze = policy.update.windows, snapshot.policies.settings.freeze
    if not is_open(windows, freeze, snapshot.now):
        until = opens(windows, freeze, snapshot.now)
        return f"outside the upgrade's windows, until {format_instant(until) if until else 'further notice'}"
    return snapshot.blocked_groups.get(group.name, "")


def _too_young(snapshot: ClusterSnapshot, policy: NodePolicy, image: str, limits: ServiceLimits) -> bool:
    """Return whether the image was created within `update.auto.after`: a fact of EC2 that bounds what nodes may claim.
    It is read only where an upgrade would start; an image that EC2 does not describe cannot be launched.
    """
    described, after = limits.images([image]).get(image), policy.update.auto
    if described is None or described.created is None or after is None:
        return False
    return snapshot.now - described.created < after


def write_failures(snapshot: ClusterSnapshot, upgrades: Upgrades, clusters: Clusters) -> None:
    """Write an Event about each group whose automatic upgrade has failed, once an hour."""
    if int(snapshot.now.timestamp()) % HOUR < TURN:
        for node, message in failures(snapshot, upgrades):
            with suppress(ObjectGoneError):
                kubernetes = clusters.kubernetes(snapshot.cluster)
                kubernetes.event(node, reason=EVENT, message=message[:LONGEST], warning=True, now=snapshot.now)


def failures(snapshot: ClusterSnapshot, upgrades: Upgrades) -> Iterator[tuple[Node, str]]:
    """Yield (old node, sentence) of each group whose automatic upgrade has failed and is not tried again: one node for
    each group, the first by name.
    """
    for group, _ in automatic_groups(snapshot):
        image = snapshot.newest_images.get(group.name, "")
        old = [node for node in members_of(snapshot, group) if list(known_since([node], image))]
        record = upgrades.read(group.name) if image and old else None
        if record is None or record.request.automatic != image or record.ended is None or not record.error:
            continue
        yield (
            min(old, key=lambda node: node.name),
            f"upgrade of {group.name} to {image} has failed ({record.error}) and is not tried again by itself: "
            f"leeward upgrade status {group.name} says why; leeward upgrade start {group.name} continues it",
        )


def _may_try(record: UpgradeRecord | None, image: str) -> bool:
    """Return whether nothing forbids the start: an upgrade that has not ended, an operator's that has failed, or an
    earlier automatic one to this image.
    """
    if record is None:
        return True
    failed = bool(record.error) and not record.request.automatic
    return record.ended is not None and not failed and record.request.automatic != image


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
