"""Zones whose subnets cannot hold the new nodes beside the old ones, by placement's own accounting of addresses."""

from collections import Counter
from collections.abc import Iterator

from leeward.model.instance_type import InstanceType
from leeward.model.subnet import Subnet
from leeward.placement.accounting import Demand, accounting_of, demand_of
from leeward.placement.cni import CniSettings
from leeward.upgrade.preflight.findings import Code, Finding, blocker, warning
from leeward.upgrade.preflight.model import Preflight, zone_of


def check(preflight: Preflight) -> Iterator[Finding]:
    """Check each zone with old nodes: a blocker where not one new node has room, a warning where fewer than may come at
    a time: the upgrade is slower then.
    """
    subnets = _subnets(preflight)
    if not preflight.extra or not subnets:
        return
    demand = _demand(preflight, subnets)
    zones = Counter(zone_of(preflight.world, member) for member in preflight.old)
    share = -(-preflight.most_extra // max(len(zones), 1))
    for zone in sorted(zones):
        wanted = min(zones[zone], share)
        mine = [subnet for subnet in subnets if subnet.zone == zone]
        room = sum(subnet.free_ips // max(demand.ips, 1) for subnet in mine)
        free = ", ".join(f"{subnet.id} has {subnet.free_ips} free" for subnet in mine) or "no subnet of the group"
        said = f"{free}, {demand.node} takes {demand.ips}"
        fix = f"free addresses or add a subnet in {zone} (leeward zones), or use update.strategy MINIMAL"
        if room == 0:
            yield blocker(Code.ZONE_WITHOUT_ADDRESSES, f"zone {zone}", f"no room for a new node: {said}", fix)
        elif room < wanted:
            told = f"room for {room} of up to {wanted} new nodes at a time: {said}"
            yield warning(Code.ZONE_SHORT_OF_ADDRESSES, f"zone {zone}", told, fix)


def _subnets(preflight: Preflight) -> list[Subnet]:
    """Return the group's own subnets; for a group without, all of its zones."""
    group, known = preflight.group, preflight.world.subnets.values()
    if group.subnets:
        return [subnet for subnet in known if subnet.id in group.subnets]
    return [subnet for subnet in known if subnet.zone in group.zones]


def _demand(preflight: Preflight, subnets: list[Subnet]) -> Demand:
    """Return the demand of a node as full as the fullest old one, of whatever type takes most."""
    settings = CniSettings.from_variables(preflight.beside.cni)
    launchable = preflight.launchable
    names = launchable.types if launchable is not None else preflight.group.running_types
    known = {**preflight.world.types, **preflight.beside.types}
    types = [known.get(name, InstanceType(name=name, vcpus=0, memory_mib=0)) for name in names]
    accounting = accounting_of(settings, preflight.world.subnets.values(), subnets)
    return demand_of(accounting, settings, types, _pods(preflight))


def _pods(preflight: Preflight) -> int:
    """Count the pods with an address of their own, DaemonSets' pods too, on the fullest old node."""
    nodes = [member.node.name for member in preflight.old if member.node is not None]
    held = (sum(not (pod.finished or pod.host_network) for pod in preflight.world.pods_on(node)) for node in nodes)
    return max(held, default=0)
