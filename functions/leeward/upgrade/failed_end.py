"""End of a failed upgrade: old nodes return to service, and the surge and a larger MaxSize that stay are named.

The old nodes return to service and to load balancers, because the next start may be days away; it cordons them again
when its gate opens. New nodes that no old node has left for stay: they may hold pods, and the next start continues
with them. The failure names them, and so does an Event, once a day as long as they are there."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

from leeward.errors import LeewardError
from leeward.model import well_known
from leeward.model.facts import ClusterFacts
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.snapshot.launchable import price_of
from leeward.upgrade.cordoning import uncordon
from leeward.upgrade.record import UpgradeRecord

EVENT = "UpgradeFailed"
REMINDED = timedelta(days=1)
LOOK = timedelta(minutes=5)  # after each full day: the minute reconciler comes at least once
MOST_NAMED = 5
LONGEST_LEFT = 300


def give_back(record: UpgradeRecord, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove Leeward's cordons and exclusions for this group and return the names of the nodes. A node whose
    termination is requested keeps them until that ends. Idempotent.
    """
    marks = (well_known.CORDONED_FOR, well_known.EXCLUDED_FOR)
    mine = [node for node in nodes if record.group in {node.annotations.get(mark) for mark in marks}]
    uncordon(mine, record, ports.clusters)
    return [node.name for node in mine]


def left_behind(record: UpgradeRecord, ports: Ports) -> str:
    """Return what the upgrade leaves and what it costs, in a sentence; empty for nothing."""
    known = ports.instances.describe(record.ahead) if record.ahead else {}
    new = [instance for instance in known.values() if not instance.ended]
    maximum = f"MaxSize is {record.raised_to} instead of {record.maximum}" if record.raised_maximum else ""
    if not new:
        return maximum
    prices = ClusterFacts.from_sheets(ports.catalog.read(record.cluster)).prices
    costs = [price_of(one.type, one.zone, one.capacity_type, prices) for one in new]
    cost = "" if None in costs else f", some ${sum(filter(None, costs)):.2f} an hour"
    more = f" and {len(new) - MOST_NAMED} more" if len(new) > MOST_NAMED else ""
    names = ", ".join(sorted(one.id for one in new)[:MOST_NAMED]) + more
    stay = f"new nodes beyond the group's size: {len(new)} ({names}{cost}): start continues with them, abort ends them"
    return "; ".join(filter(None, (stay, maximum)))[:LONGEST_LEFT]


def end_failed(record: UpgradeRecord, ports: Ports) -> str:
    """Give the old nodes back and return what is left. An API that does not answer keeps no failure from being
    recorded: the minute reconciler gives the nodes back then.
    """
    left = ""
    with suppress(LeewardError):
        left = left_behind(record, ports)
    with suppress(LeewardError):
        give_back(record, ports.clusters.kubernetes(record.cluster).nodes(), ports)
    return left


def announce_failure(record: UpgradeRecord, why: str, ports: Ports) -> None:
    """Write the Event of a node of the group. It is written after the record, which it repeats."""
    with suppress(LeewardError):
        kubernetes = ports.clusters.kubernetes(record.cluster)
        group = ports.groups.describe([record.group]).get(record.group)
        members = {member.id for member in group.instances} if group is not None else set()
        node = next((node for node in kubernetes.nodes() if node.instance_id in members), None)
        if node is not None:
            message = f"upgrade of {record.group}: {why}"[:1000]
            kubernetes.event(node, reason=EVENT, message=message, warning=True, now=ports.clock.now())


def remind(record: UpgradeRecord, ports: Ports) -> None:
    """Write the Event once a day while new nodes of a failed upgrade stay that no old node has left for."""
    now = ports.clock.now()
    if record.ended is None or not record.error or not record.ahead:
        return
    since = now - record.ended
    if since < REMINDED or since % REMINDED >= LOOK:
        return
    key = f"upgrade-left#{record.group}#{record.stamp}#{since // REMINDED}"
    if ports.claims.once(key, REMINDED, now) and (left := left_behind(record, ports)):
        announce_failure(record, f"failed {since.days} d ago: {left}", ports)
