"""Launching new nodes ahead: ordered in the record first, then asked for, then written down as debts.

Each order has a number and a client token made of it: asked twice, it is one launch. An order whose answer got lost is
asked for again before anything else is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from leeward.ports import Ports
from leeward.upgrade.books import remarked
from leeward.upgrade.lease import written
from leeward.upgrade.placing import places_for
from leeward.upgrade.record import UpgradeRecord, launch_token
from leeward.upgrade.scene import Scene, described


def order(record: UpgradeRecord, scene: Scene, zones: Sequence[str], ports: Ports) -> UpgradeRecord:
    """The record with orders for these zones, not yet written."""
    orders = dict(record.orders)
    number = record.ordered
    for zone, subnet in places_for(scene, zones, ports, avoid=frozenset(record.short)):
        number += 1
        orders[str(number)] = f"{zone}/{subnet}"
    return replace(record, orders=orders, ordered=number)


def fulfil(record: UpgradeRecord, ports: Ports) -> UpgradeRecord:
    """Ask for every open order and write down what came of it."""
    if not record.orders:
        return record
    record = _with_room(record, ports)
    found: dict[str, str] = {}  # new instance -> zone
    short: dict[str, str] = {}
    refusal = ""
    for number, where in sorted(record.orders.items(), key=lambda item: int(item[0])):
        zone, _, subnet = where.partition("/")
        answer = ports.groups.launch(group=record.group, subnet=subnet, token=launch_token(record, number))
        found |= dict.fromkeys(answer.launched, zone)
        if answer.no_capacity:
            short[subnet] = f"{zone}: {answer.reason}"
        elif not answer.owed:
            refusal = answer.reason
    return written(_noted(record, found, short, refusal), ports)


def _with_room(record: UpgradeRecord, ports: Ports) -> UpgradeRecord:
    """Others may have launched meanwhile: the maximum size makes room for what was ordered, and is put back later."""
    group = described(record.group, ports)
    wanted = group.desired + len(record.orders)
    if wanted <= group.maximum:
        return record
    if not record.raised_maximum or wanted > record.raised_to:
        record = written(replace(record, raised_maximum=True, raised_to=max(record.raised_to, wanted)), ports)
    ports.group_changes.raise_to(record.group, maximum=wanted)
    return record


def _noted(record: UpgradeRecord, found: Mapping[str, str], short: Mapping[str, str], refusal: str) -> UpgradeRecord:
    record = replace(
        record,
        orders={},
        launched=record.launched + len(found),
        debts={**record.debts, **dict.fromkeys(found, "")},
        places={**record.places, **found},
        short=dict(short),
        refusal=refusal or record.refusal,
    )
    return remarked(record, f"LaunchInstances is refused: {refusal}; the desired size is raised") if refusal else record
