"""Causes of terminations in a person's words, and which of several causes a termination is counted under."""

from collections.abc import Iterable

from leeward.model.termination import Cause, CauseKind

# The first of these that a termination has is its cause: the later ones follow from the earlier ones.
ORDER = (
    CauseKind.SPOT_INTERRUPTION,
    CauseKind.CAPACITY_RESERVATION,
    CauseKind.CAPACITY_BLOCK,
    CauseKind.SCHEDULED_CHANGE,
    CauseKind.REBALANCE_RECOMMENDATION,
    CauseKind.UPGRADE,
    CauseKind.EXPIRED,
    CauseKind.DRIFTED,
    CauseKind.EMPTY,
    CauseKind.UNDERUTILIZED,
    CauseKind.UNHEALTHY,
    CauseKind.EVACUATION,
    CauseKind.MANUAL,
    CauseKind.NODE_DELETED,
    CauseKind.SURPLUS,
    CauseKind.ASG_TERMINATE,
    CauseKind.REPLACE_ROOT_VOLUME,
    CauseKind.STATE_CHANGE,
    CauseKind.OTHER,
)
WAS = {
    CauseKind.SPOT_INTERRUPTION: "was reclaimed by EC2 (spot)",
    CauseKind.CAPACITY_RESERVATION: "was reclaimed by EC2 (capacity reservation)",
    CauseKind.CAPACITY_BLOCK: "reached the end of its Capacity Block",
    CauseKind.SCHEDULED_CHANGE: "was replaced ahead of maintenance by AWS",
    CauseKind.REBALANCE_RECOMMENDATION: "was replaced on EC2's rebalance recommendation (spot)",
    CauseKind.UPGRADE: "was replaced by an upgrade of its group",
    CauseKind.EXPIRED: "had expired and was replaced",
    CauseKind.DRIFTED: "had drifted and was replaced",
    CauseKind.EMPTY: "was empty and was removed",
    CauseKind.UNDERUTILIZED: "was underutilized and was removed",
    CauseKind.UNHEALTHY: "was unhealthy and was replaced",
    CauseKind.EVACUATION: "left a zone that was evacuated",
    CauseKind.MANUAL: "was drained on an operator's request",
    CauseKind.NODE_DELETED: "had lost its Node and was replaced",
    CauseKind.SURPLUS: "was terminated to offset a launch",
    CauseKind.ASG_TERMINATE: "was terminated by its Auto Scaling group",
    CauseKind.REPLACE_ROOT_VOLUME: "was drained while its group replaced its root volume",
    CauseKind.STATE_CHANGE: "was ended outside of Leeward",
    CauseKind.OTHER: "was terminated by a newer version of Leeward",
}
NAMES = {
    CauseKind.SPOT_INTERRUPTION: "spot interruption",
    CauseKind.CAPACITY_RESERVATION: "capacity reservation",
    CauseKind.CAPACITY_BLOCK: "end of a Capacity Block",
    CauseKind.SCHEDULED_CHANGE: "maintenance by AWS",
    CauseKind.REBALANCE_RECOMMENDATION: "rebalance recommendation",
    CauseKind.UPGRADE: "upgrade",
    CauseKind.EXPIRED: "expiration",
    CauseKind.DRIFTED: "drift",
    CauseKind.EMPTY: "emptiness",
    CauseKind.UNDERUTILIZED: "consolidation",
    CauseKind.UNHEALTHY: "unhealthy node",
    CauseKind.EVACUATION: "evacuation of its zone",
    CauseKind.MANUAL: "manual drain",
    CauseKind.NODE_DELETED: "deleted Node",
    CauseKind.SURPLUS: "offset of a launch",
    CauseKind.ASG_TERMINATE: "Auto Scaling group",
    CauseKind.REPLACE_ROOT_VOLUME: "root volume replacement",
    CauseKind.STATE_CHANGE: "ended outside of Leeward",
    CauseKind.OTHER: "unknown to this version",
}


def main_kind(kinds: Iterable[CauseKind]) -> CauseKind | None:
    """Return the kind that the others follow from, None without any."""
    return min(kinds, key=ORDER.index, default=None)


def main_cause(causes: Iterable[Cause]) -> Cause | None:
    """Return the first cause of the main kind."""
    several = list(causes)
    kind = main_kind(cause.kind for cause in several)
    return next((cause for cause in several if cause.kind is kind), None)
