"""State of a whole cluster for pure decisions.

Decides which records of a deployment are added; `leeward.snapshot` decides how the parts belong together."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from leeward.cli.context import ClusterContext, context_of
from leeward.errors import LeewardError, NotDeployedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leeward.model.planning_memory import RememberedNode
    from leeward.snapshot.cluster import ClusterSnapshot

NO_ALARMS = "disruption.alarms are not judged: a snapshot folder holds no alarms (they are read with --cluster NAME)"

UNKNOWN_WITHOUT_IT = "terminations, upgrades, runs and zonal shifts under way are not known"


def cluster_of(arguments: argparse.Namespace, verb: str) -> tuple[ClusterContext, ClusterSnapshot]:
    """Return the cluster of --snapshot or --cluster, and its state. Raises InvalidInputError without either."""
    from leeward.snapshot.gather import gather  # late: --help needs none of it

    warnings: list[str] = []
    context = context_of(arguments, verb, warnings.append)
    check_prices(context)
    state = gather(context.ports, context.cluster, arguments.now, seen=_seen(context))
    name = state.cluster or state.policies.settings.name
    state = _with_disruptions(replace(state, cluster=name, warnings=(*warnings, *state.warnings)), context)
    return context, _with_alarms(state, context)


def check_prices(context: ClusterContext) -> None:
    """Refuse a broken prices.json as any other file: only a price list that does not answer is a warning. Raises
    InvalidInputError.
    """
    if context.folder is not None:
        context.folder.elements("prices")


def _with_alarms(state: ClusterSnapshot, context: ClusterContext) -> ClusterSnapshot:
    """Add the alarms that hold groups; a folder has none, which is a warning where a policy names some."""
    from leeward.disruption.observation import alarm_names, with_alarms  # late: --help needs none of it

    if context.folder is None:
        return with_alarms(state, context.ports.alarms)
    warning = (NO_ALARMS,) if alarm_names(state) else ()
    return replace(state, warnings=(*state.warnings, *warning))


def _seen(context: ClusterContext) -> Mapping[str, RememberedNode]:
    """Return what the last nodes of groups showed; of a table that cannot be read `_with_disruptions` tells."""
    try:
        record = context.ports.disruptions.read(context.cluster)
    except LeewardError:
        return {}
    return record.seen if record is not None else {}


def _with_disruptions(state: ClusterSnapshot, context: ClusterContext) -> ClusterSnapshot:
    """Add the table's runs and upgrades; a table that cannot be read (Leeward is not installed) gives a warning."""
    from leeward.disruption.observation import with_records

    try:
        return with_records(state, context.ports.upgrades, context.ports.disruptions.read(state.cluster))
    except NotDeployedError as error:
        return replace(state, warnings=(*state.warnings, f"{error}; {UNKNOWN_WITHOUT_IT}"))
    except LeewardError as error:
        warning = f"whether a run or an upgrade is under way cannot be read: {error}"
        return replace(state, warnings=(*state.warnings, warning))
