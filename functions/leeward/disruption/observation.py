"""One look at a cluster for a round: the snapshot, with what the table alone knows.

Decides nothing. Groups that an upgrade holds are named, so that none of their nodes is a candidate and none of them
launches; the old nodes that it has told to go count against budgets before they carry a mark."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

from leeward.disruption.record import RoundRecord
from leeward.model.node import Node, disruption_taint, unmarked
from leeward.ports import Ports
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.gather import gather


def look(cluster: str, ports: Ports, record: RoundRecord | None) -> ClusterSnapshot:
    """Raises what the ports raise: a round that cannot see does nothing."""
    return with_the_table(gather(ports, cluster, ports.clock.now()), ports, record)


def with_the_table(snapshot: ClusterSnapshot, ports: Ports, record: RoundRecord | None) -> ClusterSnapshot:
    """The snapshot with upgrades and the last round of each group. Raises what the table raises."""
    held, going = _upgrades((name for name, group in snapshot.groups.items() if snapshot.policy_of(group)), ports)
    rests = record.rests if record is not None else {}
    under_way = (_told(record),) if record is not None and record.open else ()
    return replace(snapshot, last_rounds=rests, held=held, going=going, remarks=(*snapshot.remarks, *under_way))


def _told(record: RoundRecord) -> str:
    """For people: what runs now."""
    done = "its nodes were told to go" if record.told else "no node was told to go yet"
    return f"round {record.number} is under way (execution {record.execution}): {record.summary}; {done}"


def _upgrades(groups: Iterable[str], ports: Ports) -> tuple[dict[str, str], frozenset[str]]:
    """(group -> why it is held, instances told to go): one read of the table for each selected group."""
    held: dict[str, str] = {}
    going: set[str] = set()
    for group in groups:
        record = ports.upgrades.read(group)
        if record is None:
            continue
        going |= record.under_way.keys()
        if record.ended is None:
            held[group] = f"its group {group} is being upgraded"
        elif record.debts or record.orders:
            held[group] = f"an upgrade of its group {group} has failed and still owes: start it again, or abort it"
    return held, frozenset(going)


def without_our_marks(snapshot: ClusterSnapshot, record: RoundRecord, deployment: str) -> ClusterSnapshot:
    """As it would be had the round not begun: its nodes stand where they stood, so that they can be judged again. The
    specs stay as they are: nothing else is to land there.
    """
    claimed = record.nodes

    def before(node: Node) -> Node:
        mine = claimed.get(node.name) == node.instance_id and node.instance_id not in snapshot.claimed
        return unmarked(node, disruption_taint(deployment)) if mine and node.marked else node

    return replace(snapshot, nodes=tuple(before(node) for node in snapshot.nodes))


def for_seconds(seconds: float, ports: Ports) -> Callable[[], bool]:
    """Whether there is time for another try; asked before each."""
    end = ports.clock.now() + timedelta(seconds=seconds)
    return lambda: ports.clock.now() < end
