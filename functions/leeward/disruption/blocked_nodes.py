"""Nodes that pods have kept for long: the policy wants them gone, and what the author of a pod wrote holds them.

A node counts once its policy has wanted it gone (expired, drifted and replaceable) or a pod's grace has been over for
`BLOCKED_LONG`, while one of its pods opts out of disruption, is beyond the limits of planning, or is held by a
finalizer. Budgets are left out: `leeward blockers` shows them, and they usually pass."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from leeward.disruption.do_not_disrupt import OptOut, pod_opt_outs
from leeward.disruption.lifetime import expires
from leeward.disruption.methods.expiration import why_kept_forever
from leeward.disruption.planning_state import PlanningState
from leeward.drift.detect import Remedy
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.well_known import DISRUPTION_WINDOW
from leeward.policy.document import NodePolicy

BLOCKED_LONG = timedelta(days=1)  # a night's batch job or a release freeze of a day is no reason for an alarm
OPENS_SOON = timedelta(days=7)  # a weekly disruption window is an agreement, not an obstacle
MOST_NAMED = 10  # nodes of a namespace in the log


def long_blocked(state: PlanningState) -> Mapping[str, tuple[str, ...]]:
    """Return the nodes, by the namespace of the pods that have kept them for longer than `BLOCKED_LONG`."""
    snapshot, latest = state.snapshot, state.snapshot.now - BLOCKED_LONG
    nodes: dict[str, set[str]] = {}
    for node in snapshot.nodes:
        policy = snapshot.policy_of_node(node)
        if policy is None:
            continue
        wanted = _wanted_since(state, node, policy)
        for pod in snapshot.pods_on(node.name):
            since = list(_since(pod, wanted, snapshot.now))
            if since and min(since) <= latest:
                nodes.setdefault(pod.namespace, set()).add(node.name)
    return {namespace: tuple(sorted(nodes[namespace])) for namespace in sorted(nodes)}


def _wanted_since(state: PlanningState, node: Node, policy: NodePolicy) -> datetime | None:
    """Return since when the policy wants the node gone; None while it does not. Consolidation wants no node in
    particular.
    """
    moments: list[datetime] = []
    expiry = expires(node, policy.disruption)
    if expiry is not None and not why_kept_forever(state.snapshot, node, policy):
        moments.append(expiry)
    drifted = state.drift[node.name]
    if drifted.since is not None and drifted.remedy is Remedy.REPLACE and policy.disruption.drift:
        moments.append(drifted.since)
    return min((moment for moment in moments if moment <= state.snapshot.now), default=None)


def _since(pod: Pod, wanted: datetime | None, now: datetime) -> Iterator[datetime]:
    """Yield the moments from which the pod has kept its node."""
    if pod.deletion is not None and pod.finalizers and not pod.mirror:
        yield pod.deletion
    opt_outs = [one for one in pod_opt_outs(pod, now) if not _opens_soon(one, now)]
    held = opt_outs or (pod.beyond_limit and pod.evictable)
    if wanted is not None and held:
        yield max(wanted, pod.started or wanted)


def _opens_soon(opt_out: OptOut, now: datetime) -> bool:
    """Return whether it is a disruption window that opens within a week."""
    return opt_out.key == DISRUPTION_WINDOW and opt_out.until is not None and opt_out.until - now <= OPENS_SOON
