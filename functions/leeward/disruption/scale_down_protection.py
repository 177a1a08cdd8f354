"""New nodes of a running round are kept from Cluster Autoscaler: they stand empty until the nodes that they replace are
drained, which an unneeded node does not survive.

As with upgrades (`leeward.upgrade.scale_down_protection`) the annotation by which it leaves a node alone goes on as
soon as the Node exists, and off when the round has ended in whatever way; a second one says for which round: what
others have put on stays."""

from collections.abc import Iterable
from contextlib import suppress

from leeward.disruption.record import RoundRecord
from leeward.errors import LeewardError, ObjectGoneError
from leeward.model import well_known
from leeward.model.node import Node
from leeward.ports import Kubernetes, Ports


def keep(record: RoundRecord, nodes: Iterable[Node], ports: Ports) -> None:
    """Those launched for commands that stand. A repeat finds it done, with the first look at a node it is."""
    wanted = {new for number in record.standing for new in record.new_of(number)}
    kubernetes = ports.clusters.kubernetes(record.cluster)
    for node in nodes:
        if node.instance_id in wanted and well_known.SCALE_DOWN_DISABLED not in node.annotations:
            with suppress(ObjectGoneError):
                kubernetes.annotate(node, {well_known.SCALE_DOWN_DISABLED: "true", well_known.KEPT_FOR: _round(record)})


def let_go(record: RoundRecord, ports: Ports) -> None:
    """At an end, which nothing may hold up, a cluster that does not answer either: the sweep comes after it."""
    if record.launched:
        with suppress(LeewardError):
            kubernetes = ports.clusters.kubernetes(record.cluster)
            kept = (node for node in kubernetes.nodes() if node.annotations.get(well_known.KEPT_FOR) == _round(record))
            _release(kept, kubernetes)


def sweep_kept_for_rounds(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Names of nodes that were kept for a round which is no longer open."""
    kept = [node for node in nodes if node.annotations.get(well_known.KEPT_FOR, "").startswith(well_known.OF_ROUND)]
    if not kept:
        return []
    record = ports.rounds.read(cluster)
    current = _round(record) if record is not None and record.open else ""
    over = [node for node in kept if node.annotations[well_known.KEPT_FOR] != current]
    return _release(over, ports.clusters.kubernetes(cluster))


def _round(record: RoundRecord) -> str:
    return f"{well_known.OF_ROUND}{record.number}"


def _release(nodes: Iterable[Node], kubernetes: Kubernetes) -> list[str]:
    """Their names."""
    found = list(nodes)
    for node in found:
        with suppress(ObjectGoneError):
            kubernetes.annotate(node, {well_known.SCALE_DOWN_DISABLED: None, well_known.KEPT_FOR: None})
    return [node.name for node in found]
