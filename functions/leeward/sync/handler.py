"""Entry point of fn sync, every five minutes."""

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from leeward.adapters import wiring
from leeward.errors import LeewardError
from leeward.model.group import HookResult
from leeward.ports import Ports
from leeward.sync.hooks import missing_hook

HOOKS_PUT = "HooksPut"

logger = Logger(service="sync")
metrics = Metrics(namespace="Leeward", service="sync")


def handle(_event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Answers `{"hooksPut": [group …], "errors": [sentence …]}`."""
    outcome = sync_hooks(wiring.lambda_ports())
    logger.info("synced", extra=outcome)
    metrics.add_metric(name=HOOKS_PUT, unit=MetricUnit.Count, value=len(outcome["hooksPut"]))
    metrics.flush_metrics()
    if outcome["errors"]:
        raise LeewardError("; ".join(outcome["errors"]))
    return outcome


def sync_hooks(ports: Ports) -> dict[str, list[str]]:
    """Put our terminate hook where it is missing. PutLifecycleHook twice is one hook; a group that fails is named and
    does not stop the others.
    """
    put: list[str] = []
    errors: list[str] = []
    for cluster in ports.clusters.names():
        policies = ports.clusters.policies(cluster)
        for group in ports.groups.of_clusters([cluster]):
            try:
                hook = missing_hook(group, ports.groups.hooks(group.name), policies, ports.queue_arns)
                if hook is not None:
                    ports.groups.put_hook(hook, default_result=HookResult.CONTINUE)
                    put.append(group.name)
            except LeewardError as error:
                errors.append(f"{group.name}: {error}")
    return {"hooksPut": put, "errors": errors}
