"""Evacuations that are left when every zone is open again, and what they may wait for."""

from collections.abc import Iterator

from simulation.view import WorldView


def zones_left(view: WorldView) -> Iterator[str]:
    """Yield evacuations that were returned, where no termination and no upgrade of their groups is open."""
    for evacuation in view.zone_record.evacuations:
        if not evacuation.closed and not view.open_since and not upgraded(view) & set(evacuation.suspended):
            yield evacuation.sentence


def upgraded(view: WorldView) -> frozenset[str]:
    """Return the groups on whose upgrade an execution works."""
    return frozenset(name for name, record in view.upgrades.items() if record.execution in view.upgrading)
