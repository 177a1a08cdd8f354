"""What placement says: for each zone, for each node, and in one sentence for the Event, the log and the command
line."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

NO_SUBNET_WITH_IPS = "there is no subnet with enough available IP addresses"  # Cast AI's words for the pod's Event


class Standing(StrEnum):
    """How a zone stands for the next node."""

    NEXT = "next"
    USABLE = "usable"
    NO_IPS = "no-ips"
    NO_SUBNET = "no-subnet"
    NOT_ALLOWED = "not-allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneVerdict:
    """One zone. `millicores`: capacity of its nodes in thousandths of a core; `free_ips`: of its allowed subnets."""

    zone: str
    millicores: int
    free_ips: int
    standing: Standing
    why: str

    @property
    def usable(self) -> bool:
        """A node may land there."""
        return self.standing in {Standing.NEXT, Standing.USABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The subnet of one node. `free_ips`: before this node, promises subtracted; `ips`: what the node takes of them."""

    subnet: str
    zone: str
    free_ips: int
    ips: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The subnets of the nodes in their order, fewer than `wanted` when there is no room; zones that were dropped."""

    wanted: int
    choices: tuple[Choice, ...]
    refused: tuple[ZoneVerdict, ...]

    @property
    def complete(self) -> bool:
        """Every node has a subnet."""
        return len(self.choices) == self.wanted

    @property
    def sentence(self) -> str:
        """What happened, with numbers."""
        if self.complete:
            return "; ".join(dict.fromkeys(choice.why for choice in self.choices))
        reasons = "; ".join(f"{zone.zone}: {zone.why}" for zone in self.refused) or "no zone is known"
        without_ips = any(zone.standing is Standing.NO_IPS for zone in self.refused)
        what = NO_SUBNET_WITH_IPS if without_ips else "there is no subnet where the node may land"
        placed = f" for {self.wanted - len(self.choices)} of {self.wanted} nodes" if self.choices else ""
        return f"{what}{placed} ({reasons})"


def cores(millicores: int) -> str:
    """As people write them: `8`, `7.5`, with the unit."""
    number = f"{millicores / 1000:g}"
    return f"{number} core" if number == "1" else f"{number} cores"


def ips(count: int) -> str:
    """`1 IP`, `12 IPs`."""
    return f"{count} IP" if count == 1 else f"{count} IPs"


def listed(names: Iterable[str]) -> str:
    """`a, b and c`."""
    found = list(names)
    return " and ".join((", ".join(found[:-1]), found[-1])) if len(found) > 1 else "".join(found)
