"""Old nodes that are unavailable now, each with the pods that it still has: the next ones are chosen beside them.

Decides from the cluster and from the termination requests; an empty node that settles is not among them."""

from collections.abc import Collection

from leeward.model.pod import Pod
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.waves.model import WaveNode


def busy_nodes(preflight: Preflight, record: UpgradeRecord) -> list[WaveNode]:
    """Return old nodes that are unavailable until their last pod is gone: tainted or with a termination request,
    deleted, NotReady, without the Node that a person has deleted.
    """
    world = preflight.world
    old = {one.instance.id for one in preflight.old}
    ids = {one.id for one in preflight.group.instances} | record.under_way.keys()
    known = {one.name: one for one in preflight.wave_nodes}
    found = _without_a_node(preflight, old | record.under_way.keys())
    for node in world.nodes:
        name = node.instance_id
        told = name in record.under_way or node.marked
        if name not in ids or not (told or (name in old and (node.deleting or not node.ready))):
            continue
        if any(still_there(pod) for pod in world.pods_on(node.name)):
            zone = world.zone_of(node)
            found.append(known.get(node.name) or WaveNode(name=node.name, zone=zone, created=node.created))
    return found


def _without_a_node(preflight: Preflight, instances: Collection[str]) -> list[WaveNode]:
    """Return instances that run and have no Node, while the cluster has pods that are bound to Nodes which do not
    exist: the garbage collector ends these pods within minutes. The instance that they run on is not known any more.
    """
    world = preflight.world
    nodes = {node.name for node in world.nodes}
    if not any(pod.node and pod.node not in nodes and still_there(pod) for pod in world.pods):
        return []
    joined = {node.instance_id for node in world.nodes}
    bare = (world.instances.get(name) for name in sorted(instances) if name not in joined)
    return [
        WaveNode(name=one.id, zone=one.zone, created=one.launched) for one in bare if one is not None and not one.ended
    ]


def still_there(pod: Pod) -> bool:
    """Return whether the pod has to leave and has not left, also while it stops."""
    return not (pod.mirror or pod.of_daemon_set or pod.finished)
