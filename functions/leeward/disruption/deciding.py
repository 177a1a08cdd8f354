"""fn decide: what each cluster needs now, and the round that does it.

Annotations are written first (since when a node is empty, that it has expired or drifted). A plan becomes a round: its
record is written, which claims the nodes, and its execution started under a name that follows from it. A cluster has
one round at a time."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from leeward.disruption.annotating import write_annotations
from leeward.disruption.annotations import changes_in
from leeward.disruption.command import Command, Plan
from leeward.disruption.lease import revive, start
from leeward.disruption.looking import for_seconds, look
from leeward.disruption.plan import plan_in, plan_round
from leeward.disruption.record import RoundRecord, groups_named
from leeward.disruption.round import Round
from leeward.disruption.staying import tell_why_nodes_stay
from leeward.errors import LeewardError
from leeward.patience import patiently
from leeward.ports import Ports
from leeward.snapshot.cluster import ClusterSnapshot

SEARCH = 120.0  # seconds, of all clusters together: what has been found by then is the plan
PAUSES = (1.0, 3.0)  # seconds between tries
WRITE = 40.0  # seconds for annotations, and as many for Events
LARGEST = 350_000  # bytes of a round's record, about: DynamoDB takes 400 KB an item
A_NODE, A_TYPE = 900, 22  # bytes, with what the round will write down of them


@dataclass(slots=True)
class Decided:
    """What one call came to, by cluster; `errors` names what could not be looked at."""

    annotated: int = 0
    told: int = 0
    rounds: list[str] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """For the log."""
        return {name: getattr(self, name) for name in self.__slots__}


def decide_once(ports: Ports) -> Decided:
    """Every cluster, each apart from the others."""
    found = Decided()
    names = ports.clusters.names()
    for cluster in names:
        with _apart(cluster, found):
            # A look is some twenty calls: one that was throttled is no reason to wait for the next schedule.
            patiently(partial(_decide, cluster, ports, found, share=1 / len(names)), ports.clock, PAUSES)
    return found


@contextmanager
def _apart(cluster: str, found: Decided) -> Iterator[None]:
    try:
        yield
    except LeewardError as error:
        found.errors.append(f"{cluster}: {type(error).__name__}: {error}")


def _decide(cluster: str, ports: Ports, found: Decided, share: float) -> None:
    if ports.clusters.policies(cluster).settings.paused:
        found.paused.append(cluster)
        return
    record = ports.rounds.read(cluster)
    name = revive(record, ports)
    if name is not None:
        found.revived.append(name)
    snapshot = look(cluster, ports, record)
    seen = Round(snapshot)
    kubernetes = ports.clusters.kubernetes(cluster)
    found.annotated += write_annotations(changes_in(seen), kubernetes, for_seconds(WRITE * share, ports))
    if record is not None and record.open:
        return
    plan = plan_in(seen.within(for_seconds(SEARCH * share, ports)))
    claimed = _claim(plan, snapshot, record, ports)
    if claimed is not None:
        found.rounds.append(start(claimed, ports))
    found.told += tell_why_nodes_stay(snapshot, plan, for_seconds(WRITE * share, ports), ports)


def claim_round(cluster: str, ports: Ports) -> RoundRecord | None:
    """Decide now and claim; None where there is nothing to do, or somebody else was faster."""
    if ports.clusters.policies(cluster).settings.paused:
        return None
    record = ports.rounds.read(cluster)
    snapshot = look(cluster, ports, record)
    return _claim(plan_round(snapshot, more=for_seconds(SEARCH, ports)), snapshot, record, ports)


def _claim(plan: Plan, snapshot: ClusterSnapshot, last: RoundRecord | None, ports: Ports) -> RoundRecord | None:
    """One conditional write: whoever is second finds the record of the first."""
    commands = tuple(that_fit(plan.commands))
    if plan.method is None or not commands:
        return None
    nodes = {name: node.instance_id for one in commands for name in one.nodes if (node := snapshot.node(name))}
    members = {
        name: group.name for name in nodes if (node := snapshot.node(name)) and (group := snapshot.group_of(node))
    }
    record = RoundRecord(
        cluster=snapshot.cluster,
        number=last.number + 1 if last is not None else 1,
        method=plan.method,
        began=ports.clock.now().replace(microsecond=0),
        commands=commands,
        nodes=nodes,
        members=members,
        groups=groups_named(members.values(), commands),
        rests=last.rests if last is not None else {},
        raised=last.raised if last is not None else {},
        suspended=last.suspended if last is not None else (),
    )
    return ports.rounds.write(record)


def that_fit(commands: Iterable[Command]) -> Iterator[Command]:
    """What fits into the record; what is left over comes with the next round. Where pods land is not kept: it is tried
    again on every look.
    """
    left = LARGEST
    for command in commands:
        types = sum(len(one.types) for one in command.replacements)
        room = (left - len(command.reason) - A_TYPE * types) // A_NODE
        nodes = command.nodes if command.replacements else command.nodes[: max(room, 0)]
        if nodes and len(nodes) <= room:
            left -= A_NODE * len(nodes) + A_TYPE * types + len(command.reason)
            yield replace(command, nodes=nodes, placements={})
