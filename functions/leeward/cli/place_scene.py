"""Inputs of a placement, offline: subnets, nodes, the CNI's settings and the group's instance types of a snapshot.

Decides where each part comes from; `leeward.placement` decides what follows from them."""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leeward.adapters.folder.network_limits import types_named, vcpus_by_type
from leeward.adapters.folder.snapshot import Snapshot
from leeward.cli.place_types import group_types
from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.subnet import Subnet
from leeward.placement.accounting import Demand, accounting_of, demand_of
from leeward.placement.cni import DAEMON_SET, CniSettings, variables_of
from leeward.placement.scene import PlacementScene, closed_zones, cores_by_zone
from leeward.policy.document import NodePolicy


def read_snapshot(arguments: argparse.Namespace, verb: str) -> Snapshot:
    """Read the folder that --snapshot names. Raises InvalidInputError without one."""
    if arguments.snapshot is None:
        raise InvalidInputError(f"{verb}: found no --snapshot, expected --snapshot DIR")
    return Snapshot.read(arguments.snapshot, cluster=arguments.cluster)


def cni_variables(snapshot: Snapshot, policies: Iterable[NodePolicy]) -> dict[str, str]:
    """Return the aws-node DaemonSet's variables; the first policy that names one overrides it (docs/policy.md)."""
    found: dict[str, str] = {}
    for raw in snapshot.raw("daemonsets"):
        meta = raw["metadata"]
        if f"{meta.get('namespace', 'default')}/{meta['name']}" == DAEMON_SET:
            found = variables_of(raw)
    overrides: dict[str, str] = {}
    for policy in policies:
        overrides = {**policy.cni, **overrides}
    return {**found, **overrides}


def all_subnets(snapshot: Snapshot) -> tuple[Subnet, ...]:
    """Return all subnets. Raises InvalidInputError when there are none: nothing could be placed, without a reason."""
    subnets = tuple(Subnet.from_json(raw) for raw in snapshot.raw("subnets"))
    if not subnets:
        found = "no subnet" if snapshot.has("subnets") else "no such file"
        file = snapshot.directory / "subnets.json"
        raise InvalidInputError(f"{file}: Subnets: found {found}, expected the output of: aws ec2 describe-subnets")
    return subnets


def known_group(snapshot: Snapshot, name: str) -> Group:
    """Return the group. Raises InvalidInputError with the known groups."""
    group = snapshot.groups.get(name)
    if group is None:
        names = ", ".join(sorted(snapshot.groups)[:10]) or "none at all"
        file = snapshot.directory / "auto-scaling-groups.json"
        raise InvalidInputError(
            f"{file}: AutoScalingGroups: found no group {name!r}, expected one of its groups: {names}"
        )
    return group


def group_scene(snapshot: Snapshot, group: Group, pods: int, zones: Sequence[str] = ()) -> PlacementScene:
    """Build the scene for nodes of the group with `pods` pods that need an address, in its subnets, limited to `zones`
    if there are any.
    """
    everything = all_subnets(snapshot)
    subnets = _subnets_of(snapshot, group, everything)
    asked = tuple(sorted(set(zones))) or tuple(sorted({subnet.zone for subnet in subnets}))
    subnets = tuple(subnet for subnet in subnets if subnet.zone in asked)
    policy = snapshot.policy_of(group.name)
    types = types_named(group_types(snapshot, group), snapshot)
    demand = _demand(snapshot, everything, subnets, types, pods, () if policy is None else (policy,))
    allocated = cores_by_zone(snapshot.nodes, node_type_cores(snapshot))
    return PlacementScene(
        subnets=subnets,
        demand=demand,
        cores={zone: amount for zone, amount in allocated.items() if zone in asked},
        asked_zones=asked,
        closed=closed_zones(snapshot.nodes),
    )


def cluster_scene(snapshot: Snapshot, instance_type: str | None, pods: int | None) -> PlacementScene:
    """Build the scene for one more node of the cluster. Defaults: the commonest instance type and the pods of its
    busiest such node.

    Uses the subnets of the groups that policies select, or all subnets when no policy selects a group.
    """
    everything = all_subnets(snapshot)
    selected = [group for group in snapshot.groups.values() if snapshot.policy_of(group.name) is not None]
    ids = {name for group in selected for name in group.subnets}
    subnets = tuple(subnet for subnet in everything if subnet.id in ids) or everything
    kind = instance_type or commonest_type(snapshot)
    expected = busiest(snapshot, kind) if pods is None else pods
    types = types_named([kind] if kind else [], snapshot)
    policies = snapshot.policies.policies if snapshot.policies is not None else ()
    return PlacementScene(
        subnets=subnets,
        demand=_demand(snapshot, everything, subnets, types, expected, policies),
        cores=cores_by_zone(snapshot.nodes, node_type_cores(snapshot)),
        closed=closed_zones(snapshot.nodes),
    )


def node_type_cores(snapshot: Snapshot) -> Mapping[str, int]:
    """Return thousandths of a core by instance type of the nodes."""
    labels = (node.labels.get(well_known.INSTANCE_TYPE_LABEL, "") for node in snapshot.nodes)
    return vcpus_by_type(labels, snapshot)


def commonest_type(snapshot: Snapshot) -> str | None:
    """Return the commonest instance type of the nodes; the first by name among equals."""
    known = Counter(node.labels.get(well_known.INSTANCE_TYPE_LABEL, "") for node in snapshot.nodes)
    known.pop("", None)
    return min(known, key=lambda name: (-known[name], name), default=None)


def busiest(snapshot: Snapshot, instance_type: str | None) -> int:
    """Return the most pods with an address of their own on one node of the type; 0 without such nodes."""
    nodes = {node.name for node in snapshot.nodes if node.labels.get(well_known.INSTANCE_TYPE_LABEL) == instance_type}
    on_host = {_key(raw) for raw in snapshot.raw("pods") if (raw.get("spec") or {}).get("hostNetwork")}
    held = Counter(
        pod.node for pod in snapshot.pods if pod.node in nodes and not pod.finished and pod.key not in on_host
    )
    return max(held.values(), default=0)


def _subnets_of(snapshot: Snapshot, group: Group, subnets: Sequence[Subnet]) -> tuple[Subnet, ...]:
    """Return the group's subnets; a group without subnets of its own takes any of its zones."""
    if group.subnets:
        found = tuple(subnet for subnet in subnets if subnet.id in group.subnets)
        wanted = ", ".join(group.subnets)
    else:
        found = tuple(subnet for subnet in subnets if subnet.zone in group.zones)
        wanted = f"a subnet in {', '.join(group.zones) or 'one of its zones'}"
    if not found:
        file = snapshot.directory / "subnets.json"
        raise InvalidInputError(f"{file}: Subnets: found none of group {group.name}'s, expected {wanted}")
    return found


def _demand(
    snapshot: Snapshot,
    everything: Sequence[Subnet],
    candidates: Sequence[Subnet],
    types: Sequence[InstanceType],
    pods: int,
    policies: Iterable[NodePolicy],
) -> Demand:
    settings = CniSettings.from_variables(cni_variables(snapshot, policies))
    return demand_of(accounting_of(settings, everything, candidates), settings, types, pods)


def _key(raw: Mapping[str, Any]) -> str:
    return f"{raw['metadata'].get('namespace', 'default')}/{raw['metadata']['name']}"
