"""Circuit breaker of node repair: when many nodes fail at once, replacing them makes the outage worse.

Decides whether a node's repair has to wait because of the other nodes; `unhealthy_nodes` decides which node needs
repair. Sources: Karpenter (node repair stops when more than 20 % of a NodePool are unhealthy) and Kubernetes' node
lifecycle controller, which counts by zone and evicts nothing while all nodes of all zones are NotReady."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.model.counts import count_of
from leeward.model.node import Node
from leeward.policy.repair import RepairPolicy, rule_for
from leeward.reconcile.managed_repair import conditions_of

MIN_NODES_FOR_ZONE_OUTAGE = 2  # in a zone with one node, an outage cannot be distinguished from a broken node


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Numbers of unhealthy nodes and of all nodes, in a zone or in the cluster."""

    unhealthy: int
    nodes: int

    @classmethod
    def of(cls, unhealthy: Iterable[bool]) -> "Share":
        """Count the nodes. `unhealthy`: for each node, whether it is unhealthy."""
        entries = tuple(unhealthy)
        return cls(unhealthy=sum(entries), nodes=len(entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Counts of unhealthy nodes, made once per pass over all nodes of the cluster, whether Leeward manages them or not.

    `zones`: counts by zone, without nodes whose zone is unknown; `all_not_ready`: no node of the cluster is Ready.
    """

    all_not_ready: bool
    zones: Mapping[str, Share]
    cluster: Share

    @classmethod
    def of(cls, state: ClusterState) -> "CircuitBreaker":
        """Count the nodes of a cluster. Nodes whose instance has ended or has a newer Node object are left out. Nodes
        under repair are counted: otherwise the limit would allow the next nodes as soon as a repair begins.
        """
        alive = [node for node in state.nodes if not (state.has_ended(node) or state.is_superseded(node))]
        zones: dict[str, list[bool]] = {}
        for node in alive:
            if zone := state.zone_of(node):
                zones.setdefault(zone, []).append(is_unhealthy(node, state))
        return cls(
            all_not_ready=bool(alive) and not any(node.ready for node in alive),
            zones={zone: Share.of(unhealthy) for zone, unhealthy in zones.items()},
            cluster=Share.of(is_unhealthy(node, state) for node in alive),
        )

    def reason_to_wait(self, node: Node, rules: RepairPolicy, state: ClusterState) -> str:
        """Return why the node's repair has to wait, empty if it need not."""
        zone = state.zone_of(node)
        if self.all_not_ready and node.instance_id not in known_or(state.impaired, {}):
            return "every node of the cluster is NotReady: the control plane or the network is in trouble, not the node"
        if zone in self.zones and _all_unhealthy(self.zones[zone]):
            return f"every node of zone {zone} is unhealthy: the zone is in trouble, not the node"
        for scope, share in self._scopes(zone):
            if share.unhealthy > most_unhealthy(rules, share.nodes):
                limit = f"{rules.max_unhealthy}{'%' if rules.max_unhealthy_percent else ''}"
                count = f"{share.unhealthy} of {count_of(share.nodes, 'node')} of {scope} are unhealthy"
                return f"{count}, more than repair.maxUnhealthy ({limit})"
        return ""

    def _scopes(self, zone: str) -> Iterator[tuple[str, Share]]:
        """Yield the scopes over which `maxUnhealthy` is counted: the node's zone, and the cluster."""
        if zone in self.zones:
            yield f"zone {zone}", self.zones[zone]
        yield "the cluster", self.cluster


def most_unhealthy(rules: RepairPolicy, nodes: int) -> int:
    """Return how many of `nodes` nodes may be unhealthy while nodes are still repaired.

    A percentage is rounded down and allows at least one node; a number is used as it is, so that 0 allows no repair.
    """
    if not rules.max_unhealthy_percent:
        return rules.max_unhealthy
    return max(nodes * rules.max_unhealthy // 100, 1)


def is_unhealthy(node: Node, state: ClusterState) -> bool:
    """Return whether the node is NotReady, its instance fails a status check, or it has a condition that its policy (or
    the default, for nodes of others) calls unhealthy, however short that has lasted.
    """
    rules = conditions_of(state.group_of(node), state)
    doubtful = not node.ready or node.instance_id in known_or(state.impaired, {})
    return doubtful or any(rule_for(condition, rules) for condition in node.monitored)


def _all_unhealthy(share: Share) -> bool:
    return share.nodes >= MIN_NODES_FOR_ZONE_OUTAGE and share.unhealthy == share.nodes
