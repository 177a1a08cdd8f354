"""Pauses as reports show them: who, why, until when, above what is shown of the cluster.

Decides nothing about what a pause covers (`leeward.model.pause`)."""

from datetime import datetime

from leeward.cli.context import ClusterContext
from leeward.errors import LeewardError
from leeward.isolation import attempt
from leeward.model.pause import Pause, PauseScope


def pause_lines(context: ClusterContext, now: datetime, group: str = "") -> list[str]:
    """Return a line for each pause in force, with `group` those of the cluster and of this group; none for a folder,
    or where no switch can be read: Leeward need not be installed.
    """
    if context.folder is not None:
        return []
    record = attempt(lambda: context.ports.pauses.read(context.cluster))
    if isinstance(record, LeewardError):
        return []
    covering = [pause for pause in record.pauses if not group or not pause.group or pause.group == group]
    return [f"PAUSED: {described(context.cluster, pause)}" for pause in covering if pause.in_force(now)]


def described(cluster: str, pause: Pause) -> str:
    """Return what is paused, until when, by which caller and why."""
    group = f", group {pause.group}" if pause.group else ""
    scope = "disruption, repair and upgrades" if pause.scope is PauseScope.VOLUNTARY else "everything"
    return f"cluster {cluster}{group}: {scope}, {pause.end}, by {pause.by}: {pause.why}"
