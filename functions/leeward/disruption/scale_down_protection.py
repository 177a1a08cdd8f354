"""Protection of an open run's new nodes from Cluster Autoscaler; its owner is `disruption:NUMBER`."""

from collections.abc import Iterable

from leeward.disruption.record import DisruptionRecord
from leeward.model import well_known
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters
from leeward.workflow.scale_down_protection import owners, protect, release, release_all


def protect_launched(record: DisruptionRecord, nodes: Iterable[Node], clusters: Clusters) -> None:
    """Protect the nodes launched for commands that stand."""
    launched = {new for number in record.active_commands for new in record.new_of(number)}
    new = (node for node in nodes if node.instance_id in launched)
    protect(new, _owner(record), clusters.kubernetes(record.cluster))


def unprotect_launched(record: DisruptionRecord, clusters: Clusters) -> None:
    """Remove the protection at the end of the run."""
    if record.launched:
        release_all(_owner(record), record.cluster, clusters)


def unprotect_after_disruptions(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove the protection of nodes whose run is no longer open, and return their names."""
    nodes, unprotected = list(nodes), list[str]()
    disruptions = [owner for owner in owners(nodes) if owner.startswith(well_known.OF_DISRUPTION)]
    if not disruptions:
        return []
    record = ports.disruptions.read(cluster)
    current = _owner(record) if record is not None and record.open else ""
    for owner in disruptions:
        if owner != current:
            unprotected += release(nodes, owner, ports.clusters.kubernetes(cluster))
    return unprotected


def _owner(record: DisruptionRecord) -> str:
    return f"{well_known.OF_DISRUPTION}{record.number}"
