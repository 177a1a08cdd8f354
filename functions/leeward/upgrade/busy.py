"""Old nodes that are unavailable now, each with the pods that it still has: beside them the next ones are chosen.

Decides from the cluster and from what was told; an empty node that settles is not among them."""

from leeward.model.pod import Pod
from leeward.upgrade.competition import WaveNode
from leeward.upgrade.preflight import Preflight
from leeward.upgrade.record import UpgradeRecord


def busy_nodes(preflight: Preflight, record: UpgradeRecord) -> list[WaveNode]:
    """Old nodes that are unavailable until their last pod is gone: told to go by whomever, deleted, or NotReady."""
    world = preflight.world
    old = {one.instance.id for one in preflight.old}
    ids = {one.id for one in preflight.group.instances} | record.under_way.keys()
    known = {one.name: one for one in preflight.wave_nodes}
    found: list[WaveNode] = []
    for node in world.nodes:
        name = node.instance_id
        told = name in record.under_way or node.marked
        if name not in ids or not (told or (name in old and (node.deleting or not node.ready))):
            continue
        if any(still_there(pod) for pod in world.pods_on(node.name)):
            zone = world.zone_of(node)
            found.append(known.get(node.name) or WaveNode(name=node.name, zone=zone, created=node.created))
    return found


def still_there(pod: Pod) -> bool:
    """It has to leave and has not left, also while it stops."""
    return not (pod.mirror or pod.of_daemon_set or pod.finished)
