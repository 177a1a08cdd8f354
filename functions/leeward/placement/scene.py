"""Inputs of a choice of subnets, gathered before it from the cluster and EC2, or from a snapshot folder."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.subnet import Subnet
from leeward.placement.accounting import Demand
from leeward.placement.restrictions import ZONE_KEYS, Restriction, no_pods_in


class Chance(Protocol):
    """Source of random numbers, seeded by the caller: `random.Random`."""

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 to stop - 1."""
        ...


class SeededChance:
    """`Chance` whose seed is a text, such as the id of the instance that is replaced: the same text gives the same
    choices, so that a repeated decision is the same.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn = 0

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 to stop - 1, as even as 256 bits make it."""
        self._drawn += 1
        return int.from_bytes(sha256(f"{self._seed}/{self._drawn}".encode()).digest()) % stop


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementScene:
    """Inputs of one choice. `subnets`: all that might be used. `cores`: thousandths of a core by zone, of all nodes.
    `promised`: addresses by subnet id that launches will take and that EC2 does not count yet. `asked_zones` are
    reported even when no subnet is there. `closed`: zones that are the last choice (`closed_zones`).
    """

    subnets: tuple[Subnet, ...]
    demand: Demand
    cores: Mapping[str, int] = field(default_factory=dict)
    restrictions: tuple[Restriction, ...] = ()
    promised: Mapping[str, int] = field(default_factory=dict)
    asked_zones: tuple[str, ...] = ()
    closed: frozenset[str] = frozenset()

    @property
    def zones(self) -> tuple[str, ...]:
        """Zones by name: of subnets, of nodes, and the requested ones."""
        return tuple(sorted({subnet.zone for subnet in self.subnets} | {*self.cores} | {*self.asked_zones}))

    def forbidding(self, subnet: Subnet) -> Restriction | None:
        """Return the first restriction that does not allow the subnet."""
        shut = no_pods_in(self.demand.accounting.shut)
        return next((one for one in (*self.restrictions, *shut) if not one.allows(subnet)), None)

    def free_ips(self, subnet: Subnet) -> int:
        """Return the free addresses as EC2 counts them, less the promised ones; never below 0."""
        return max(subnet.free_ips - self.promised.get(subnet.id, 0), 0)


def zone_of(node: Node) -> str:
    """Return the zone from the node's labels, else from its provider id (`aws:///ZONE/INSTANCE`), else empty."""
    labelled = node.labels.get(ZONE_KEYS[0]) or node.labels.get(ZONE_KEYS[1])
    if labelled:
        return labelled
    parts = node.provider_id.removeprefix("aws://").split("/")
    return parts[1] if len(parts) == 3 else ""


def cores_by_zone(nodes: Iterable[Node], type_cores: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the capacity of all nodes, cordoned and terminating ones too, in thousandths of a core. `type_cores`: by
    instance type, for nodes whose status lacks it. Nodes without a zone count nowhere.
    """
    found: dict[str, int] = {}
    for node in nodes:
        zone = zone_of(node)
        if zone:
            found[zone] = found.get(zone, 0) + node_cores(node, type_cores)
    return found


def closed_zones(nodes: Iterable[Node]) -> frozenset[str]:
    """Return zones whose nodes are all NotReady or cordoned by others: the last choice for new nodes, although few
    cores may be allocated there. Nodes that Leeward itself is terminating are ignored.
    """
    takes: dict[str, bool] = {}
    for node in nodes:
        zone = zone_of(node)
        if zone and not node.tainted:
            takes[zone] = takes.get(zone, False) or (node.ready and not _cordoned_by_others(node))
    return frozenset(zone for zone, open_to_pods in takes.items() if not open_to_pods)


def _cordoned_by_others(node: Node) -> bool:
    return node.unschedulable and well_known.CORDONED_FOR not in node.annotations


def node_cores(node: Node, type_cores: Mapping[str, int] | None = None) -> int:
    """Return thousandths of a core: the node's own figure, else its instance type's, else 0."""
    return node.cpu or (type_cores or {}).get(node.labels.get(well_known.INSTANCE_TYPE_LABEL, ""), 0)
