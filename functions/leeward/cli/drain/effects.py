"""Effect of a live drain on one node, in a line for the question before it."""

from collections.abc import Sequence

from leeward.cli.drain.targets import DrainTarget
from leeward.model.counts import count_of
from leeward.termination.drain_plan import DrainPlan, PodRemoval

MOST_BLOCKED = 3  # pods named


def effect_of(target: DrainTarget, plan: DrainPlan, *, keep: bool = False) -> str:
    """Return what the drain will do to the node: its pods, its instance, and what blocks it now. `keep`: the instance
    stays in service.
    """
    evicted = sum(one.removal is not PodRemoval.DELETE for one in plan.evict)
    deleted = len(plan.evict) - evicted
    pods = [f"evict {count_of(evicted, 'pod')}", *([f"delete {count_of(deleted, 'pod')}"] if deleted else [])]
    instance = f"instance {target.node.instance_id} of group {target.group}"
    end = f"remove the Node ({instance} is gone)" if target.gone else f"TERMINATE {instance}"
    end = f"keep {instance} in service, cordoned" if keep else end
    return f"{target.node.name}: {', '.join(pods)}, then {end}{_blocked(plan)}"


def total_of(plans: Sequence[DrainPlan], cluster: int) -> list[str]:
    """Return a line with the total of several nodes, nothing for a single one. `cluster`: number of all its nodes."""
    if len(plans) <= 1:
        return []
    nodes = f"all {count_of(cluster, 'node')}" if len(plans) == cluster else f"{len(plans)} of {cluster} nodes"
    pods = count_of(sum(len(plan.evict) for plan in plans), "pod")
    return [f"{nodes} of the cluster, {pods} in all, drained at the same time"]


def _blocked(plan: DrainPlan) -> str:
    held = [f"{one.pod.key} ({', '.join(one.blocked_by)})" for one in plan.evict if one.blocked_by]
    if not held:
        return ""
    more = f" and {len(held) - MOST_BLOCKED} more" if len(held) > MOST_BLOCKED else ""
    return f"; blocked now: {', '.join(held[:MOST_BLOCKED])}{more}"
