"""Protection of an open run's new nodes from Cluster Autoscaler: they are empty until the nodes that they replace
are drained, and Cluster Autoscaler removes unneeded nodes.

As with upgrades (`leeward.upgrade.scale_down_protection`) the annotation that makes it leave a node alone is added as
soon as the Node exists, and removed when the run has ended in any way; a second one names the run: annotations that
others have added stay."""

from collections.abc import Iterable
from contextlib import suppress

from leeward.disruption.record import DisruptionRecord
from leeward.errors import LeewardError, ObjectGoneError
from leeward.model import well_known
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes


def keep(record: DisruptionRecord, nodes: Iterable[Node], ports: Ports) -> None:
    """Protect the nodes launched for commands that stand. Idempotent: a protected node is skipped."""
    wanted = {new for number in record.standing for new in record.new_of(number)}
    kubernetes = ports.clusters.kubernetes(record.cluster)
    for node in nodes:
        if node.instance_id in wanted and well_known.SCALE_DOWN_DISABLED not in node.annotations:
            with suppress(ObjectGoneError):
                kubernetes.annotate(
                    node, {well_known.SCALE_DOWN_DISABLED: "true", well_known.KEPT_FOR: _disruption(record)}
                )


def let_go(record: DisruptionRecord, ports: Ports) -> None:
    """Remove the protection at the end of the run. An error of the cluster must not block the end: the minute
    reconciler removes the rest.
    """
    if record.launched:
        with suppress(LeewardError):
            kubernetes = ports.clusters.kubernetes(record.cluster)
            kept = (
                node for node in kubernetes.nodes() if node.annotations.get(well_known.KEPT_FOR) == _disruption(record)
            )
            _release(kept, kubernetes)


def unprotect_after_disruptions(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove the protection of nodes whose run is no longer open, and return their names."""
    kept = [
        node for node in nodes if node.annotations.get(well_known.KEPT_FOR, "").startswith(well_known.OF_DISRUPTION)
    ]
    if not kept:
        return []
    record = ports.disruptions.read(cluster)
    current = _disruption(record) if record is not None and record.open else ""
    over = [node for node in kept if node.annotations[well_known.KEPT_FOR] != current]
    return _release(over, ports.clusters.kubernetes(cluster))


def _disruption(record: DisruptionRecord) -> str:
    return f"{well_known.OF_DISRUPTION}{record.number}"


def _release(nodes: Iterable[Node], kubernetes: Kubernetes) -> list[str]:
    """Remove the protection, and return the names of the nodes."""
    found = list(nodes)
    for node in found:
        with suppress(ObjectGoneError):
            kubernetes.annotate(node, {well_known.SCALE_DOWN_DISABLED: None, well_known.KEPT_FOR: None})
    return [node.name for node in found]
