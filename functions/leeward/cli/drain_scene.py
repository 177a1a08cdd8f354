"""Inputs from which a drain is planned: one node, its pods and every object that affects them, offline or live.

Decides where each part comes from; `leeward.termination.drain_plan` decides what happens to the pods."""

from dataclasses import dataclass

from leeward.adapters.folder.snapshot import Snapshot
from leeward.errors import InvalidInputError
from leeward.model.attachment import VolumeAttachment, claims_of
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.document import DrainPolicy, NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes
from leeward.termination.lone_pods import lone_pods
from leeward.termination.replica_surge import surged
from leeward.termination.volumes import HeldVolume, held_volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One node to drain. `selected` None: no policy selects its group, so planning uses the defaults. `record`: its
    open termination, if any. `gone`: EC2 has ended the instance. `volumes`: volumes attached to the node. `surged`:
    pods that get a second replica before they leave, `namespace/name`.
    """

    node: Node
    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...]
    daemon_sets: frozenset[str]
    group: str | None = None
    selected: NodePolicy | None = None
    instance: Instance | None = None
    gone: bool = False
    record: TerminationRecord | None = None
    volumes: tuple[HeldVolume, ...] = ()
    surged: frozenset[str] = frozenset()

    @property
    def policy(self) -> DrainPolicy:
        """Drain policy of its pods."""
        return self.selected.drain if self.selected else DrainPolicy()


def offline_scenes(snapshot: Snapshot, *, node: str | None, group: str | None) -> list[Scene]:
    """Return the node, or all nodes of the group by name. Raises InvalidInputError for an unknown node or group."""
    if node is not None:
        found = snapshot.node(node)
        if found is None:
            names = ", ".join(sorted(known.name for known in snapshot.nodes)[:10]) or "none at all"
            file = snapshot.directory / "nodes.json"
            raise InvalidInputError(f"{file}: items: found no node {node!r}, expected one of its nodes: {names}")
        return [_offline_scene(snapshot, found)]
    known_groups = {*snapshot.groups, *(instance.group for instance in snapshot.instances.values())} - {None}
    if group not in known_groups:
        names = ", ".join(sorted(name for name in known_groups if name)[:10]) or "none at all"
        raise InvalidInputError(
            f"{snapshot.directory / 'auto-scaling-groups.json'}: AutoScalingGroups: found no group {group!r}, "
            f"expected one of its groups: {names}"
        )
    members = [member for member in snapshot.nodes if snapshot.group_of(member.instance_id) == group]
    return [_offline_scene(snapshot, member) for member in sorted(members, key=lambda member: member.name)]


def _offline_scene(snapshot: Snapshot, node: Node) -> Scene:
    group = snapshot.group_of(node.instance_id)
    instance = snapshot.instances.get(node.instance_id)
    on_ec2 = node.instance_id.startswith("i-")
    pods = snapshot.pods_on(node.name)
    attachments = (VolumeAttachment.from_json(raw) for raw in snapshot.raw("volumeattachments"))
    claims = claims_of(snapshot.raw("pvs"), snapshot.raw("pvcs"))
    selected = snapshot.policy_of(group)
    surges = selected is not None and selected.drain.surge_single_replicas
    return Scene(
        node=node,
        pods=pods,
        budgets=snapshot.budgets,
        daemon_sets=snapshot.daemon_sets,
        group=group,
        selected=selected,
        instance=instance,
        gone=instance.ended if instance else on_ec2 and snapshot.has("instances"),
        volumes=held_volumes(node.name, pods, attachments, claims),
        surged=frozenset(pod.key for pod in lone_pods(pods, snapshot.pods)) if surges else frozenset(),
    )


def live_scenes(ports: Ports, cluster: str, *, node: str | None, group: str | None) -> list[Scene]:
    """Return the same as `offline_scenes`, from the cluster's API, EC2, Auto Scaling and the table."""
    kubernetes = ports.clusters.kubernetes(cluster)
    if node is not None:
        found = kubernetes.node(node)
        if found is None:
            raise InvalidInputError(f"cluster {cluster}: nodes: found no node {node!r}, expected one of its nodes")
        return [_live_scene(ports, cluster, kubernetes, found)]
    known = ports.groups.describe([group or ""]).get(group or "")
    if known is None:
        raise InvalidInputError(f"AutoScalingGroups: found no group {group!r}, expected one of the Region's groups")
    listed = {member.id for member in known.instances}
    members = [member for member in kubernetes.nodes() if member.instance_id in listed]
    return [
        _live_scene(ports, cluster, kubernetes, member) for member in sorted(members, key=lambda member: member.name)
    ]


def _live_scene(ports: Ports, cluster: str, kubernetes: Kubernetes, node: Node) -> Scene:
    on_ec2 = node.instance_id.startswith("i-")
    instance = ports.instances.describe([node.instance_id]).get(node.instance_id) if on_ec2 else None
    name = instance.group if instance else None
    group = ports.groups.describe([name]).get(name) if name else None
    policies = ports.clusters.policies(cluster).policies
    record = ports.claims.read(node.instance_id) if on_ec2 else None
    pods = tuple(kubernetes.pods_on(node.name))
    attachments = [one for one in kubernetes.attachments() if one.node == node.name]
    claims = claims_of(kubernetes.volumes()) if attachments else {}
    selected = policy_for(policies, group.name, group.tags) if group else None
    surges = selected is not None and selected.drain.surge_single_replicas
    return Scene(
        node=node,
        pods=pods,
        budgets=tuple(kubernetes.budgets()),
        daemon_sets=kubernetes.daemon_sets(),
        group=name,
        selected=selected,
        instance=instance,
        gone=on_ec2 and (instance is None or instance.ended),
        record=record if record and record.status is Status.OPEN else None,
        volumes=held_volumes(node.name, pods, attachments, claims),
        surged=surged(lone_pods(pods, pods), kubernetes) if surges else frozenset(),
    )
