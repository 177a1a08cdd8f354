"""Log lines and metric points of the functions; Powertools for AWS Lambda writes both (`adapters/powertools.py`).

It is imported at the first line or point: the command line and the simulation write neither and start without it. In
Lambda the entry points import it in INIT.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

NAMESPACE = "Leeward"  # of the usual deployment; METRICS_NAMESPACE names that of another
Scope = Mapping[str, str]  # dimensions of a series beside the service: {} is the whole deployment


class Telemetry:
    """Logs and metrics of one package of the functions; `service` is in each line and the dimension of each metric."""

    def __init__(self, service: str) -> None:
        self._service = service

    def info(self, message: str, fields: Mapping[str, Any] | None = None) -> None:
        """Log an expected event; fields that are None are left out."""
        self._write("info", message, fields)

    def warning(self, message: str, fields: Mapping[str, Any] | None = None) -> None:
        """Log an event that an operator may want to look at."""
        self._write("warning", message, fields)

    def error(self, message: str, fields: Mapping[str, Any] | None = None) -> None:
        """Log a failure."""
        self._write("error", message, fields)

    def count(self, values: Mapping[str, float], *scopes: Scope, unit: str = "Count") -> None:
        """Send a point for each metric that is not zero; CloudWatch bills a metric for each hour with a point.
        `scopes`: each is a series that gets the point; without any, that of the whole deployment. Scopes that share a
        dimension give it the same value; one with an empty value is left out. `unit` is CloudWatch's, "None" for
        dollars.
        """
        points = {name: value for name, value in values.items() if value}
        named = [scope for scope in scopes or ({},) if all(scope.values())]
        if not points or not named:
            return
        from leeward.adapters import powertools

        powertools.POINTS.add(self._service, points, named, unit)

    def _write(self, level: str, message: str, fields: Mapping[str, Any] | None) -> None:
        from leeward.adapters import powertools

        powertools.write(level, self._service, message, fields or {})


@contextmanager
def about(**keys: str | None) -> Iterator[None]:
    """Add keys to each line that this thread writes inside, such as those of the message that it handles."""
    from leeward.adapters import powertools

    with powertools.keys_of_thread(keys):
        yield


def scopes_of(cluster: str, group: str = "") -> tuple[Scope, ...]:
    """Return the series of the whole deployment, of a cluster and of a group of it, as far as they are named."""
    scopes: list[Scope] = [{}]
    if cluster:
        scopes.append({"cluster": cluster})
        if group:
            scopes.append({"cluster": cluster, "group": group})
    return tuple(scopes)
