"""Verdicts of placement: per zone, per node, and in one sentence for the Event, the log and the command line."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from leeward.model.counts import count_of

NO_SUBNET_WITH_IPS = "there is no subnet with enough available IP addresses"  # Cast AI's wording for the pod's Event


class ZoneStanding(StrEnum):
    """Standing of a zone for the next node."""

    NEXT = "next"
    USABLE = "usable"
    NO_IPS = "no-ips"
    NO_SUBNET = "no-subnet"
    NOT_ALLOWED = "not-allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneVerdict:
    """Verdict on one zone. `millicores`: thousandths of a core of its nodes; `free_ips`: of its allowed subnets."""

    zone: str
    millicores: int
    free_ips: int
    standing: ZoneStanding
    why: str

    @property
    def usable(self) -> bool:
        """True if a node may land there."""
        return self.standing in {ZoneStanding.NEXT, ZoneStanding.USABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Subnet of one node. `free_ips`: before this node, promises subtracted; `ips`: those that the node takes."""

    subnet: str
    zone: str
    free_ips: int
    ips: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Subnets of the nodes in their order, fewer than `wanted` without capacity; `refused`: zones that were dropped."""

    wanted: int
    choices: tuple[Choice, ...]
    refused: tuple[ZoneVerdict, ...]

    @property
    def complete(self) -> bool:
        """True if every node has a subnet."""
        return len(self.choices) == self.wanted

    @property
    def sentence(self) -> str:
        """Sentence about the result, with numbers."""
        if self.complete:
            return "; ".join(dict.fromkeys(choice.why for choice in self.choices))
        reasons = "; ".join(f"{zone.zone}: {zone.why}" for zone in self.refused) or "no zone is known"
        without_ips = any(zone.standing is ZoneStanding.NO_IPS for zone in self.refused)
        what = NO_SUBNET_WITH_IPS if without_ips else "there is no subnet where the node may land"
        placed = f" for {self.wanted - len(self.choices)} of {count_of(self.wanted, 'node')}" if self.choices else ""
        return f"{what}{placed} ({reasons})"


def cores(millicores: int) -> str:
    """Format cores with the unit: `8 cores`, `7.5 cores`."""
    number = f"{millicores / 1000:g}"
    return f"{number} core" if number == "1" else f"{number} cores"


def ips(count: int) -> str:
    """Format a number of addresses: `1 IP`, `12 IPs`."""
    return f"{count} IP" if count == 1 else f"{count} IPs"


def listed(names: Iterable[str]) -> str:
    """Format names as `a, b and c`."""
    found = list(names)
    return " and ".join((", ".join(found[:-1]), found[-1])) if len(found) > 1 else "".join(found)
