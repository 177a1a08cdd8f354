"""Old nodes that may start to drain although the nodes that replace them still boot.

Decides by the scheduling rules (`leeward.scheduling`): every pod of such a node fits on new nodes that are Ready,
beside all pods that have a place reserved there already. So no pod waits for a node that boots, and full clusters
drain one for one (docs/designs/upgrade.md)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.packing import pack
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.time_budget import SearchTime
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.waves.model import Limits, WaveNode
from leeward.upgrade.waves.planner import next_nodes

LATE = timedelta(minutes=5)  # after its launch, for a new node that is not Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCapacity:
    """The cluster as a scheduler sees it: all nodes, all pods that have not finished."""

    nodes: tuple[NodeSpec, ...]
    pods: tuple[PodSpec, ...]

    def fitting(
        self, new: Collection[str], leaving: Sequence[str], candidates: Sequence[str], time: SearchTime | None = None
    ) -> tuple[str, ...]:
        """Return the candidates, in their order, whose pods find a place on the nodes `new` after those that wait for
        one and those of `leaving` nodes. Empty where these do not fit themselves. `time`: for all tries; a node that it
        does not reach waits for its successor.
        """
        known = {node.name for node in self.nodes}
        world = World([_only(node, new) for node in self.nodes], self.pods)
        world.in_time = (time or SearchTime()).in_time
        removed = (pod for name in leaving if name in known for pod in world.remove(name))
        before = [pod for pod in removed if not pod.needs.beyond_limit]  # those no plan can place
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


def early_starts(
    preflight: Preflight,
    nodes: Sequence[WaveNode],
    leaving: Sequence[WaveNode],
    limits: Limits,
    capacity: Callable[[], PodCapacity],
) -> tuple[str, ...]:
    """Return old nodes whose successors boot, and whose pods fit until then on the new nodes that are Ready. `nodes`:
    in the order of preference; `leaving`: those that drain or are about to; `limits`: also in each zone the new
    instances that no node offsets yet.
    """
    taken = {one.name for one in leaving}
    candidates = next_nodes([one for one in nodes if one.name not in taken], leaving, limits, preflight.constraints)
    if not candidates:
        return ()
    new = [one for one in preflight.members if one.age is Age.NEW]
    if any(_is_late(preflight, one) for one in new):
        return ()
    serving = {one.node.name for one in new if one.node is not None and one.node.ready and not one.node.unschedulable}
    return capacity().fitting(serving, [one.name for one in leaving], candidates, preflight.time)


def _is_late(preflight: Preflight, new: Member) -> bool:
    """Return whether the new node should have been Ready by now: until the cause is clear, no old node starts before
    its successor is Ready.
    """
    launched = preflight.snapshot.instances.get(new.instance.id)
    if launched is None or (new.node is not None and new.node.ready):
        return False
    return preflight.snapshot.now - launched.launched > LATE
