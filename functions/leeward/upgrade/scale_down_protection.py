"""Protection of a running upgrade's new nodes from Cluster Autoscaler; its owner is the group's name."""

from collections.abc import Iterable

from leeward.model import well_known
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters
from leeward.upgrade.lease import held
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Scene
from leeward.upgrade.record import UpgradeRecord
from leeward.workflow.scale_down_protection import owners, protect, release


def keep(record: UpgradeRecord, scene: Scene, clusters: Clusters) -> None:
    """Protect new members of the group. Takes effect at the first observation of a node."""
    new = (one.node for one in scene.preflight.members if one.age is Age.NEW and one.node is not None)
    protect(new, record.group, clusters.kubernetes(record.cluster))


def unprotect_after_upgrades(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove the protection of nodes whose upgrade has no execution any more, or is unknown, and return their names."""
    nodes, found = list(nodes), list[str]()
    for group in owners(nodes):
        if group.startswith(well_known.OF_DISRUPTION):
            continue
        record = ports.upgrades.read(group)
        if (
            record is None
            or record.ended is not None
            or not held(record, ports.upgrade_executions, ports.managed_upgrade_executions)
        ):
            found += release(nodes, group, ports.clusters.kubernetes(cluster))
    return found
