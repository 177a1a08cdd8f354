"""Numbers of an upgrade: old nodes that may be unavailable at once, new ones that come first, and the group's sizes
with them.

Decides numbers alone. Sources: EKS, "Managed node update behavior" (set-up and scale-up phases; its older revision
for INCREMENTAL), and the EKS API's updateConfig."""

from dataclasses import dataclass, replace
from enum import StrEnum

from leeward.errors import InvalidInputError
from leeward.model.nodegroup import Nodegroup
from leeward.policy.document import UpdatePolicy

TURNS_AHEAD = 3
NO_LIMIT = 1 << 30  # nodes: maxSurge auto
MOST_PARALLEL = 100  # EKS' quota on maxUnavailable, for percentages too


class Strategy(StrEnum):
    """Strategy for how many new nodes come before the first old one terminates."""

    DEFAULT = "DEFAULT"
    MINIMAL = "MINIMAL"
    INCREMENTAL = "INCREMENTAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One of the group's sizes before, at the most during, and after the upgrade."""

    before: int
    during: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Desired and maximum size."""

    desired: Size
    maximum: Size


def rolled_by(update: UpdatePolicy, nodegroup: Nodegroup | None) -> UpdatePolicy:
    """Return the update policy of a group: the policy's own, for a managed node group EKS' updateConfig, in random
    order and with EKS' default of one where it names no maximum. Source: the EKS API's NodegroupUpdateConfig.
    """
    if nodegroup is None:
        return update
    return replace(
        update,
        max_unavailable=nodegroup.max_unavailable or (None if nodegroup.max_unavailable_percentage else 1),
        max_unavailable_percentage=nodegroup.max_unavailable_percentage,
        strategy=nodegroup.strategy or Strategy.DEFAULT,
        order="random",
    )


def parallelism(update: UpdatePolicy, nodes: int) -> int:
    """Return how many old nodes may be unavailable at once, 1 to 100, of a group of so many nodes.

    A percentage is rounded up and capped at 100 nodes. Raises InvalidInputError for values outside 1 to 100, and where
    not exactly one of the two maxima is given.
    """
    count, share = update.max_unavailable, update.max_unavailable_percentage
    if count is not None and share is None:
        return _within("maxUnavailable", count)
    if count is None and share is not None:
        return min(max(-(-_within("maxUnavailablePercentage", share) * nodes // 100), 1), MOST_PARALLEL)
    given = "neither" if count is None else "both"
    raise InvalidInputError(
        f"update: found {given} of maxUnavailable and maxUnavailablePercentage, expected exactly one of them"
    )


def _within(key: str, value: int) -> int:
    if not 1 <= value <= MOST_PARALLEL:
        raise InvalidInputError(f"update.{key}: found {value!r}, expected a whole number from 1 to {MOST_PARALLEL}")
    return value


def max_surge(update: UpdatePolicy, nodes: int) -> int:
    """Return new nodes beyond the old size at a time, as the policy limits them for a group of so many nodes; NO_LIMIT
    for `auto`. A percentage is rounded up, to one at least.
    """
    if update.max_surge is None:
        return NO_LIMIT
    if not update.max_surge_percent:
        return update.max_surge
    return max(-(-update.max_surge * nodes // 100), 1)


def surge(strategy: Strategy, zones: int, parallel: int, most: int = NO_LIMIT) -> int:
    """Return new nodes alive less old ones gone, at the most. `zones`: those in which the group has nodes; `most`:
    maxSurge.

    DEFAULT: the larger of 2 x zones and `parallel` (5 zones with 1 -> 10, with 20 -> 20). MINIMAL: none, the group
    replaces each node after it is gone. INCREMENTAL: one for each zone to begin with, see `next_increment`.
    """
    match strategy:
        case Strategy.DEFAULT:
            return min(max(2 * zones, parallel), most)
        case Strategy.MINIMAL:
            return 0
        case Strategy.INCREMENTAL:
            return min(zones, most)


def next_increment(launched: int, zones: int, zones_without: int, most: int = NO_LIMIT) -> int | None:
    """Return how many more new nodes INCREMENTAL launches now; None: the upgrade fails.

    `launched` so far, `zones` with nodes, `zones_without` a new node yet. First one for each zone, then one by one
    while a zone is without; when the increase reaches 2 x zones, or with more would exceed maxSurge, the update fails.
    """
    if launched == 0:
        return min(zones, most)
    if zones_without == 0:
        return 0
    return 1 if launched + 1 < 2 * zones and launched < most else None


def unassigned_limit(strategy: Strategy, surge_limit: int, pace: int, most: int = NO_LIMIT) -> int:
    """Return the new nodes for which no termination of an old node is requested yet, at the most, while old nodes leave
    `pace` at a time: the surge, or those of three turns where that is more. A boot lasts some 90 s and an unblocked
    drain 30 s: with fewer, nodes that could drain wait for nodes that boot. INCREMENTAL keeps to the surge. `most`:
    maxSurge.
    """
    return min(max(surge_limit, TURNS_AHEAD * pace), most) if strategy is Strategy.DEFAULT else surge_limit


def most_ahead(surge_limit: int, parallel: int, most: int = NO_LIMIT) -> int:
    """Return the new nodes that are not offset, at the most: the surge, for which no node leaves yet, and those of
    old nodes that are terminating. Of these `parallel` drain and about twice as many settle and end: that lasts some 70
    s, and an unblocked drain half as long. None with MINIMAL. `most`: maxSurge.
    """
    return min(surge_limit + TURNS_AHEAD * parallel, most) if surge_limit else 0


def most_extra(strategy: Strategy, surge_limit: int, parallel: int, old: int, most: int = NO_LIMIT) -> int:
    """Return the new nodes beside those that the group had before, at the most: by so many the desired and the maximum
    size may grow. The surge, as EKS documents, with as many old nodes `most_ahead`, but never more than old nodes: the
    maximum size is its owner's guard. INCREMENTAL may launch twice its zones. `old`: nodes to replace; without any
    nothing is launched. `most`: maxSurge.
    """
    if not old:
        return 0
    first = min(2 * surge_limit, most) if strategy is Strategy.INCREMENTAL else 0
    return max(first, min(most_ahead(surge_limit, parallel, most), old))


def launch_now(*, surge_limit: int, alive: int, gone: int, old_left: int) -> int:
    """Return new nodes to launch ahead of the drains now, never more than old nodes that none of them replaces yet.

    `alive`: new nodes of this upgrade launched and not ended; `gone`: old ones whose termination is requested, each for
    one of them; `old_left`: old nodes without a request. Each old node that terminates offsets one new node, so at the
    end the sizes are what they were.
    """
    ahead = alive - gone
    return max(min(surge_limit - ahead, old_left - ahead), 0)


def sizes(*, desired: int, maximum: int, extra: int) -> Sizes:
    """Return the sizes before, at the most during, and after: both grow by `extra` and come back (EKS' scale-up and
    scale-down phases).
    """
    return Sizes(
        desired=Size(before=desired, during=desired + extra, after=desired),
        maximum=Size(before=maximum, during=maximum + extra, after=maximum),
    )
