"""Upgrades and runs that keep nodes from being scaled down, as `leeward blockers` shows them.

Decides what is read about them, and only where a node names one as its keeper."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from leeward.blockers.scene import Keeper
from leeward.cli.upgrade.status import group_status
from leeward.disruption.termination_tracking import under_way
from leeward.errors import InvalidInputError
from leeward.model.node import Node
from leeward.model.well_known import KEPT_FOR, OF_DISRUPTION
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Disruptions
from leeward.upgrade.status import Phase

RECONCILER = timedelta(
    minutes=1
)  # between two runs of the minute reconciler, which releases nodes without an execution
_MOVES = {
    Phase.SCALING_UP,
    Phase.CORDONING,
    Phase.UPGRADING,
    Phase.SCALING_DOWN,
    Phase.ABORTING,
    Phase.ROLLING_BACK,
}  # the other phases wait for a window, a canary or an operator, or have ended


def keepers_of(nodes: Iterable[Node], cluster: str, ports: Ports) -> Mapping[str, Keeper]:
    """Return the keepers by name, each with its state: one read of the group of an upgrade, one read of the run. From
    a snapshot, which has no records, the name alone is known.
    """
    return {name: _keeper(name, cluster, ports) for name in _names(nodes)}


def _keeper(name: str, cluster: str, ports: Ports) -> Keeper:
    if not ports.deployment:  # a snapshot folder
        return Keeper(name=name)
    if name.startswith(OF_DISRUPTION):
        return _disruption(name, cluster, ports.clock, ports.disruptions)
    return _upgrade(name, cluster, ports)


def _names(nodes: Iterable[Node]) -> list[str]:
    return sorted({node.annotations[KEPT_FOR] for node in nodes if KEPT_FOR in node.annotations})


def _upgrade(group: str, cluster: str, ports: Ports) -> Keeper:
    """Judge an upgrade as the minute reconciler does: one that has ended or has no execution keeps no node."""
    try:
        status = group_status(group, cluster, ports)
    except InvalidInputError:  # the group is gone
        return Keeper(name=group)
    if not status.execution or status.phase is Phase.STARTING:
        return _left_behind(group, ports.clock)
    until = status.eta if status.phase in _MOVES else None
    return Keeper(name=group, execution=status.execution, phase=status.phase.value, until=until)


def _disruption(name: str, cluster: str, clock: Clock, disruptions: Disruptions) -> Keeper:
    """Return the keeper of a run. The reconciler that finds the execution of an open run dead ends the run: until
    then it keeps its nodes.
    """
    record = disruptions.read(cluster)
    if record is None or not record.open or name != f"{OF_DISRUPTION}{record.number}":
        return _left_behind(name, clock)
    going = under_way(record) if record.told else ()
    names = tuple(sorted(node for node, instance in record.nodes.items() if instance in going))
    return Keeper(name=name, execution=record.execution or None, going=names)


def _left_behind(name: str, clock: Clock) -> Keeper:
    return Keeper(name=name, execution="", until=clock.now() + RECONCILER)
