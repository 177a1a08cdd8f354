"""Log lines and metric points of the functions: one JSON object a line on standard output, which Lambda keeps.

Metric points are in CloudWatch's embedded metric format, so that they cost no call:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
Written here, not by a library: the one for it took half of a function's cold start.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

NAMESPACE = "Leeward"  # of the usual deployment; METRICS_NAMESPACE names that of another
Scope = Mapping[str, str]  # dimensions of a series beside the service: {} is the whole deployment


class Level(IntEnum):
    """Levels as LOG_LEVEL names them; lines below it are left out, metric points never."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class Telemetry:
    """Logs and metrics of one package of the functions; `service` is in each line and the dimension of each metric."""

    def __init__(self, service: str) -> None:
        self._service = service

    def info(self, message: str, fields: Mapping[str, Any] | None = None) -> None:
        """Log an expected event; fields that are None are left out."""
        self._log(Level.INFO, message, fields)

    def warning(self, message: str, fields: Mapping[str, Any] | None = None) -> None:
        """Log an event that an operator may want to look at."""
        self._log(Level.WARNING, message, fields)

    def error(self, message: str, fields: Mapping[str, Any] | None = None) -> None:
        """Log a failure."""
        self._log(Level.ERROR, message, fields)

    def count(self, values: Mapping[str, float], *scopes: Scope, unit: str = "Count") -> None:
        """Send a point for each metric that is not zero; CloudWatch bills a metric for each hour with a point.
        `scopes`: each is a series that gets the point; without any, that of the whole deployment. Scopes that share a
        dimension give it the same value. `unit` is CloudWatch's, "None" for dollars.
        """
        points = {name: value for name, value in values.items() if value}
        if not points:
            return
        directive = {
            "Namespace": os.environ.get("METRICS_NAMESPACE") or NAMESPACE,
            "Dimensions": [["service", *scope] for scope in scopes or ({},)],
            "Metrics": [{"Name": name, "Unit": unit} for name in points],
        }
        head = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
        dimensions = {name: value for scope in scopes for name, value in scope.items()}
        _write({"_aws": head, "service": self._service, **dimensions, **points})

    def _log(self, level: Level, message: str, fields: Mapping[str, Any] | None) -> None:
        if level < _least():
            return
        said = {key: value for key, value in (fields or {}).items() if value is not None}
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        _write({**said, "level": level.name, "timestamp": now, "service": self._service, "message": message})


def _least() -> Level:
    """Return the least level. An unknown name stands for INFO: no function fails for its log."""
    name = os.environ.get("LOG_LEVEL", "").upper()
    return Level[name] if name in Level.__members__ else Level.INFO


def _write(line: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(line, default=str, separators=(',', ':'))}\n")


def scopes_of(cluster: str, group: str = "") -> tuple[Scope, ...]:
    """Return the series of the whole deployment, of a cluster and of a group of it, as far as they are named."""
    scopes: list[Scope] = [{}]
    if cluster:
        scopes.append({"cluster": cluster})
        if group:
            scopes.append({"cluster": cluster, "group": group})
    return tuple(scopes)
