"""Circuit breaker: when many nodes fail at once, the cause is not in the nodes, and replacing them makes it worse.

Sources: Karpenter (node repair stops when more than 20 % of a pool are unhealthy) and Kubernetes' node lifecycle
controller, which counts by zone and evicts nothing while all nodes of all zones are NotReady."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.model.node import Node
from leeward.policy.document import RepairPolicy

FEWEST_OF_A_ZONE = 2  # in a zone with one node an outage looks like a broken node


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Unhealthy nodes among all nodes of a zone or of the cluster."""

    unhealthy: int
    nodes: int

    @classmethod
    def of(cls, unhealthy: Iterable[bool]) -> "Share":
        """Count one entry for each node."""
        nodes = tuple(unhealthy)
        return cls(unhealthy=sum(nodes), nodes=len(nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Counts of unhealthy nodes, made once per pass over all nodes of the cluster, whichever tool manages them.
    `zones` leaves out nodes whose zone is unknown.
    """

    all_not_ready: bool
    zones: Mapping[str, Share]
    cluster: Share

    @classmethod
    def of(cls, state: ClusterState) -> "CircuitBreaker":
        """Count the nodes. Nodes whose instances are gone, or have a newer Node, are not counted; those under repair
        count as unhealthy.
        """
        alive = [node for node in state.nodes if not (state.has_ended(node) or state.is_superseded(node))]
        zones: dict[str, list[bool]] = {}
        for node in alive:
            if zone := state.zone_of(node):
                zones.setdefault(zone, []).append(_is_unhealthy(node, state))
        return cls(
            all_not_ready=bool(alive) and not any(node.ready for node in alive),
            zones={zone: Share.of(unhealthy) for zone, unhealthy in zones.items()},
            cluster=Share.of(_is_unhealthy(node, state) for node in alive),
        )

    def reason_to_wait(self, node: Node, rules: RepairPolicy, state: ClusterState) -> str:
        """Return the guard that holds the node's repair back, or an empty string if none does."""
        zone = state.zone_of(node)
        if self.all_not_ready and node.instance_id not in known_or(state.impaired, {}):
            return "every node of the cluster is NotReady: the control plane or the network is in trouble, not the node"
        if zone in self.zones and _all_unhealthy(self.zones[zone]):
            return f"every node of zone {zone} is unhealthy: the zone is in trouble, not the node"
        for where, share in self._circuits(zone):
            if share.unhealthy > most_unhealthy(rules, share.nodes):
                most = f"{rules.max_unhealthy}{'%' if rules.max_unhealthy_percent else ''}"
                of_all = f"{share.unhealthy} of {share.nodes} nodes of {where} are unhealthy"
                return f"{of_all}, more than repair.maxUnhealthy ({most})"
        return ""

    def _circuits(self, zone: str) -> Iterator[tuple[str, Share]]:
        """Yield the scopes over which `maxUnhealthy` is counted: the node's zone, and the cluster."""
        if zone in self.zones:
            yield f"zone {zone}", self.zones[zone]
        yield "the cluster", self.cluster


def most_unhealthy(rules: RepairPolicy, nodes: int) -> int:
    """Return how many of so many nodes may be unhealthy while any is repaired. A percentage is rounded down and allows
    at least one node, whatever it is; a number is taken as it is, so that 0 allows no repair.
    """
    if not rules.max_unhealthy_percent:
        return rules.max_unhealthy
    return max(nodes * rules.max_unhealthy // 100, 1)


def _is_unhealthy(node: Node, state: ClusterState) -> bool:
    """Return whether the node, whose instance has not ended, is NotReady or fails a check, however long."""
    return not node.ready or node.instance_id in known_or(state.impaired, {})


def _all_unhealthy(share: Share) -> bool:
    return share.nodes >= FEWEST_OF_A_ZONE and share.unhealthy == share.nodes
