"""State of a whole cluster for pure decisions, from a snapshot folder or live.

Decides where each part comes from; `leeward.snapshot` decides how the parts belong together."""

import argparse
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from leeward.adapters.folder.snapshot import Snapshot
from leeward.cli.place_scene import cni_variables, read_snapshot
from leeward.cli.template_scene import SnapshotLaunchSources, SnapshotNodegroups
from leeward.disruption.observation import with_the_table
from leeward.errors import InvalidInputError, LeewardError
from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.impairment import Impairment
from leeward.model.instance import Instance
from leeward.model.subnet import Subnet
from leeward.node_template.cache import NodegroupCache
from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader
from leeward.scheduling.volumes import Storage
from leeward.snapshot.attaching import seen_limits
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.gather import gather
from leeward.snapshot.launchable import Launchable
from leeward.snapshot.launches import LaunchFacts, launchable_of, launched_from, looked_up

NO_POLICY = (
    "there is no policy.yaml: no group is selected, so nothing is a candidate (docs/policy.md has the shortest one)"
)


def cluster_of(arguments: argparse.Namespace, verb: str) -> ClusterSnapshot:
    """Return the cluster of --snapshot or --cluster. Raises InvalidInputError without either."""
    if arguments.snapshot is not None:
        return offline_cluster(read_snapshot(arguments, verb), arguments.cluster or "", arguments.now)
    ports = _live_ports(arguments, verb)
    return _with_rounds(gather(ports, arguments.cluster, arguments.now), ports)


def _with_rounds(snapshot: ClusterSnapshot, ports: Ports) -> ClusterSnapshot:
    """Add the table's rounds and upgrades; a table that cannot be read (Leeward is not installed) gives a remark."""
    try:
        return with_the_table(snapshot, ports, ports.rounds.read(snapshot.cluster))
    except LeewardError as error:
        remark = f"whether a round or an upgrade is under way cannot be read: {error}"
        return replace(snapshot, remarks=(*snapshot.remarks, remark))


def impaired_of(arguments: argparse.Namespace, verb: str) -> Mapping[str, Impairment]:
    """Return the instances whose status checks fail, by id. Raises InvalidInputError as `cluster_of` does."""
    if arguments.snapshot is None:
        return _live_ports(arguments, verb).instances.impaired()
    told = map(Impairment.from_json, read_snapshot(arguments, verb).raw("instance-status"))
    return {one.instance: one for one in told if one is not None}


def _live_ports(arguments: argparse.Namespace, verb: str) -> Ports:
    if arguments.cluster is None:
        raise InvalidInputError(
            f"{verb}: found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"
        )
    from leeward.adapters.wiring import command_line_ports  # late: offline needs no AWS library

    return command_line_ports(arguments.cluster, arguments.region, arguments.account)


def offline_cluster(snapshot: Snapshot, cluster: str, now: datetime) -> ClusterSnapshot:
    """Return the cluster of the folder. Raises InvalidInputError naming file, path, found and expected."""
    remarks = [] if snapshot.policies is not None else [NO_POLICY]
    policies = snapshot.policies or ClusterPolicies(settings=ClusterSettings(name=cluster))
    groups = {group.name: group for group in _with_zones(snapshot)}
    prices = _prices(snapshot.raw("prices"))
    reader = _reader(snapshot)
    csi_nodes = {raw["metadata"]["name"]: raw for raw in snapshot.raw("csinodes")}
    nodes = [NodeSpec.from_json(raw, csi_nodes.get(raw["metadata"]["name"])) for raw in snapshot.raw("nodes")]
    facts = replace(_launch_facts(snapshot, cluster, prices, remarks), attach_limits=seen_limits(nodes))
    selected = {name: p for name, g in groups.items() if (p := policy_for(policies.policies, name, g.tags)) is not None}
    return ClusterSnapshot(
        cluster=cluster or policies.settings.name,
        now=now,
        policies=policies,
        nodes=snapshot.nodes,
        pods=snapshot.pods,
        budgets=snapshot.budgets,
        daemon_sets=snapshot.daemon_sets,
        groups=groups,
        instances=snapshot.instances,
        hooks=snapshot.hooks,
        subnets=_subnets(snapshot),
        types=SnapshotLaunchSources(snapshot).all_instance_types(),
        prices=prices,
        node_specs=tuple(nodes),
        pod_specs=tuple(reader.read_all(snapshot.raw("pods"))),
        daemon_specs=tuple(reader.daemon(raw) for raw in snapshot.raw("daemonsets") if "template" in _spec(raw)),
        launchables={
            name: _launchable(groups[name], policy, facts, snapshot.instances) for name, policy in selected.items()
        },
        launched_from=launched_from((groups[name] for name in selected), facts),
        remarks=tuple(remarks),
    )


def _launch_facts(snapshot: Snapshot, cluster: str, prices: Prices, remarks: list[str]) -> LaunchFacts:
    from leeward.adapters.clock import SystemClock

    nodegroups = SnapshotNodegroups(snapshot)
    return LaunchFacts(
        cluster=cluster,
        nodegroups=NodegroupCache(nodegroups, SystemClock(), chance=random.random, say=remarks.append),
        sources=SnapshotLaunchSources(snapshot),
        subnets=_subnets(snapshot),
        prices=prices,
        variables=cni_variables(snapshot, ()),
    )


def _launchable(group: Group, policy: NodePolicy, facts: LaunchFacts, instances: Mapping[str, Instance]) -> Launchable:
    members = {instances[one.id].type for one in group.instances if one.id in instances}
    looked = looked_up(group, policy, facts, {*members, *group.running_types} - {""})
    return launchable_of(looked, policy, facts)


def _with_zones(snapshot: Snapshot) -> Iterable[Group]:
    """Yield every group; one that reports no zones gets those of its subnets."""
    zones = {subnet.id: subnet.zone for subnet in _subnets(snapshot).values()}
    for group in snapshot.groups.values():
        told = tuple(dict.fromkeys(zones[name] for name in group.subnets if name in zones))
        yield group if group.zones else replace(group, zones=told)


def _subnets(snapshot: Snapshot) -> dict[str, Subnet]:
    found = (Subnet.from_json(raw) for raw in snapshot.raw("subnets"))
    return {subnet.id: subnet for subnet in found}


def _prices(raw: Iterable[Mapping[str, Any]]) -> Prices:
    """Join all documents; a later one wins."""
    on_demand: dict[str, float] = {}
    spot: dict[str, dict[str, float]] = {}
    for document in raw:
        on_demand |= document.get("on-demand") or {}
        for name, by_zone in (document.get("spot") or {}).items():
            spot.setdefault(name, {}).update(by_zone)
    return Prices(on_demand=on_demand, spot=spot)


def _reader(snapshot: Snapshot) -> PodReader:
    storage = Storage.from_json(snapshot.raw("pvcs"), snapshot.raw("pvs"), snapshot.raw("storageclasses"))
    namespaces = {raw["metadata"]["name"]: raw["metadata"].get("labels") or {} for raw in snapshot.raw("namespaces")}
    return PodReader(namespaces=namespaces, storage=storage)


def _spec(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return raw.get("spec") or {}
