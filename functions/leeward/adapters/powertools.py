"""Powertools for AWS Lambda: the Logger of the process, its metric points, and what both do for one invocation.

Lines are JSON with Powertools' own names (`function_request_id`, `cold_start`, `xray_trace_id` ...). Points are in
CloudWatch's embedded metric format, so that they cost no call:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any, TextIO, cast

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from leeward.telemetry import NAMESPACE, Scope

COLD_STARTS = "ColdStart"  # Powertools' own name
CALLER = 5  # frames from the Logger's method to the caller of `Telemetry.info`, for the key `location`
_UNUSED = ("function_arn", "function_memory_size")  # the request id leads to Lambda's own line, which has both
_OWN = frozenset(
    {
        *("level", "location", "message", "timestamp", "service", "sampling_rate", "correlation_id", "asctime"),
        *("function_name", "function_request_id", "cold_start", "xray_trace_id"),
        *("exception", "exception_name", "exception_notes"),
        *vars(logging.makeLogRecord({})),  # the logging module refuses these as fields
    }
)
Handler = Callable[[Any, Any], Any]


class _StandardOutput(io.TextIOBase):
    """Standard output as it is when a line is written; a stream handler would keep that of its first line."""

    def write(self, text: str) -> int:
        return sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


def _serialized(line: Mapping[str, Any]) -> str:
    """Return the line as JSON. A value that JSON does not have (NaN, a cycle, an object that fails to say what it is)
    is written as text: no line is lost for one of its fields.
    """
    try:
        return json.dumps(line, default=_said, separators=(",", ":"), allow_nan=False)  # ASCII: no control character
    except (ValueError, TypeError, RecursionError):
        plain = {str(key): value if isinstance(value, (str, int)) else _said(value) for key, value in line.items()}
        return json.dumps(plain, separators=(",", ":"))


def _said(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - of any object; a log line must not end a step
        return f"{type(value).__name__} ({type(error).__name__})"


def least_level() -> str:
    """Return the least level. An unknown name stands for INFO: no function fails for its log."""
    name = os.environ.get("LOG_LEVEL", "").upper()
    return name if name in logging.getLevelNamesMapping() else "INFO"


LOGGER = Logger(
    service="leeward",  # each line names the package's
    level=least_level(),
    stream=cast(TextIO, _StandardOutput()),
    utc=True,
    use_rfc3339=True,
    json_serializer=_serialized,
    json_deserializer=str,  # a message stays text, also one that reads as JSON: names in it come from clusters
)
_WRITE = {"info": LOGGER.info, "warning": LOGGER.warning, "error": LOGGER.error}


def write(level: str, service: str, message: str, fields: Mapping[str, Any]) -> None:
    """Write one line. A field with the name of one of the line's own keys gets a `_` behind it."""
    named = {f"{key}_" if key in _OWN else key: value for key, value in fields.items()}
    _WRITE[level](message, extra={**named, "service": service}, stacklevel=CALLER)


@contextmanager
def keys_of_thread(keys: Mapping[str, str | None]) -> Iterator[None]:
    """Add keys to the lines of this thread; afterwards it has those of before."""
    before = dict(LOGGER.thread_safe_get_current_keys())
    LOGGER.thread_safe_append_keys(**keys)
    try:
        yield
    finally:
        LOGGER.thread_safe_clear_keys()
        LOGGER.thread_safe_append_keys(**before)


class Points:
    """Metric points by service and series. Those of one invocation are written at its end, one line for each set of
    series; outside of an invocation each is written at once.
    """

    def __init__(self) -> None:
        self._sets: dict[object, EphemeralMetrics] = {}
        self._held = False

    def add(self, service: str, values: Mapping[str, float], scopes: Sequence[Scope], unit: str) -> None:
        """Add one point of each metric in each series. At 100 metrics or points Powertools writes a line by itself. A
        point that is not finite, which the format cannot hold, is left out with a line.
        """
        key = (service, *(tuple(scope.items()) for scope in scopes))
        with _writing():
            if key not in self._sets:
                self._sets[key] = _metrics(service, scopes)
            for name, value in values.items():
                if isfinite(value):
                    self._sets[key].add_metric(name=name, unit=unit, value=value)
                else:
                    LOGGER.error("a metric point is not finite", extra={"metric": name, "service": service})
            if not self._held:
                self._flush()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold points back until the end of the invocation, also of one that fails."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            with _writing():
                self._flush()

    def _flush(self) -> None:
        for metrics in self._sets.values():
            if metrics.metric_set:
                metrics.flush_metrics()
        self._sets.clear()


POINTS = Points()


def in_invocation(handler: Handler, service: str, keys_of: Callable[[Any], Mapping[str, str]]) -> Handler:
    """Return the handler with Lambda's context and `keys_of(event)` in each line that it writes, whatever its package,
    and with the points and a cold start counted. Nothing of an earlier invocation stays.
    """

    @LOGGER.inject_lambda_context(clear_state=True)
    def handle(event: Any, context: Any) -> Any:
        with _writing():  # keys of a process are not safe beside a thread that an earlier invocation left
            LOGGER.remove_keys(_UNUSED)
            LOGGER.append_keys(**keys_of(event))
            if LOGGER.get_current_keys()["cold_start"]:
                _metrics(service, [{}]).add_cold_start_metric(context)
        with POINTS.held():
            try:
                return handler(event, context)
            except Exception as error:
                LOGGER.error(_said(error), extra={"service": service, "exception_name": type(error).__name__})
                raise

    return cast(Handler, handle)


def _metrics(service: str, scopes: Sequence[Scope]) -> EphemeralMetrics:
    """Return a set of points: the first series is that of Powertools' own dimensions, the others are added to it."""
    namespace = os.environ.get("METRICS_NAMESPACE") or NAMESPACE
    metrics = EphemeralMetrics(namespace=namespace, service=service, default_dimensions={"service": service})
    first, *others = sorted(scopes, key=len)  # Powertools takes a series without dimensions only as the first
    for name, value in first.items():
        metrics.add_dimension(name, value)
    for scope in others:
        metrics.add_dimensions(**scope)
    return metrics


@contextmanager
def _writing() -> Iterator[None]:
    """Let no other thread write meanwhile: Powertools prints points beside the Logger's handler, in two pieces."""
    handler = LOGGER.registered_handler
    handler.acquire()
    try:
        yield
    finally:
        handler.release()
