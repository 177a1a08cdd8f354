"""Placement of pods: onto the existing nodes first, then onto as few new ones as first fit needs.

Every node passes kube-scheduler's filters. The choice among the feasible ones is free: pods are gathered, because that
fits the most in; where that does not fit all in, the choice of kube-scheduler itself decides."""

from collections.abc import Iterable, Sequence

from leeward.gc_pause import collector_paused
from leeward.scheduling.nodes import NodeTemplate
from leeward.scheduling.outcome import Packing
from leeward.scheduling.packer import Packer, Way, without_time
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World


def attempt(
    world: World,
    remove: Iterable[str] = (),
    *,
    pods: Iterable[PodSpec] = (),
    templates: Sequence[NodeTemplate] = (),
    at_most: int | None = None,
    whole: bool = False,
    deleted: bool = False,
) -> Packing:
    """Return the placements of these pods and of those on the removed nodes; afterwards the world is as it was before.

    The removed nodes drain: they stay topology domains, so that pods which are placed can start during the drain.
    `deleted`: their Node objects are already gone. The other arguments are as for `pack`.

    Raises ObjectGoneError for a node that is not present.
    """
    with world.trial():
        names = sorted(remove)
        displaced = [pod for node in names for pod in world.remove(node)]
        for node in names if deleted else ():
            world.forget(node)
        return pack(world, [*displaced, *pods], templates=templates, at_most=at_most, whole=whole)


@collector_paused()  # among 100,000 pods it takes half of the time, and finds nothing
def pack(
    world: World,
    pods: Iterable[PodSpec],
    *,
    templates: Sequence[NodeTemplate] = (),
    at_most: int | None = None,
    whole: bool = False,
) -> Packing:
    """Place the pods, permanently unless the caller rolls back.

    `at_most`: new nodes, besides the limit of each template. Where these are more than the pods' requests need, another
    order is tried (`fewest_nodes`). `whole`: all or nothing: stop at the first pod that can
    have no place, and name only that one. Where pods are left over that might find a place, kube-scheduler's own order
    is tried instead (`Way`): it then decides which pods these are, or finds a place for all. Where the world's time
    ends (`World.in_time`), the pods placed until then keep their places; with `whole` none is placed.
    """
    pods, point = list(pods), world.checkpoint()
    gathered = Packer(world, templates, at_most, Way.GATHERED)
    gathered.run(gathered.ordered(pods), whole=whole)
    if not gathered.unplaced:
        return _on_fewer_nodes(gathered, Packer(world, templates, at_most, Way.GATHERED), world, point).result()
    if gathered.timed_out and not whole:
        return gathered.result()
    world.rollback(point)
    if gathered.timed_out:
        return Packing(placements={}, unplaced=without_time(gathered.unplaced), timed_out=True)
    if (all if whole else any)(gathered.might_place(pod) for pod in gathered.unplaced):
        scheduled = Packer(world, templates, at_most, Way.AS_SCHEDULED)
        scheduled.run(scheduled.ordered(pods), whole=whole)
        if not (whole and scheduled.unplaced) and not scheduled.timed_out:
            return scheduled.result()
        world.rollback(point)
    gathered.again()
    return gathered.result()


def _on_fewer_nodes(first: Packer, second: Packer, world: World, point: int) -> Packer:
    """Run the second packer in a tighter order where the first has opened more nodes than its pods' requests need;
    return the cheaper of the two, with its placements in the world.
    """
    order = first.tighter()
    if order is None:
        return first
    world.rollback(point)
    second.run(order, whole=True)
    if not second.unplaced and second.cost < first.cost:
        return second
    world.rollback(point)
    first.again()
    return first
