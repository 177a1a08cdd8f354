"""Gathering of a ClusterSnapshot from the ports: the cluster's API, Auto Scaling, EC2, EKS, and the records of function
sync.

Decides which requests are made, and in which order, so that pods are parsed once and raw objects are released page by
page.

Operating system and CPU architecture of pods that a plan moves.

Decides where a plan may look for a place. kube-scheduler allows a pod without selectors on every platform; a plan seeks
the cheap group, which may be one whose nodes cannot run the pod's image. So a pod keeps the operating system of its
node, and its architecture unless the policy or the pod itself allows others, or its own group launches several."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from leeward.cluster.facets import Facet, Known, load
from leeward.errors import AccessDeniedError, InvalidInputError, LeewardError, NotDeployedError, ObjectGoneError
from leeward.gc_pause import collector_paused
from leeward.model import well_known
from leeward.model.facts import ClusterFacts, Prices
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.planning_memory import RememberedNode
from leeward.model.pod import FINISHED, Pod
from leeward.model.raw_fields import mapping, metadata_of, text, texts
from leeward.model.zonal_shift import NOT_SHIFTED, ZonalShifts
from leeward.node_template.gathering import Looked
from leeward.node_template.labels import ARCH, BETA, OS
from leeward.placement.cni import DAEMON_SET, variables_of
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.ports import Ports
from leeward.ports.compute import PriceList
from leeward.ports.kubernetes import Kubernetes, Listed
from leeward.ports.records import Catalog, Claims
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import Needs, PodReader, PodSpec
from leeward.scheduling.selectors import LabelRequirement, Operator
from leeward.scheduling.volumes import Storage
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launches import LaunchFacts, launchable_of, launched_from, looked_up, ready_nodes, seen_limits

ANY_ARCHITECTURE = "any"
Platform = tuple[str, str]  # operating system, architecture; empty: any


def gather(
    ports: Ports,
    cluster: str,
    now: datetime,
    *,
    as_if: Group | None = None,
    policies: ClusterPolicies | None = None,
    seen: Mapping[str, RememberedNode] | None = None,
) -> ClusterSnapshot:
    """Return the current state of the cluster. Raises the errors of the ports; if prices or the table of claims are
    unavailable, the warnings say so. `as_if`: one of its groups in an assumed state; launches are then read only for
    that one. `policies`: assumed instead of the cluster's; `seen`: what the last nodes of groups showed.
    """
    objects = _read_objects(ports.clusters.kubernetes(cluster))
    policies = policies or ports.clusters.policies(cluster)
    groups = {group.name: group for group in ports.groups.of_clusters([cluster])}
    if as_if is not None:
        groups[as_if.name] = as_if
    asked = groups if as_if is None else {as_if.name: as_if}
    selected = {n: p for n, g in asked.items() if (p := policies.policy_of(g)) is not None}
    members = {member.id for group in groups.values() for member in group.instances}
    instances = ports.instances.describe(sorted(members | {node.instance_id for node in objects.nodes} - {""}))
    subnets = ports.network.subnets(sorted({name for group in selected for name in groups[group].subnets}))
    warnings: list[str] = []
    shifts = _shifts(cluster, ports.catalog, warnings)
    usable = {name: subnet for name, subnet in subnets.items() if subnet.zone not in shifts.zones}
    facts = LaunchFacts(
        cluster=cluster,
        nodegroups=ports.nodegroups,
        sources=ports.launches,
        subnets=usable,
        prices=Prices(),
        variables=objects.variables,
        attach_limits=seen_limits(objects.node_specs),
    )
    launches = _Launches(groups, selected, instances, facts)
    prices, unread = known_prices(ports.price_list, ports.catalog, cluster, launches.types, launches.zones, now)
    warnings += unread
    settings = launched_from((groups[name] for name in selected), ports.launches, launches.looked.values())
    nodes = list(zip(objects.nodes, objects.node_specs, strict=True))
    ready = {name: ready_nodes(groups[name], nodes, instances, settings) for name in selected}
    facts = replace(facts, prices=prices, ready=ready, seen=seen or {})
    snapshot = ClusterSnapshot(
        cluster=cluster,
        now=now,
        policies=policies,
        node_list=Known(tuple(objects.nodes)),
        pods=tuple(objects.pods),
        budgets=tuple(ports.clusters.kubernetes(cluster).budgets()),
        daemon_sets=frozenset(objects.daemon_sets),
        groups=groups,
        instances=instances,
        hooks={name: tuple(ports.groups.hooks(name)) for name in {*selected, *_left_over(objects.nodes, groups)}},
        subnets=subnets,
        types=ports.launches.instance_types(launches.types),
        prices=facts.prices,
        node_specs=tuple(objects.node_specs),
        pod_specs=tuple(objects.pod_specs),
        daemon_specs=tuple(objects.daemon_specs),
        launchables={name: launchable_of(launches.looked[name], policy, facts) for name, policy in selected.items()},
        launched_from=settings,
        claims=_claimed(ports.claims, warnings),
        shifts=Known(shifts),
        warnings=tuple(warnings),
    )
    return replace(snapshot, pod_specs=with_platforms(snapshot))


def _left_over(nodes: Iterable[Node], groups: Mapping[str, Group]) -> set[str]:
    """Return the groups of nodes that carry findings of ours. Of one that no policy selects, its hooks tell whether
    another deployment does.
    """
    carrying = {node.instance_id for node in nodes if not well_known.FINDINGS.isdisjoint(node.annotations)}
    return {name for name, group in groups.items() if any(member.id in carrying for member in group.instances)}


def read_specs(kubernetes: Kubernetes) -> tuple[tuple[NodeSpec, ...], tuple[PodSpec, ...]]:
    """Return all nodes, and all pods that have not finished, as a scheduler sees them."""
    objects = _read_objects(kubernetes, specs_only=True)
    return tuple(objects.node_specs), tuple(objects.pod_specs)


def read_nodes(kubernetes: Kubernetes) -> list[tuple[Node, NodeSpec]]:
    """Return all nodes, also as a scheduler sees them."""
    return list(kubernetes.read(Listed.NODES, _NodeParser(csi_nodes={})))


@dataclass(slots=True, kw_only=True)
class _Objects:
    """Objects of the cluster's API, reduced."""

    nodes: list[Node] = field(default_factory=list)
    node_specs: list[NodeSpec] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    pod_specs: list[PodSpec] = field(default_factory=list)
    daemon_sets: list[str] = field(default_factory=list)
    daemon_specs: list[PodSpec] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)


def _read_objects(kubernetes: Kubernetes, *, specs_only: bool = False) -> _Objects:
    """Read storage and namespaces first: pods are parsed against them. `specs_only`: without the pods themselves."""
    with collector_paused():  # a fifth of the whole time; objects read from JSON hold no cycles
        return _read_all(kubernetes, specs_only=specs_only)


def _read_all(kubernetes: Kubernetes, *, specs_only: bool) -> _Objects:
    found = _Objects()
    volumes = kubernetes.read(Listed.VOLUMES, _volume)
    storage = Storage.from_json(
        kubernetes.read(Listed.CLAIMS, _claim), volumes, kubernetes.read(Listed.STORAGE_CLASSES, dict)
    )
    namespaces = dict(kubernetes.read(Listed.NAMESPACES, _named_labels))
    reader = PodReader(namespaces=namespaces, storage=storage)
    csi_nodes = {raw["metadata"]["name"]: raw for raw in kubernetes.read(Listed.CSI_NODES, _csi_node)}
    for node, node_spec in kubernetes.read(Listed.NODES, _NodeParser(csi_nodes=csi_nodes)):
        found.nodes.append(node)
        found.node_specs.append(node_spec)
    parse = _SnapshotPods(namespaces=namespaces, storage=storage, specs_only=specs_only, reader=reader)
    for pod, pod_spec in kubernetes.read(Listed.PODS, parse):
        if pod is not None:
            found.pods.append(pod)
        if pod_spec is not None:
            found.pod_specs.append(pod_spec)
    for raw in kubernetes.read(Listed.DAEMON_SETS, dict):
        found.daemon_sets.append(f"{raw['metadata'].get('namespace', 'default')}/{raw['metadata']['name']}")
        if "template" in (raw.get("spec") or {}):  # a list that was cut down may lack it, the API never does
            found.daemon_specs.append(reader.daemon(raw))
        if found.daemon_sets[-1] == DAEMON_SET:
            found.variables.update(variables_of(raw))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeParser:
    """Parser of a raw node, with its CSINode. Equal parsers give equal results."""

    csi_nodes: Mapping[str, Mapping[str, Any]]

    def __call__(self, raw: Mapping[str, Any]) -> tuple[Node, NodeSpec]:
        node = Node.from_json(raw)
        try:
            return node, NodeSpec.from_json(raw, self.csi_nodes.get(node.name))
        except InvalidInputError:
            return node, NodeSpec.unread(raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SnapshotPods:
    """Parser of a raw pod: no Pod where only specs are requested, no PodSpec of a finished pod. Equal parsers give
    equal results; `reader` reads against the same namespaces and storage.
    """

    namespaces: Mapping[str, Mapping[str, str]]
    storage: Storage
    specs_only: bool
    reader: PodReader = field(compare=False)

    def __call__(self, raw: Mapping[str, Any]) -> tuple[Pod | None, PodSpec | None]:
        pod = None if self.specs_only else Pod.from_json(raw)
        if text(mapping(raw.get("status")).get("phase")) in FINISHED:
            return pod, None
        try:
            return pod, self.reader.read(raw)
        except InvalidInputError as error:
            spec = self.reader.unread(raw, error)
            return pod and replace(pod, beyond_limit=spec.needs.beyond_limit), spec


class _Launches:
    """Launches that the selected groups allow, before prices are known."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        selected: Mapping[str, NodePolicy],
        instances: Mapping[str, Instance],
        facts: LaunchFacts,
    ) -> None:
        self.looked: dict[str, Looked] = {}
        running: set[str] = set()
        for name, policy in selected.items():
            mine = {instances[one.id].type for one in groups[name].instances if one.id in instances}
            mine = {*mine, *groups[name].running_types} - {""}
            self.looked[name] = looked_up(groups[name], policy, facts, mine)
            running |= mine
        self.types = sorted(running.union(*(found.choices.types for found in self.looked.values())))
        self.zones = sorted({subnet.zone for subnet in facts.subnets.values()})


def known_prices(
    price_list: PriceList,
    catalog: Catalog,
    cluster: str,
    types: Iterable[str],
    zones: Iterable[str],
    now: datetime,
) -> tuple[Prices, list[str]]:
    """Return the prices that function sync has recorded, and a warning for each that cannot be read; missing ones are
    requested. Without a price list nothing is known to be cheaper; without the right to see spot prices those on demand
    stay.
    """
    wanted, warnings = set(types), list[str]()
    known = Prices()
    try:
        known = ClusterFacts.from_sheets(catalog.read(cluster)).prices
    except ObjectGoneError:
        pass  # nothing is deployed: all prices are requested
    except LeewardError as error:
        warnings.append(f"what fn sync has written down cannot be read: {error}")
    on_demand, spot = dict(known.on_demand), dict(known.spot)
    unpriced, unpriced_spot = wanted - on_demand.keys(), wanted - spot.keys()
    try:
        on_demand |= price_list.on_demand(unpriced) if unpriced else {}
    except LeewardError as error:
        return known, [*warnings, f"prices cannot be read: {error}"]
    try:
        spot |= price_list.spot(unpriced_spot, zones, now) if unpriced_spot else {}
    except LeewardError as error:
        warnings.append(f"spot prices cannot be read: {error}")
    return Prices(on_demand=on_demand, spot=spot), warnings


def _shifts(cluster: str, catalog: Catalog, warnings: list[str]) -> ZonalShifts:
    """Return the zonal shifts. Without the table, or the permission to read it, none is known; raises any other error,
    because a plan must not remove a node in a shifted zone.
    """
    try:
        return catalog.zonal_shifts(cluster)
    except NotDeployedError:
        return NOT_SHIFTED  # a command that reads the records says it, once
    except (AccessDeniedError, ObjectGoneError) as error:
        warnings.append(f"whether a zonal shift is in effect cannot be read: {error}")
        return NOT_SHIFTED


def _claimed(claims: Claims, warnings: list[str]) -> Facet[frozenset[str]]:
    def note(error: LeewardError) -> None:
        if not isinstance(error, NotDeployedError):
            warnings.append(f"whether terminations are under way cannot be read: {error}")

    return load(lambda: frozenset(claims.open_instances()), note)


def _volume(raw: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("nodeAffinity", "csi", "awsElasticBlockStore")
    spec, meta = mapping(raw.get("spec")), metadata_of(raw, "persistentvolume")
    named = {"name": meta["name"], "labels": texts(meta.get("labels"))}
    return {"metadata": named, "spec": {name: spec[name] for name in kept if spec.get(name)}}


def _claim(raw: Mapping[str, Any]) -> dict[str, Any]:
    meta, spec = metadata_of(raw, "persistentvolumeclaim"), mapping(raw.get("spec"))
    kept = {name: spec[name] for name in ("volumeName", "storageClassName") if text(spec.get(name))}
    return {"metadata": {"name": meta["name"], "namespace": text(meta.get("namespace"), "default")}, "spec": kept}


def _csi_node(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": metadata_of(raw, "csinode")["name"]}, "spec": raw.get("spec") or {}}


def _named_labels(raw: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    meta = metadata_of(raw, "namespace")
    return meta["name"], texts(meta.get("labels"))


def with_platforms(snapshot: ClusterSnapshot) -> tuple[PodSpec, ...]:
    """Return the snapshot's pods; those on a node that may be placed again have its platform as a requirement."""
    platforms = {node.name: _platform(snapshot, node) for node in snapshot.nodes}
    needs: dict[tuple[int, Platform], Needs] = {}  # one object for equal needs, as a reader gives it

    def placed(pod: PodSpec) -> PodSpec:
        system, architecture = platforms.get(pod.node, ("", ""))
        if pod.needs.nodes.keys & {ARCH, BETA[ARCH]}:
            architecture = ""
        if pod.stays or not (system or architecture):
            return pod
        key = id(pod.needs), (system, architecture)
        if key not in needs:
            wanted = tuple(
                LabelRequirement(key=label, operator=Operator.IN, values=(value,))
                for label, value in ((OS, system), (ARCH, architecture))
                if value
            )
            needs[key] = replace(pod.needs, platform=wanted)
        return replace(pod, needs=needs[key])

    return tuple(placed(pod) for pod in snapshot.pod_specs)


def _platform(snapshot: ClusterSnapshot, node: Node) -> Platform:
    policy, group = snapshot.policy_of_node(node), snapshot.group_of(node)
    launchable = snapshot.launchables.get(group.name) if group else None
    launched = {one.labels.get(ARCH) for one in launchable.expected.values()} if launchable else set()
    free = len(launched) > 1 or (policy is not None and policy.disruption.architecture == ANY_ARCHITECTURE)
    return node.labels.get(OS, ""), "" if free else node.labels.get(ARCH, "")
