"""Selection of the nodes whose termination offsets launches that no old node is left for: surplus of an upgrade's end,
and new nodes of an abort.

Decides from one observation and from the record. A node without evictable pods leaves at once. The others leave within
the limits that hold for old nodes: maxUnavailable, every budget with reason Upgrade, the budgets of their pods."""

from collections.abc import Sequence

from leeward.upgrade.members import Member
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.waves.drain_selection import busy_nodes
from leeward.upgrade.waves.model import WaveNode, has_to_leave, wave_node
from leeward.upgrade.waves.planner import next_nodes


def pods_to_move(preflight: Preflight, member: Member) -> int:
    """Count the pods of the member that have to be evicted."""
    if member.node is None:
        return 0
    return sum(has_to_leave(pod) for pod in preflight.snapshot.pods_on(member.node.name))


def may_leave_now(preflight: Preflight, record: UpgradeRecord, candidates: Sequence[Member]) -> list[Member]:
    """Return the candidates, in their order, whose termination may be requested now. A requested surplus counts until
    its pods have left, also before its node is tainted.
    """
    full = {one.name: one for one in candidates if pods_to_move(preflight, one)}
    nodes = [_wave_node(preflight, one) for one in full.values()]
    chosen = set(next_nodes(nodes, busy_nodes(preflight, record), preflight.limits, preflight.constraints))
    return [one for one in candidates if one.name not in full or one.name in chosen]


def _wave_node(preflight: Preflight, member: Member) -> WaveNode:
    zone = zone_of(preflight.snapshot, member)
    if member.node is None:
        return WaveNode(name=member.name, zone=zone, created=preflight.snapshot.now)
    pods = preflight.snapshot.pods_on(member.node.name)
    return wave_node(member.name, zone, member.node.created, pods, preflight.index)
