"""Upgrades that the policy starts: `update.auto`, once a newer image has been known for long enough.

Decides whether an upgrade of a group starts now: inside its windows, outside every freeze and pause, never beside
another upgrade or a disruption run, and once for each image. The name of the execution follows from group and image,
and the upgrade's record keeps the image, so that a failed upgrade is not repeated. fn disruption-planner calls this in
its turn, because it has read nodes and launch settings already; everything else is the state machine's."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256

from leeward.errors import ObjectGoneError
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.times import format_instant
from leeward.policy.document import NodePolicy
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters
from leeward.ports.monitoring import ServiceLimits
from leeward.ports.records import Upgrades
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.upgrade.control import is_open, opens
from leeward.upgrade.image_moves import automatic_groups, known_in_group, known_since, members_of
from leeward.upgrade.record import UpgradeRecord
from leeward.workflow.executions import execution_name

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
