"""Launches of surge nodes: ordered in the record, then requested from Auto Scaling, then recorded.

Decides how orders are split and what a launch's answer changes in the record; `surge.launches` decides zones and
subnets. One order requests all new nodes of one subnet: LaunchInstances is synchronous, and a hundred calls one
after the other take longer than a boot. Each order is recorded with its count and a number, from which its client
token is made, so a repeated call launches once. An order whose answer was lost is repeated before anything else is
decided. Where LaunchInstances does not serve the group, the desired size is raised instead, and new members become
surge nodes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from leeward.model.group import GroupInstance
from leeward.model.launch_refusal import sentence
from leeward.ports import Ports
from leeward.ports.compute import Network
from leeward.ports.records import Catalog
from leeward.termination.capacity_ledger import staying
from leeward.termination.maximum_size import allow
from leeward.upgrade.capacity_ledger import with_warning
from leeward.upgrade.gate import zones_to_serve
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Observation, described
from leeward.upgrade.preflight.model import Preflight, why_zones_wait
from leeward.upgrade.record import LaunchOrder, OpenLaunch, UpgradeRecord, launch_token
from leeward.upgrade.run import written
from leeward.upgrade.surge.launches import places_for

DESIRED_SIZE = "the desired size is raised instead"
FULL = "InsufficientFreeAddressesInSubnet: no subnet of the group there has free addresses for a node and its pods"
RETRIED = timedelta(minutes=5)  # a zone without capacity; each try elsewhere costs a node until the upgrade ends
MAX_INSTANCES_PER_LAUNCH = 100  # RequestedCapacity of LaunchInstances (Auto Scaling API reference)


def order(
    record: UpgradeRecord, observation: Observation, zones: Sequence[str], network: Network, catalog: Catalog
) -> UpgradeRecord:
    """Return the record with orders for new nodes, one node per entry of `zones`, and with the zones in which none has
    a place. The record is not yet written.
    """
    orders = dict(record.orders)
    number = record.ordered
    wanted = Counter(places_for(observation, zones, network, catalog, avoid=frozenset(record.short)))
    for (zone, subnet), count in wanted.items():
        for ordered in range(0, count, MAX_INSTANCES_PER_LAUNCH):
            number += 1
            size = min(count - ordered, MAX_INSTANCES_PER_LAUNCH)
            orders[str(number)] = LaunchOrder(zone=zone, subnet=subnet, count=size)
    placed = {zone for zone, _ in wanted}
    full = [zone for zone in zones if zone not in placed | observation.preflight.snapshot.shifted_zones]
    kept = {key: why for key, why in record.short.items() if key not in placed}
    return replace(record, orders=orders, ordered=number, short=kept | {zone: f"{zone}: {FULL}" for zone in full})


def launch_ordered(record: UpgradeRecord, ports: Ports) -> UpgradeRecord:
    """Call LaunchInstances for every open order and write the result into the record. Idempotent by the orders' client
    tokens. Raises RecordChangedError.
    """
    if not record.orders:
        return record
    allow(record.group, ports, more=sum(order.count for order in record.orders.values()))
    launched: dict[str, str] = {}  # new instance -> zone
    short: dict[str, str] = {}
    refusal = ""
    for number in sorted(record.orders, key=int):
        order, token = record.orders[number], launch_token(record, number)
        answer = ports.groups.launch(group=record.group, subnet=order.subnet, token=token, count=order.count)
        launched |= dict.fromkeys(answer.launched, order.zone)
        if answer.no_capacity:
            short[order.subnet] = f"{order.zone}: {answer.reason}"
        elif not answer.launched:
            refusal = answer.reason
    return written(_with_answers(record, launched, short, refusal), ports.upgrades)


def _with_answers(
    record: UpgradeRecord, launched: Mapping[str, str], short: Mapping[str, str], refusal: str
) -> UpgradeRecord:
    record = replace(
        record,
        orders={},
        launched=record.launched + len(launched),
        ahead={**record.ahead, **{new: OpenLaunch(zone=zone) for new, zone in launched.items()}},
        short={key: why for key, why in record.short.items() if why == f"{key}: {FULL}"} | dict(short),
        refusal=refusal or record.refusal,
    )
    return with_warning(record, sentence(record.group, refusal, DESIRED_SIZE)) if refusal else record


def adopted(record: UpgradeRecord, observation: Observation) -> UpgradeRecord:
    """Return the record with new members of the group as surge nodes, where the desired size was raised instead of
    launching. Each member counts once: an offset one stays in the group while the others have not come. No more than
    the desired size is larger by: a raise that failed brings none, and the group may replace a surge node meanwhile.
    """
    came = min(record.raised, observation.group.desired - record.desired - len(record.ahead))
    if came <= 0:
        return record
    passed = {*record.ahead, *record.counted}
    new = [instance for instance in _new_members(observation.preflight) if instance.id not in passed][:came]
    left = record.raised - len(new)
    return replace(
        record,
        raised=left,
        counted=(*record.counted, *(instance.id for instance in new)) if left else (),
        launched=record.launched + len(new),
        ahead={**record.ahead, **{instance.id: OpenLaunch(zone=instance.zone) for instance in new}},
    )


def raise_desired_size(record: UpgradeRecord, observation: Observation, ports: Ports, *, gating: bool) -> UpgradeRecord:
    """Raise the desired size by the surge nodes that are missing, where LaunchInstances does not serve the group; then,
    while the gate waits (`gating`), by one at a time as long as the group has launched elsewhere and a zone with old
    nodes has no new one. The gate waits again in a start that continues after old nodes were cordoned.

    Idempotent: the record keeps the size, which is calculated once for each raise. Raises RecordChangedError.
    """
    if not record.refusal or record.others_scaled is not None:
        return record
    snapshot = observation.preflight.snapshot
    if not record.wanted and why_zones_wait(snapshot, observation.group):
        return record  # the group would choose the zone by itself
    missing = _missing(record, observation, gating=gating)
    if missing or not record.wanted:
        group = described(record.group, ports.groups)
        before = tuple(instance.id for instance in _new_members(observation.preflight)) if missing else ()
        sized = replace(record, wanted=group.desired + missing, raised=missing, counted=before)
        record = written(sized, ports.upgrades)
    if record.raised:
        allow(record.group, ports, size=record.wanted)
        ports.group_changes.raise_to(record.group, desired=record.wanted)
    return record


def _missing(record: UpgradeRecord, observation: Observation, *, gating: bool) -> int:
    """Return by how many to raise now: first by the surge; later by one, once every raise has brought its instance and
    the gate still waits for a zone. Beyond the limit a zone that lacked capacity is tried once for each `RETRIED`: the
    gate fails after three of these.
    """
    preflight, ahead = observation.preflight, record.ahead.keys()
    if not record.wanted:
        return max(min(record.surge, len(preflight.old)) - len(ahead), 0)
    if record.raised or not gating or not zones_in_reach(preflight, record):
        return 0
    new = [member.instance.id for member in preflight.members if member.age is Age.NEW]
    launched = [observation.instances[name].launched for name in new if name in observation.instances]
    waited = bool(launched) and preflight.snapshot.now - max(launched) >= RETRIED
    return int(waited or _within_limit(preflight, record))


def zones_in_reach(preflight: Preflight, record: UpgradeRecord) -> frozenset[str]:
    """Return zones without a new node in which a launch may still bring one: all of them where launches are placed by
    name, until those that wait for an old node use up maxSurge. Launches that another target has made old use it too,
    and each of them leaves only for an old node that drains behind the gate.

    Where the desired size is raised: all of them while there is no new node at all. The group launches where it has the
    fewest instances, so first in each of its zones that holds none: within the limit any zone may be reached, beyond it
    only those that are next, which have lacked capacity. Without these the gate would wait for a node that never comes,
    in this start and in the next.
    """
    members = _new_members(preflight)
    bereft = zones_to_serve(preflight) - {instance.zone for instance in members}
    if not record.wanted and record.alive >= preflight.max_surge:
        outdated = {member.instance.id for member in preflight.old}
        coming = {launch.zone for new, launch in record.ahead.items() if new not in outdated}
        return bereft & coming.union(order.zone for order in record.orders.values())
    if not record.wanted or record.raised or not members:
        return bereft
    if len(record.ahead) >= preflight.max_surge:
        return frozenset()
    if _within_limit(preflight, record):
        return bereft
    held = Counter(one.zone for one in preflight.group.instances if one.id in staying(preflight.group))
    zones = set(preflight.group.zones) - preflight.snapshot.shifted_zones
    fewest = min((held[zone] for zone in zones), default=0)
    return frozenset(zone for zone in bereft & zones if held[zone] <= fewest)


def _within_limit(preflight: Preflight, record: UpgradeRecord) -> bool:
    """Return whether fewer new nodes have come than the limit: the surge, or twice the group's zones. Instances of an
    earlier target bring no new node: they count against maxSurge alone.
    """
    most = max(record.surge, 2 * max(len(zones_to_serve(preflight)), len(preflight.group.zones)))
    new = record.ahead.keys() - {member.instance.id for member in preflight.old}
    return len(new) < most


def _new_members(preflight: Preflight) -> list[GroupInstance]:
    return [member.instance for member in preflight.members if member.age is Age.NEW]
