"""Preferences among fitting nodes. A rough form of the score plugins, exact only in the order of nodes.

Soft topology spread, preferred node and pod (anti-)affinity, and PreferNoSchedule taints become one penalty: the fuller
its domain and the fewer preferences a node meets, the higher its penalty.
"""

from __future__ import annotations

from local.cluster.objects import Obj, labels_of
from local.cluster.store import Store

from .affinity import domains_of, query_for
from .feasibility import term_matches
from .placed import Placed
from .spread import constraints_of, spread_query
from .taints import blocking_taint, taints_of, tolerations_of

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_CROWD = 10  # points for each pod already in the domain; affinity weights go from 1 to 100
_TAINTED = 100


class Preferences:
    """Soft preferences of one pod, counted once and checked for every node."""

    def __init__(self, pod: Obj, store: Store, placed: Placed) -> None:
        affinity = pod["spec"].get("affinity") or {}
        self._nodes: list[Obj] = (affinity.get("nodeAffinity") or {}).get(_PREFERRED) or []
        self._domains: list[tuple[str, dict[str, int]]] = []
        for constraint in constraints_of(pod, hard=False):
            there = placed.on_nodes([spread_query(pod, constraint)], leaving=False)
            self._domains.append((constraint["topologyKey"], _crowds(there, constraint["topologyKey"], store)))
        for kind, sign in (("podAffinity", -1), ("podAntiAffinity", 1)):
            for preference in (affinity.get(kind) or {}).get(_PREFERRED) or []:
                term, points = preference["podAffinityTerm"], sign * int(preference["weight"])
                there = placed.on_nodes([query_for(pod, term, store)], leaving=True)
                domains = domains_of(there, term["topologyKey"], store)
                self._domains.append((term["topologyKey"], dict.fromkeys(sorted(domains), points)))

    def penalty(self, node: Obj) -> int:
        """Return the points against the node."""
        labels = labels_of(node)
        points = sum(domains.get(labels.get(key, ""), 0) for key, domains in self._domains)
        return points - sum(
            int(preference["weight"]) for preference in self._nodes if term_matches(preference["preference"], node)
        )


def taint_penalty(pod: Obj, node: Obj) -> int:
    """Return the points against a node with untolerated PreferNoSchedule taints (TaintToleration's score)."""
    if not taints_of(node):
        return 0
    unwanted = blocking_taint(tolerations_of(pod), node, ("PreferNoSchedule",))
    return 0 if unwanted is None else _TAINTED


def _crowds(there: dict[str, int], key: str, store: Store) -> dict[str, int]:
    crowds: dict[str, int] = {}
    for name, count in there.items():
        for domain in domains_of([name], key, store):
            crowds[domain] = crowds.get(domain, 0) + _CROWD * count
    return crowds
