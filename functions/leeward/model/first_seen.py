"""First sight of what lasts on a Node without a time to be trusted, kept in an annotation by the minute reconciler.

The `lastTransitionTime` of a condition is its writer's, and an agent may rewrite it while the status stays the same. A
taint without a value and without `timeAdded` has no time at all."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from leeward.model.node import Node
from leeward.model.raw_fields import instant
from leeward.model.times import format_instant
from leeward.model.well_known import FIRST_SEEN


def first_seen(node: Node) -> Mapping[str, datetime]:
    """Return when the reconciler first saw each condition (by its type) and taint (by its key), as far as it noted."""
    entries = (entry.rpartition("=") for entry in node.annotations.get(FIRST_SEEN, "").split(","))
    return {key: moment for key, _, at in entries if key and (moment := instant(at)) is not None}


def noted(node: Node, lasting: Iterable[str], now: datetime) -> str | None:
    """Return the annotation that the node should have: earlier moments stay, what lasts no more is left out; None where
    nothing lasts.
    """
    known = first_seen(node)
    entries = [f"{key}={format_instant(known.get(key, now))}" for key in sorted(set(lasting))]
    return ",".join(entries) or None
