"""Metrics that the functions emit, as their packages declare them: module -> names."""

import importlib
import re
from collections.abc import Iterator

from leeward.adapters.powertools import COLD_STARTS

MODULES = (
    "interruption.metrics",
    "termination.telemetry",
    "reconcile.telemetry",
    "sync.handler",
    "upgrade.handler",
    "disruption.telemetry",
    "notifications.handler",
    "adapters.telemetry",
)


def _declared(module: str) -> Iterator[str]:
    for constant, value in vars(importlib.import_module(f"leeward.{module}")).items():
        if constant.isupper() and isinstance(value, str) and re.fullmatch(r"([A-Z][a-z]+){1,6}", value):
            yield value


METRICS = {
    **{module: tuple(_declared(module)) for module in MODULES},
    "adapters.powertools": (COLD_STARTS,),  # which Powertools counts
}
