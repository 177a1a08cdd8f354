"""Registration of nodes in ways that some clusters know: without a provider id at first, or under a name that an ended
instance had."""

from random import Random

from local.cluster.nodes import NodeSpec, node_object
from simulation.aws.compute import SimInstance
from simulation.site import Site
from simulation.world import World

UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
PROVIDER_AFTER = (2.0, 40.0)  # seconds from a node's registration until the cloud controller knows it


class Registration:
    """Registration in one cluster of a world."""

    def __init__(self, world: World | Site, random: Random) -> None:
        self._world, self._random = world, random

    def withhold(self, spec: NodeSpec) -> None:
        """Register the node without a provider id; the cloud controller writes it some seconds later."""
        cluster = self._world.cluster
        raw = node_object(spec, now=cluster.world.timestamp())
        provider, own = raw["spec"].pop("providerID"), list(raw["spec"].get("taints") or ())
        raw["spec"]["taints"] = [*own, UNINITIALIZED]
        uid = cluster.create("nodes", raw)["metadata"]["uid"]

        def announce() -> None:
            there = cluster.store.find("nodes", spec.name)
            if there is not None and there["metadata"]["uid"] == uid:
                left = [taint for taint in there["spec"].get("taints") or () if taint["key"] != UNINITIALIZED["key"]]
                cluster.patch("nodes", spec.name, {"spec": {"providerID": provider, "taints": left or None}})

        self._world.timeline.after(self._random.uniform(*PROVIDER_AFTER), announce, "cloud controller")

    def free_name(self, member: SimInstance) -> str:
        """Return the name of an ended instance of the group whose Node is gone, empty if there is none."""
        used = {m.node for m in self._world.fleet.instances.values() if not m.gone and m is not member}
        there = {node["metadata"]["name"] for node in self._world.cluster.store.each("nodes")}
        ended = (m for m in self._world.fleet.instances.values() if m.gone and m.group == member.group)
        return next((m.node for m in ended if m.node not in used | there), "")
