"""Evacuations and capacity ahead that are left when every zone is open again, and what they may wait for."""

from collections.abc import Iterator

from simulation.view import WorldView


def zones_left(view: WorldView) -> Iterator[str]:
    """Yield evacuations that were returned and prescales whose shift is over, where no termination of theirs and no
    upgrade of their groups is open.
    """
    for evacuation in view.zone_record.evacuations:
        if not evacuation.closed and not view.open_since and not upgraded(view) & set(evacuation.suspended):
            yield evacuation.sentence
    for prescale in view.zone_record.prescales:
        offsets = {node.offset_by for node in prescale.launched.values()}
        if not offsets & view.open_since.keys() and not upgraded(view) & prescale.groups:
            yield f"capacity ahead of {prescale.zone}: {', '.join(sorted(prescale.launched)) or 'nothing launched'}"


def owed_by_prescale(group: str, view: WorldView) -> int:
    """Count the launches ahead of shifts that wait until the upgrade of their group has ended."""
    nodes = [node for one in view.zone_record.prescales for node in one.launched.values() if node.group == group]
    return sum(not node.undone and not node.offset_by for node in nodes) if group in upgraded(view) else 0


def upgraded(view: WorldView) -> frozenset[str]:
    """Return the groups on whose upgrade an execution works."""
    return frozenset(name for name, record in view.upgrades.items() if record.execution in view.upgrading)
