"""Reboot in place of a replacement: who makes it, for which condition, and how often a node may be rebooted.

A node counts as rebooted once its kubelet reports another boot id, it is Ready, and the condition is gone."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

MOST_A_DAY = 2  # reboots of one node by Leeward; what a third would be for needs another machine
DAY = timedelta(days=1)
AHEAD = timedelta(minutes=5)  # for the claim, a cold start and the settling of the empty node
BACK_WITHIN = timedelta(minutes=15)  # from the reboot until the node has to be Ready; then it is replaced


class RebootBy(StrEnum):
    """Callers of a reboot. `ec2`: its scheduled event reboots the instance; `group`: its Auto Scaling group does, to
    replace its root volume. The run waits for either.
    """

    LEEWARD = "leeward"
    EC2 = "ec2"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """Reboot that a cause asks for. `condition`, `status`: the Node's condition that it is to end, empty if none is."""

    by: RebootBy
    condition: str = ""
    status: str = ""


def drain_begins(reboot: datetime, drain: timedelta) -> datetime:
    """Return when the drain begins for a reboot that EC2 makes: `drain`, the longest that it may take, and some minutes
    before that. A node that is drained earlier serves nothing in between.
    """
    return reboot - drain - AHEAD


def reboots_of_a_day(reboots: Iterable[datetime], now: datetime) -> int:
    """Return the number of reboots within the last day."""
    return sum(now - at < DAY for at in reboots)
