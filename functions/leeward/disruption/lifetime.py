"""Lifetime of a node under `disruption.expireAfter`, with the spread that `720h±10%` asks for.

The spread follows from a hash of the instance id, so that every plan, the command line and a later run name the same
moment (aws/karpenter-provider-aws#1884: nodes of one scale-out expire together)."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256

from leeward.model.node import Node
from leeward.policy.document import DisruptionPolicy

_LARGEST = 2**32 - 1


def lifetime(node: Node, rules: DisruptionPolicy) -> timedelta | None:
    """Return the age at which the node expires, None where nodes of the policy do not expire."""
    if rules.expire_after is None or not rules.expire_jitter:
        return rules.expire_after
    return rules.expire_after * (1 + _position(node.instance_id or node.name) * rules.expire_jitter / 100)


def expires(node: Node, rules: DisruptionPolicy) -> datetime | None:
    """Return the moment from which the node is too old, None where it does not expire; the latest possible datetime
    where the sum overflows.
    """
    after = lifetime(node, rules)
    if after is None:
        return None
    try:
        return node.created + after
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def lifetime_left(node: Node, rules: DisruptionPolicy, now: datetime) -> float:
    """Return the fraction of the node's lifetime that is left, from 0 to 1; 1 for a node that does not expire."""
    after = lifetime(node, rules)
    if not after:
        return 1.0
    return min(max((after - (now - node.created)) / after, 0.0), 1.0)


def _position(identifier: str) -> float:
    """Return the node's place in the spread, from -1 (first) to 1 (last), evenly distributed over identifiers."""
    return int.from_bytes(sha256(identifier.encode()).digest()[:4]) / _LARGEST * 2 - 1
