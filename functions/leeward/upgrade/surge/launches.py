"""Selection of the new nodes to launch now in a running upgrade of a self-managed group.

Decides from one observation and from the record. Launches come ahead of the drains, in the zones of the old nodes
that they replace (docs/designs/upgrade.md)."""

from collections import Counter
from collections.abc import Collection

from leeward.placement.scene import closed_zones
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy, in_store, launch_now, most_ahead, next_increment
from leeward.upgrade.waves.drain_selection import waiting, with_decrement


def launches(preflight: Preflight, record: UpgradeRecord, *, rolling: bool = False) -> tuple[str, ...] | None:
    """Return zones of new nodes to launch now, one entry for each; None where INCREMENTAL has reached its end without
    success.

    `rolling`: the target has proven to work and no canary is watched: from then on more come ahead than the surge.
    Empty while another writer seems to have scaled the group up: what was launched then is never offset.
    """
    if not with_decrement(record) or record.others_seen is not None:
        return ()
    old = waiting(preflight, record)
    alive = record.alive
    told = len(record.assigned)
    most = preflight.max_surge
    limit = in_store(record.strategy, record.surge, _pace(preflight, old), most) if rolling else record.surge
    ahead = launch_now(surge_limit=limit, alive=alive, gone=told, old_left=len(old))
    count: int | None = min(ahead, max(most_ahead(record.surge, preflight.parallel, most) - alive, 0))
    if record.strategy is Strategy.INCREMENTAL and not record.cordoned:
        count = _increment(preflight, record, len(old))
    if count is None:
        return None
    lacking = Counter(zone_of(preflight.world, one) for one in old)
    lacking.subtract(record.ahead[new].zone for new in record.unassigned)
    for order in record.orders.values():
        lacking[order.zone] -= order.count
    closed, found = closed_zones(preflight.world.nodes), list[str]()
    for _ in range(count):
        wanting = sorted(name for name in lacking if lacking[name] > 0)
        zone = min(wanting, key=lambda name: (name in closed, -lacking[name]), default=None)
        if zone is None:
            break
        lacking[zone] -= 1
        found.append(zone)
    return tuple(found)


def _pace(preflight: Preflight, old: Collection[Member]) -> int:
    """Return how many of the old nodes the limits allow to drain at once, in all zones together."""
    limits = preflight.limits
    zones = {zone_of(preflight.world, one) for one in old}
    return min(limits.together, sum(limits.per_zone.get(zone, limits.together) for zone in zones))


def _increment(preflight: Preflight, record: UpgradeRecord, old: int) -> int | None:
    """Return one for each zone first, then one by one while a zone is without a new node."""
    zones = {zone_of(preflight.world, one) for one in preflight.old}
    served = {zone_of(preflight.world, one) for one in preflight.members if one.age is Age.NEW}
    on_their_way = len(record.orders) + sum(new not in _ids(preflight) for new in record.ahead)
    if on_their_way:
        return 0
    more = next_increment(len(record.ahead), len(zones), len(zones - served), preflight.max_surge)
    return None if more is None else min(more, old)


def _ids(preflight: Preflight) -> set[str]:
    return {one.instance.id for one in preflight.members}
