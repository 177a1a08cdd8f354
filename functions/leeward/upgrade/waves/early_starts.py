"""Pod capacity of the new nodes: which old nodes may start to drain although the nodes that replace them still boot.

Decides by the scheduling rules (`leeward.scheduling`): every pod of such a node fits on new nodes that are Ready,
beside all pods that have a place reserved there already. So no pod waits for a node that boots, and full clusters
drain one for one, as without this module (docs/designs/upgrade.md)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.packing import pack
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCapacity:
    """The cluster as a scheduler sees it: all nodes, all pods that have not finished."""

    nodes: tuple[NodeSpec, ...]
    pods: tuple[PodSpec, ...]

    def fitting(self, new: Collection[str], leaving: Sequence[str], candidates: Sequence[str]) -> tuple[str, ...]:
        """Return the candidates, in their order, whose pods find a place on the nodes `new` after those that wait for
        one and those of `leaving` nodes. Empty where these do not fit themselves.
        """
        known = {node.name for node in self.nodes}
        world = World([_only(node, new) for node in self.nodes], self.pods)
        before = [pod for name in leaving if name in known for pod in world.remove(name)]
        if pack(world, before, whole=True).unplaced:
            return ()
        pack(world, world.pending)  # those of others may find no place for reasons of their own
        return tuple(name for name in candidates if name in known and _placed(world, name))


def _only(node: NodeSpec, new: Collection[str]) -> NodeSpec:
    """Return the node, unschedulable unless it is new: capacity elsewhere is not counted on."""
    return node if node.name in new else replace(node, unschedulable=True)


def _placed(world: World, name: str) -> bool:
    """Return whether all its pods are placed, which then stays; else the world is as it was."""
    point = world.checkpoint()
    if pack(world, world.remove(name), whole=True).unplaced:
        world.rollback(point)
        return False
    return True
