"""Watch cache of an API server that stands still for a while, as after an upgrade of the control plane."""

from collections.abc import Sequence

from local.cluster.model import Cluster
from local.cluster.objects import Obj, node_of


class OldCache:
    """Cache of the pods of one cluster. It is up to date unless it stands still."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._until = 0.0
        self._past: dict[str, list[Obj]] = {}  # by node

    def stand_still(self, until: float) -> None:
        """Show the pods of now until then."""
        self._until, self._past = until, {}
        for pod in self._cluster.store.each("pods"):  # stored objects are immutable
            self._past.setdefault(node_of(pod) or "", []).append(pod)

    def pods_on(self, node: str) -> Sequence[Obj]:
        """Return the pods of the node as the cache shows them."""
        if self._cluster.now() < self._until:
            return self._past.get(node, ())
        return tuple(self._cluster.store.pods_on(node))
