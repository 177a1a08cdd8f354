"""Rule about groups whose nodes are not what their launch template lets expect: less memory, fewer pods, a taint, no
label that a script promises. Runs do not launch there again and again."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from local.cluster.objects import controller_of
from local.cluster.store import Change
from simulation.node_instances import instance_behind
from simulation.view import WorldView

HOUR = 3600.0
MOST = 4  # runs within it whose new nodes of a group ended without a pod of a workload: alarms and stops end some


@dataclass(slots=True)
class Fruitless:
    """Rule about launches of runs that serve no pod: at most a few in an hour and a group, one object for each run."""

    _names: dict[str, str] = field(default_factory=dict)  # instance -> its Node
    _serving: set[str] = field(default_factory=set)  # Nodes to which a pod of a workload was bound
    _open: dict[str, tuple[str, int, float]] = field(default_factory=dict)  # instance -> group, run, launch time
    _ended: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))  # group -> run -> launch
    most: int = 0  # such runs for a group within an hour

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource == "nodes":
            self._names[instance_behind(change.obj)] = change.obj["metadata"]["name"]
        elif change.resource == "pods" and (node := change.obj["spec"].get("nodeName")):
            owner = controller_of(change.obj)
            if owner is not None and owner["kind"] != "DaemonSet":
                self._serving.add(node)

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield groups in which runs launch without end, once for each run."""
        for record in view.disruptions.values():
            for instance, node in record.launched.items() if record.open else ():
                self._open.setdefault(instance, (node.group, record.number, view.now))
        for instance in [name for name in self._open if not view.running(name)]:
            group, run, at = self._open.pop(instance)
            name, runs = self._names.get(instance), self._ended[group]
            if name is None or name in self._serving or run in runs:
                continue
            runs[run] = at
            recent = [number for number, then in runs.items() if then > at - HOUR]
            self.most = max(self.most, len(recent))
            if len(recent) > MOST:
                yield f"{group}: {len(recent)} runs within the hour launched nodes that served no pod"
