"""Nodes under our taint that nothing urgent has asked for: the old nodes of an upgrade, the new ones of an abort,
scale-down and surplus. Read from EC2, the groups and the Nodes, never from a record of the product."""

from collections.abc import Iterator

from leeward.model.group import Group
from local.cluster.objects import Obj, is_ready, name_of
from local.cluster.store import Change, ChangeType
from simulation.asked import AskedOf
from simulation.convergence import is_tainted
from simulation.facts import group_of
from simulation.foreign_taints import tainted_by_others
from simulation.node_instances import instance_behind
from simulation.view import WorldView

IN_ORDER = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
NETWORK = "NetworkUnavailable"


class Unasked:
    """Nodes under our taint, one object for each run. `under` holds them by name."""

    def __init__(self, asked: AskedOf) -> None:
        self.under: dict[str, Obj] = {}
        self.came: list[str] = []  # names of nodes that were tainted since the last check
        self.changed = False  # the set of nodes, until its reader resets it
        self._asked = asked
        self._urgent: set[str] = set()  # instances: what was urgent once stays so

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource != "nodes":
            return
        name = name_of(change.obj)
        if change.type is ChangeType.DELETED or not is_tainted(change.obj) or tainted_by_others(change.obj):
            self.changed = self.under.pop(name, None) is not None or self.changed
            return
        if name not in self.under:
            self.changed = True
            self.came.append(name)
        self.under[name] = change.obj

    def of_group(self, group: Group, view: WorldView) -> Iterator[Obj]:
        """Yield the nodes of the group under our taint that run and that nothing urgent has asked for."""
        for node in self.under.values():
            instance = instance_behind(node)
            if group.lifecycle_of(instance) is not None and view.running(instance) and not self.is_urgent(node, view):
                yield node

    def is_urgent(self, node: Obj, view: WorldView) -> bool:
        """Return whether EC2, the group, an operator, the node's state or a closed zone has asked for the node."""
        instance = instance_behind(node)
        if instance not in self._urgent and self._asks(node, instance, view):
            self._urgent.add(instance)
        return instance in self._urgent

    def _asks(self, node: Obj, instance: str, view: WorldView) -> bool:
        if self._asked.of(instance) or instance in view.started_manually:
            return True
        conditions = (node.get("status") or {}).get("conditions") or ()
        ill = any(one["status"] != IN_ORDER.get(one["type"], "True") for one in conditions if one["type"] != NETWORK)
        if ill or not is_ready(node) or "deletionTimestamp" in node["metadata"]:
            return True
        group = group_of(view, instance)
        lifecycle = "" if group is None else group.lifecycle_of(instance) or ""
        by_others = lifecycle.startswith("Terminating") and instance not in view.asked_by_us
        zone = (node["metadata"].get("labels") or {}).get("topology.kubernetes.io/zone")
        return group is None or by_others or any(shift.zone == zone for shift in view.shifted)
