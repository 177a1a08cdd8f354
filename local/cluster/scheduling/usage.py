"""Usage of each node, updated with every write: reserved resources, host ports, and the pods on the node."""

from __future__ import annotations

from collections import Counter

from local.cluster.objects import Obj, controller_of, is_finished, name_of, node_of
from local.cluster.quantities import pod_requests
from local.cluster.store import Change, ChangeType

from .affinity import Repelling
from .feasibility import HostPort, allocatable_of, host_ports
from .placed import Placed


class NodeUsage:
    """Usage of all nodes, in thousandths of each resource's unit. A finished pod reserves nothing; a pod that is being
    deleted still reserves everything it requests.
    """

    def __init__(self) -> None:
        self.placed = Placed()
        self.repelling = Repelling()
        self._owners: dict[str, Counter[str]] = {}
        self._ports: dict[str, Counter[HostPort]] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._allocatable: dict[str, dict[str, int]] = {}
        self._free: dict[str, dict[str, int]] = {}
        self._shares: dict[str, float] = {}

    def free(self, node: str) -> dict[str, int]:
        """Return allocatable minus reserved thousandths, by resource; empty for an unknown node."""
        free = self._free.get(node)
        if free is None:
            used = self._used.get(node, {})
            allocatable = self._allocatable.get(node, {})
            free = {name: amount - used.get(name, 0) for name, amount in allocatable.items()}
            self._free[node] = free
        return free

    def requested_share(self, node: str) -> float:
        """Return the reserved share of cpu plus that of memory: 0 to 2."""
        share = self._shares.get(node)
        if share is None:
            allocatable, free = self._allocatable.get(node, {}), self.free(node)
            share = sum(
                (1 - free[name] / allocatable[name] for name in ("cpu", "memory") if allocatable.get(name)), 0.0
            )
            self._shares[node] = share
        return share

    def siblings(self, node: str, owner: str) -> int:
        """Return the number of the node's pods whose controller has the uid `owner`."""
        counts = self._owners.get(node)
        return counts[owner] if counts is not None else 0

    def ports(self, node: str) -> list[HostPort]:
        """Return the host ports in use on the node."""
        return [port for port, count in self._ports.get(node, {}).items() if count > 0]

    def observe_node(self, change: Change) -> None:
        """Update after a node was added, changed or deleted."""
        name = name_of(change.obj)
        self._forget(name)
        if change.type is ChangeType.DELETED:
            self._allocatable.pop(name, None)
        else:
            self._allocatable[name] = allocatable_of(change.obj)

    def observe(self, change: Change) -> None:
        """Update after a pod was added, deleted, or changed in a field that placement reads."""
        if change.old is not None and _counts(change.old):
            self._count(change.old, -1)
            self.placed.remove(change.old)
        if change.type is not ChangeType.DELETED and _counts(change.obj):
            self._count(change.obj, 1)
            self.placed.add(change.obj)

    def _forget(self, node: str) -> None:
        """Drop the cached values of the node."""
        self._free.pop(node, None)
        self._shares.pop(node, None)

    def _count(self, pod: Obj, sign: int) -> None:
        node = str(node_of(pod))
        used = self._used.setdefault(node, {})
        self._forget(node)
        for name, amount in pod_requests(pod).items():
            used[name] = used.get(name, 0) + sign * amount
        owner = controller_of(pod)
        if owner is not None:
            self._owners.setdefault(node, Counter())[owner["uid"]] += sign
        for port in host_ports(pod):
            self._ports.setdefault(node, Counter())[port] += sign
        self.repelling.note(pod, sign)


def _counts(pod: Obj) -> bool:
    return node_of(pod) is not None and not is_finished(pod)
