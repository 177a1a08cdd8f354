"""Entry point of fn sync, every five minutes."""

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from leeward.adapters import wiring
from leeward.errors import LeewardError
from leeward.sync.once import sync_once

HOOKS_PUT = "HooksPut"
NODES_LABELLED = "NodesLabelled"
FACTS_NOT_KEPT = "FactsNotKept"

logger = Logger(service="sync")
metrics = Metrics(namespace="Leeward", service="sync")


def handle(_event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Answers `{"hooksPut": [group …], "hooksTakenOff": [group …], "nodesLabelled": [node …], "factsKept":
    [cluster/kind …]}` with `warnings` and `errors` as lists of sentences.

    Raises LeewardError when a hook could not be kept in place. Facts that could not be gathered are only named: the
    older ones stay, and whoever uses them says how old they are.
    """
    synced = sync_once(wiring.invocation_ports(context))
    outcome = synced.to_json()
    (logger.warning if synced.warnings else logger.info)("synced", extra=outcome)
    for name, value in (
        (HOOKS_PUT, len(synced.hooks)),
        (NODES_LABELLED, len(synced.labelled)),
        (FACTS_NOT_KEPT, len(synced.warnings)),
    ):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    metrics.flush_metrics()
    if synced.errors:
        raise LeewardError("; ".join(synced.errors))
    return dict(outcome)
