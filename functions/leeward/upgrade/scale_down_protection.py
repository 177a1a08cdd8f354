"""Protection of a running upgrade's new nodes from Cluster Autoscaler: they are half empty until their pods have
come.

The annotation by which it leaves a node alone (its FAQ, "How can I prevent Cluster Autoscaler from scaling down a
particular node?") is set as soon as the Node exists, Ready or not, and removed when the upgrade has ended in
whatever way. A second annotation says for which group: annotations of others stay."""

from collections.abc import Iterable
from contextlib import suppress

from leeward.errors import LeewardError, ObjectGoneError
from leeward.model import well_known
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes
from leeward.upgrade.lease import held
from leeward.upgrade.members import Age
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.scene import Scene


def keep(record: UpgradeRecord, scene: Scene, ports: Ports) -> None:
    """Protect new members of the group. Idempotent; takes effect at the first observation of a node."""
    kubernetes = ports.clusters.kubernetes(record.cluster)
    for one in scene.preflight.members:
        node = one.node
        if one.age is Age.NEW and node is not None and well_known.SCALE_DOWN_DISABLED not in node.annotations:
            with suppress(ObjectGoneError):
                kubernetes.annotate(node, {well_known.SCALE_DOWN_DISABLED: "true", well_known.KEPT_FOR: record.group})


def let_go(record: UpgradeRecord, ports: Ports) -> None:
    """Remove the protection at an end, which nothing may block, not even a cluster that does not answer: the minute
    reconciler repeats it.
    """
    with suppress(LeewardError):
        kubernetes = ports.clusters.kubernetes(record.cluster)
        _release(record.group, kubernetes.nodes(), kubernetes)


def unprotect_after_upgrades(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove the protection of nodes whose upgrade has no execution any more, or is unknown, and return their names."""
    kept = [
        node
        for node in nodes
        if not node.annotations.get(well_known.KEPT_FOR, well_known.OF_DISRUPTION).startswith(well_known.OF_DISRUPTION)
    ]
    found: list[str] = []
    for group in sorted({node.annotations[well_known.KEPT_FOR] for node in kept}):
        record = ports.upgrades.read(group)
        if record is None or record.ended is not None or not held(record, ports):
            found += _release(group, kept, ports.clusters.kubernetes(cluster))
    return found


def _release(group: str, nodes: Iterable[Node], kubernetes: Kubernetes) -> list[str]:
    """Remove the protection of nodes kept for the group and return their names."""
    found = [node for node in nodes if node.annotations.get(well_known.KEPT_FOR) == group]
    for node in found:
        with suppress(ObjectGoneError):
            kubernetes.annotate(node, {well_known.SCALE_DOWN_DISABLED: None, well_known.KEPT_FOR: None})
    return [node.name for node in found]
