"""Kubelets and cloud controllers: how the Nodes of instances register, fall silent and are removed."""

from collections.abc import Callable

from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec, boot_after, monitored_condition
from local.cluster.objects import set_condition
from simulation.aws.compute import SimInstance
from simulation.node_instances import instance_behind
from simulation.scene import Scene
from simulation.timeline import Timeline

SILENT_AFTER = 40.0  # seconds: a dead kubelet's node becomes Unknown
MONITORED = frozenset({"AcceleratedHardwareReady", "KernelReady"})  # that the monitoring agent of a test writes
FORGOTTEN_AFTER = 300.0  # and the cloud controller removes it


def fail(cluster: Cluster, name: str, kind: str) -> None:
    """Write a condition of the node monitoring agent that says that a part of the node is broken."""
    node = cluster.get("nodes", name)
    condition = monitored_condition(kind=kind, status="False", reason="Broken", now=cluster.world.timestamp())
    set_condition(node["status"], condition)
    cluster.update("nodes", node, subresource="status")


def heal(cluster: Cluster, name: str, kind: str) -> None:
    """Take such a condition back, as the agent does for what is over."""
    node = cluster.get("nodes", name)
    node["status"]["conditions"] = [one for one in node["status"]["conditions"] if one["type"] != kind]
    cluster.update("nodes", node, subresource="status")


class Hosts:
    """Hosts of all clusters. `scene_of`: the cluster of an instance; `labels`: with which its node registers."""

    def __init__(self, timeline: Timeline, scene_of: Callable[[SimInstance], Scene]) -> None:
        self._timeline, self._scene_of = timeline, scene_of

    def joined(self, member: SimInstance) -> None:
        """Register the instance's Node, or report it Ready again after a stop."""
        scene = self._scene_of(member)
        spec = NodeSpec(
            name=member.node,
            zone=member.zone,
            instance_id=member.id,
            instance_type=member.type,
            labels=scene.labels(member),
            **scene.fleet.groups[member.group].registers,
        )
        if scene.cluster.store.find("nodes", member.node) is None:
            scene.register(spec)
        elif self._stands(member):  # it was stopped for a while
            scene.cluster.set_node_ready(member.node, "True")

    def ended(self, member: SimInstance) -> None:
        """Let the kubelet fall silent, and the cloud controller remove the Node some time later."""
        self._scene_of(member).say(f"{member.id} of {member.group} is ended by EC2")
        self._timeline.after(SILENT_AFTER, lambda: self._silent(member), "kubelet silent")
        self._timeline.after(FORGOTTEN_AFTER, lambda: self._remove(member), "cloud controller")

    def down(self, member: SimInstance) -> None:
        """Let the kubelet of a rebooting instance fall silent."""
        if self._stands(member):
            self._scene_of(member).cluster.set_node_ready(member.node, "Unknown")

    def up(self, member: SimInstance, helps: bool) -> None:
        """Report the Node with another boot id; `helps`: without unhealthy conditions."""
        if self._stands(member):
            cluster = self._scene_of(member).cluster
            node = cluster.get("nodes", member.node)
            node["status"]["nodeInfo"]["bootID"] = boot_after(node)
            kept = [one for one in node["status"]["conditions"] if not (helps and one["type"] in MONITORED)]
            node["status"]["conditions"] = kept
            cluster.update("nodes", node, subresource="status")
            cluster.set_node_ready(member.node, "True")

    def _stands(self, member: SimInstance) -> bool:
        """Return whether the Node of that name is still the instance's: names of nodes may be used again."""
        node = self._scene_of(member).cluster.store.find("nodes", member.node)
        return node is not None and instance_behind(node) in {"", member.id}

    def _silent(self, member: SimInstance) -> None:
        if member.gone and self._stands(member):
            self._scene_of(member).cluster.set_node_ready(member.node, "Unknown")

    def _remove(self, member: SimInstance) -> None:
        if member.gone and self._stands(member):
            scene = self._scene_of(member)
            scene.say(f"the cloud controller removes {member.node}")
            scene.cluster.delete("nodes", member.node)
