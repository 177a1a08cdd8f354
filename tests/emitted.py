"""Metric points that functions write to standard output, as CloudWatch reads them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def points(out: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield (name, dimensions, value) of each point in each of its series; one line may hold several points."""
    for line in out.splitlines():
        said: dict[str, Any] = json.loads(line)
        for directive in said.get("_aws", {}).get("CloudWatchMetrics", ()):
            for metric in directive["Metrics"]:
                for series in directive["Dimensions"]:
                    for value in said[metric["Name"]]:
                        yield metric["Name"], {key: said[key] for key in series}, value


def series_of(out: str, name: str) -> list[Mapping[str, str]]:
    """Return the dimensions of every point of the metric, in their order."""
    return [dimensions for metric, dimensions, _ in points(out) if metric == name]


def value_of(out: str, name: str, **dimensions: str) -> float | None:
    """Return the value of the metric's last point with exactly these dimensions, None without one."""
    values = [value for metric, given, value in points(out) if metric == name and given == dimensions]
    return values[-1] if values else None
