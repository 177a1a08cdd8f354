"""Storm guards: when many nodes fail at once, the cause is not in the nodes, and replacing them makes it worse.

Sources: Karpenter (node repair stops when more than 20 % of a pool are unhealthy) and Kubernetes' node
lifecycle controller, which evicts nothing while all nodes of all zones are NotReady."""

from collections.abc import Iterable
from dataclasses import dataclass

from leeward.model.group import Group
from leeward.model.node import Node
from leeward.policy.document import RepairPolicy
from leeward.repair.ailments import ails
from leeward.repair.checkup import Checkup

FEWEST_OF_A_ZONE = 2  # of a zone with one node nobody can tell an outage from a broken node


@dataclass(frozen=True, slots=True, kw_only=True)
class Storms:
    """Counted once for a checkup. `dark`: zones whose nodes all ail; `ailing`: (ailing, all) nodes by group."""

    all_not_ready: bool
    dark: frozenset[str]
    ailing: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, checkup: Checkup) -> "Storms":
        """Nodes whose instances are gone count nowhere; those that are being repaired count as ailing."""
        alive = [node for node in checkup.nodes if not checkup.gone(node)]
        zones: dict[str, list[bool]] = {}
        groups: dict[str, list[bool]] = {}
        for node in alive:
            ill, group = ails(node, checkup), checkup.group_of(node)
            zones.setdefault(checkup.zone_of(node), []).append(ill)
            if group is not None:
                groups.setdefault(group.name, []).append(ill)
        return cls(
            all_not_ready=bool(alive) and not any(node.ready for node in alive),
            dark=frozenset(zone for zone, ill in zones.items() if zone and _all_of_several(ill)),
            ailing={name: (sum(ill), len(ill)) for name, ill in groups.items()},
        )

    def why_not(self, node: Node, group: Group, rules: RepairPolicy, checkup: Checkup) -> str:
        """Which guard holds the node's repair back, empty when none does."""
        zone = checkup.zone_of(node)
        if self.all_not_ready and node.instance_id not in checkup.impaired:
            return "every node of the cluster is NotReady: the control plane or the network is in trouble, not the node"
        if zone in self.dark:
            return f"every node of zone {zone} is unhealthy: the zone is in trouble, not the node"
        ill, nodes = self.ailing[group.name]
        most = most_unhealthy(rules, nodes)
        if ill > most:
            wanted = f"{rules.max_unhealthy}{'%' if rules.max_unhealthy_percent else ''}"
            return f"{ill} of {nodes} nodes of {group.name} are unhealthy, more than repair.maxUnhealthy ({wanted})"
        return ""


def most_unhealthy(rules: RepairPolicy, nodes: int) -> int:
    """How many of a group's nodes may be unhealthy while any is repaired. A share is rounded down and allows at least
    one node; 0% allows none.
    """
    if not rules.max_unhealthy_percent or not rules.max_unhealthy:
        return rules.max_unhealthy
    return max(nodes * rules.max_unhealthy // 100, 1)


def _all_of_several(ill: Iterable[bool]) -> bool:
    found = tuple(ill)
    return len(found) >= FEWEST_OF_A_ZONE and all(found)
