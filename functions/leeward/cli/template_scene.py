"""Inputs of a node template: the group and its sources, of a snapshot or of AWS itself.

Decides where each part comes from; `leeward.node_template` decides what follows from them."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leeward.adapters.folder.network_limits import limits_of
from leeward.adapters.folder.snapshot import Snapshot
from leeward.cli.place_scene import cni_variables, known_group
from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings, among_configurations, among_versions
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.build import Sources
from leeward.node_template.cache import NodegroupCache
from leeward.node_template.gathering import look_up, sources_of
from leeward.policy.document import NodePolicy, TemplatePolicy
from leeward.policy.selection import policy_for
from leeward.ports.clock import Clock
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import Nodegroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Sources and policy of a template. `remarks`: reasons why a source is missing."""

    sources: Sources
    policy: TemplatePolicy
    remarks: tuple[str, ...] = ()


class SnapshotNodegroups:
    """`ports.eks.Nodegroups` on nodegroups.json. A node group that is not in it stands for a call that failed; a broken
    file does not: it is reported at once.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._file = snapshot.directory / "nodegroups.json"
        self._known = [element["nodegroup"] for element in snapshot.raw("nodegroups")]

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Describe it. Raises ObjectGoneError for an absent one, InvalidInputError for an unknown taint effect."""
        for raw in self._known:
            if raw["nodegroupName"] == name and (not cluster or raw.get("clusterName", cluster) == cluster):
                return Nodegroup.from_json(raw)
        raise ObjectGoneError(f"{self._file} does not hold it")


class SnapshotLaunchSources:
    """`ports.compute.LaunchSources` on a snapshot; types that its instance-types.json lacks come without memory."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def settings(self, group: Group) -> LaunchSettings | None:
        """Return the group's launch settings, or None when the files do not hold them."""
        wanted = group.launch.template
        if wanted is not None:
            return among_versions(wanted, self._snapshot.raw("launch-template-versions"))
        return among_configurations(group.launch.configuration or "", self._snapshot.raw("launch-configurations"))

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Return the types from the file, else from the built-in table of interfaces and cores."""
        told = self.all_instance_types()
        built_in = {name: limits_of(name, None) for name in names if name not in told}
        # the table has neither memory nor architecture: nothing may be read out of their defaults
        return {**told, **{name: replace(kind, architectures=()) for name, kind in built_in.items() if kind}}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return the types of instance-types.json."""
        kinds = (InstanceType.from_json(raw) for raw in self._snapshot.raw("instance-types"))
        return {kind.name: kind for kind in kinds}


def offline_scene(
    directory: str | Path, cluster: str | None, name: str, *, zone: str | None, instance_type: str | None
) -> Scene:
    """Build the scene from the folder. Raises InvalidInputError naming file, path, found and expected."""
    from leeward.adapters.clock import SystemClock

    snapshot = Snapshot.read(directory, cluster=cluster)
    group = _with_zones(known_group(snapshot, name), snapshot)
    running = {snapshot.instances[one.id].type for one in group.instances if one.id in snapshot.instances} - {""}
    policy = snapshot.policy_of(name)
    variables = cni_variables(snapshot, () if policy is None else (policy,))
    gathered = _Gathered(SnapshotNodegroups(snapshot), SnapshotLaunchSources(snapshot), SystemClock(), policy)
    return gathered.scene(group, cluster or "", running, variables, zone, instance_type)


def _with_zones(group: Group, snapshot: Snapshot) -> Group:
    """Return the group; one that reports no zones gets those of its subnets."""
    if group.zones:
        return group
    zones = {raw["SubnetId"]: raw["AvailabilityZone"] for raw in snapshot.raw("subnets")}
    return replace(group, zones=tuple(dict.fromkeys(zones[name] for name in group.subnets if name in zones)))


def live_scene(
    cluster: str, region: str | None, account: str | None, name: str, *, zone: str | None, instance_type: str | None
) -> Scene:
    """Build the scene from AWS with the caller's own credentials; the cluster itself is not called. Raises
    InvalidInputError for an unknown group.
    """
    from leeward.adapters import wiring  # late: offline needs no AWS library

    ports = wiring.command_line_ports(cluster, region, account)
    nodegroups, launches = wiring.command_line_templates(region)
    group = ports.groups.describe([name]).get(name)
    if group is None:
        raise InvalidInputError(f"AutoScalingGroups: found no group {name!r}, expected one of the Region's groups")
    members = ports.instances.describe([one.id for one in group.instances]).values()
    policy = policy_for(ports.clusters.policies(cluster).policies, group.name, group.tags)
    gathered = _Gathered(nodegroups, launches, ports.clock, policy)
    running = {member.type for member in members} - {""}
    return gathered.scene(group, cluster, running, policy.cni if policy else {}, zone, instance_type)


class _Gathered:
    """Sources of one command, live or offline, joined in one way."""

    def __init__(
        self, nodegroups: Nodegroups, launches: LaunchSources, clock: Clock, policy: NodePolicy | None
    ) -> None:
        self._remarks: list[str] = []
        self._cache = NodegroupCache(nodegroups, clock, chance=random.random, say=self._remarks.append)
        self._launches = launches
        self._policy = policy.template if policy else TemplatePolicy()

    def scene(
        self,
        group: Group,
        cluster: str,
        running: set[str],
        variables: Mapping[str, Any],
        zone: str | None,
        instance_type: str | None,
    ) -> Scene:
        looked = look_up(group, cluster, self._policy, nodegroups=self._cache, launches=self._launches, running=running)
        _check("zone", zone, looked.choices.zones)
        _check("instance type", instance_type, looked.choices.types)
        sources = sources_of(looked, self._launches, variables, zone=zone, instance_type=instance_type)
        return Scene(sources=sources, policy=self._policy, remarks=tuple(self._remarks))


def _check(what: str, asked: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a choice that the group cannot launch; where the group's choices are unknown, any value is accepted."""
    if asked is not None and allowed and asked not in allowed:
        shown = ", ".join(allowed[:10]) + (" …" if len(allowed) > 10 else "")
        raise InvalidInputError(f"template: found {what} {asked!r}, expected one of the group's: {shown}")
