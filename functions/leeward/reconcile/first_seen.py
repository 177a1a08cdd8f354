"""First sight of unhealthy conditions and of other controllers' taints, noted on each Node that has them.

A repair waits until a condition has lasted, so a writer that renews its `lastTransitionTime` would put it off without
an end. A condition that is healthy at one pass begins again."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.cluster.facets import Known
from leeward.cluster.state import ClusterState
from leeward.errors import ObjectGoneError
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.node_condition import READY, noted
from leeward.model.node_owners import FOREIGN_TAINTS, taint_since
from leeward.model.well_known import FIRST_SEEN
from leeward.policy.repair import rule_for
from leeward.ports import Ports
from leeward.ports.records import Catalog
from leeward.reconcile.managed_repair import rules_of
from leeward.reconcile.result import ReconcileResult

JOINS_WITHIN = timedelta(minutes=10)  # a new Node is NotReady at first: no write for each of them
MOST_WRITES = 100  # in a pass; in a large outage the others follow in the next passes


def note_first_seen(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Write the annotation of each node of the selected groups where it changes. Idempotent: earlier moments stay."""
    now, kubernetes = ports.clock.now(), ports.clusters.kubernetes(state.cluster)
    state = _with_overrides(state, ports.catalog)
    changes = ((node, noted(node, _lasting(node, state, now), now)) for node in state.nodes if _stays(node, state))
    written = [(node, note) for node, note in changes if note != node.annotations.get(FIRST_SEEN)]
    for node, note in written[:MOST_WRITES]:
        with result.isolate(node.name), suppress(ObjectGoneError):
            kubernetes.annotate(node, {FIRST_SEEN: note})


def _with_overrides(state: ClusterState, catalog: Catalog) -> ClusterState:
    """Load EKS' repair overrides where a policy imports them: they name further conditions."""
    policies = {group.name: state.policy_of(group) for group in state.selected if group.nodegroup is not None}
    if any(policy is not None and policy.repair.imports_from_eks for policy in policies.values()):
        return replace(state, node_repair=Known(catalog.node_repair(state.cluster)))
    return state


def _stays(node: Node, state: ClusterState) -> bool:
    """Return whether the node is one that Leeward looks after, and that nothing is ending."""
    group = state.group_of(node)
    if group is None or state.policy_of(group) is None or state.policies.pauses.everything(group.name):
        return False
    ends = node.deleting or node.tainted or node.instance_id in state.claimed or state.is_superseded(node)
    return not ends and group.lifecycle_of(node.instance_id) == IN_SERVICE


def _lasting(node: Node, state: ClusterState, now: datetime) -> Iterator[str]:
    """Yield the types of the unhealthy conditions, and the taints that carry no time of their own."""
    group, policy = state.group_of(node), state.policy_of_node(node)
    if policy is not None and policy.repair.enabled:
        rules = rules_of(policy, group, state).conditions
        yield from (condition.type for condition in node.monitored if rule_for(condition, rules))
        if not node.ready and now - node.created > JOINS_WITHIN:
            yield READY
    if foreign := [taint for taint in node.taints if taint.key in FOREIGN_TAINTS]:
        bare = replace(node, annotations={})
        yield from (taint.key for taint in foreign if taint_since(bare, taint, now) is None)
