"""Clusters that a deployment serves: read from the environment that all its functions share."""

import json
from collections.abc import Iterable

from leeward.doctor.facts import Function, Served
from leeward.doctor.reading import Read, Unavailable


def environment(functions: Iterable[Read[Function | None]]) -> dict[str, str]:
    """Return the environment of the first function that could be read; empty where none could."""
    for found in functions:
        if found is not None and not isinstance(found, Unavailable) and found.environment.get("CLUSTERS"):
            return dict(found.environment)
    return {}


def clusters_of(told: dict[str, str]) -> tuple[Served, ...] | None:
    """Return the clusters, or None where the setting is missing or no list of clusters."""
    try:
        listed = json.loads(told.get("CLUSTERS", ""))
        return tuple(Served(name=str(raw["name"]), role=str(raw.get("actRole") or "")) for raw in listed)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def queue_arns_of(told: dict[str, str]) -> frozenset[str]:
    """Return the targets that a hook of Leeward may notify."""
    try:
        topics = [str(topic) for topic in json.loads(told.get("HOOK_TOPICS") or "[]")]
    except (ValueError, TypeError):
        topics = []
    return frozenset(topics) | ({told["QUEUE_ARN"]} if told.get("QUEUE_ARN") else frozenset())
