"""Node that a group would launch next, built from group, launch template, DescribeNodegroup and tags.

Decides which source wins where several name the same key (docs/policy.md, `template.precedence`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.model.nodegroup import Nodegroup
from leeward.model.quantity import CPU, MEMORY, written
from leeward.node_template import labels, provenance
from leeward.node_template.choices import Choices, architecture_of, is_windows, narrowed
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.labels import LABEL, TAINT, TagFacts, resources, tag_facts
from leeward.node_template.observed import Observed
from leeward.node_template.provenance import Attribute, Origins, Provenance, weakest
from leeward.node_template.resources import NO_CNI_SETTINGS, Networking, Resources, resources_of
from leeward.node_template.user_data import kubelet_settings

TAGS_WIN, API_WINS = "asg-tags", "eks-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Known data of a group. `launch` None: its template could not be read; `nodegroup` None: self-managed, or
    DescribeNodegroup failed; `image`: of the group's own template, None where it is not needed or not known; `types`:
    instance types by name; `networking`: the VPC CNI's settings; `zone_ids`: by zone, of the group's subnets;
    `observed`: on nodes that were launched alike, None where there are none.
    """

    group: Group
    choices: Choices
    launch: LaunchSettings | None = None
    nodegroup: Nodegroup | None = None
    image: Image | None = None
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    networking: Networking = NO_CNI_SETTINGS
    zone_ids: Mapping[str, str] = field(default_factory=dict)
    observed: Observed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedNode:
    """Node that does not exist yet. Amounts as `leeward.model.quantity` counts them; without cpu and memory where the
    instance type is not known, so that no pod seems to fit.
    """

    name: str
    group: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    warnings: tuple[str, ...] = ()  # assumptions and skipped inputs
    provenance: Origins = field(default_factory=dict)  # how far each group of attributes can be relied on
    # those that only nodes of a zone are known to carry
    zone_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    estimated: frozenset[str] = frozenset()  # keys of labels that a script alone promises
    contradicted: frozenset[str] = frozenset()  # those of them of which a tag and the user data name different values

    def to_json(self) -> dict[str, Any]:
        """Return a Node object as `kubectl get node -o json` shows one (docs/schema/template.json); it is Ready."""
        taints = [
            {"key": one.key, **({"value": one.value} if one.value else {}), "effect": one.effect} for one in self.taints
        ]
        spec = {"taints": taints} if taints else {}
        noted = {"annotations": {provenance.ANNOTATION: provenance.written(self.provenance)}} if self.provenance else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(sorted(self.labels.items())), **noted},
            "spec": spec,
            "status": {
                "capacity": _written(self.capacity),
                "allocatable": _written(self.allocatable),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }


def expected_node(sources: Sources, precedence: str = TAGS_WIN) -> ExpectedNode:
    """Return the node of the first type and zone of `sources.choices`.

    `asg-tags`: where a tag of the group and DescribeNodegroup name the same label, taint key or resource, the tag wins.
    `eks-api`, as Cluster Autoscaler does it today: the label and the resource tag of DescribeNodegroup win, taints of
    both are joined.
    """
    tags = tag_facts(sources.group.tags)
    launch = sources.launch or LaunchSettings()
    kubelet = _kubelet(sources, launch)
    found = _resources(sources, launch, kubelet)
    capacity, allocatable = _tagged(found, sources, tags, precedence)
    name = labels.node_name(sources.group.name)
    origins = _origins(sources, kubelet, tags)
    node_labels = _labels(sources, launch, kubelet, tags, name, precedence)
    taints = _taints(sources.nodegroup, kubelet, tags, precedence)
    seen, zone_labels = sources.observed, dict[str, Mapping[str, str]]()
    if seen is not None:
        capacity, allocatable = seen.amounts(capacity, allocatable)
        taints = tuple(dict.fromkeys((*taints, *seen.taints)))
        guessed = {**kubelet.labels, **tags.labels} if origins[Attribute.LABELS] is not Provenance.DECLARED else {}
        node_labels = seen.corrected(node_labels, guessed)
        unclear = {attribute for attribute, origin in kubelet.provenance.items() if origin is Provenance.UNKNOWN}
        origins |= {attribute: Provenance.OBSERVED for attribute in Attribute if attribute not in unclear}
        if Attribute.LABELS not in unclear:
            node_labels = {**seen.labels, **node_labels}
            zone_labels = dict(seen.by_zone)
    return ExpectedNode(
        name=name,
        group=sources.group.name,
        labels=node_labels,
        taints=taints,
        capacity=capacity,
        allocatable=allocatable,
        warnings=(*_warnings(sources, kubelet, tags, precedence), *found.warnings),
        provenance=origins,
        zone_labels=zone_labels,
        estimated=_estimated(sources, kubelet, tags, node_labels),
        contradicted=frozenset(_contradicted(kubelet, tags)),
    )


def _warnings(sources: Sources, kubelet: KubeletSettings, tags: TagFacts, precedence: str) -> Iterator[str]:
    """Yield what could not be read, and what contradicts, in the order of the sources."""
    if sources.launch is None:
        configuration = sources.group.launch.configuration
        source = f"launch configuration {configuration}" if configuration else "the launch template"
        yield f"{source} of {sources.group.name} is not known: EKS' defaults are taken"
    yield from (*sources.choices.warnings, *tags.warnings, *kubelet.warnings)
    yield from _contradictions(sources, kubelet, tags)
    yield from _over_eks(sources, tags, precedence)
    yield from _unrecognised(sources, sources.launch or LaunchSettings(), kubelet)


def unknown_type(sources: Sources) -> str:
    """Return the instance type that the template needs and does not know; empty where it is known or none is named."""
    names = sources.choices.types
    return names[0] if names and sources.choices.minima is None and names[0] not in sources.types else ""


def expected_nodes(sources: Sources, precedence: str = TAGS_WIN) -> Iterator[ExpectedNode]:
    """Yield the node of each type that the group can launch, in the first zone: pods that must fit on a launch have to
    fit on every one of them.
    """
    for name in sources.choices.types:
        yield expected_node(replace(sources, choices=narrowed(sources.choices, instance_type=name)), precedence)


def _kubelet(sources: Sources, launch: LaunchSettings) -> KubeletSettings:
    """Return the user data's settings; EKS' image type gives the family, and EC2's platform that of Windows."""
    nodegroup = sources.nodegroup
    nodeadm = nodegroup is not None and nodegroup.ami_type.startswith("AL2023")
    found = kubelet_settings(launch.user_data, nodeadm=nodeadm)
    if is_windows(nodegroup) or (_own_image(sources) and sources.image and sources.image.windows):
        return replace(found, family=Family.WINDOWS)
    if nodegroup is not None and nodegroup.ami_type.startswith("BOTTLEROCKET"):
        return replace(found, family=Family.BOTTLEROCKET)
    return found


def _own_image(sources: Sources) -> bool:
    """Return whether the image is the one that launches: an override may bring a template, and an image, of its own."""
    return bool(sources.image and sources.launch and sources.launch.image == sources.image.id)


def _resources(sources: Sources, launch: LaunchSettings, kubelet: KubeletSettings) -> Resources:
    names, minima = sources.choices.types, sources.choices.minima
    known = [minima] if minima else [sources.types[name] for name in names if name in sources.types]
    if not known or (minima is None and names[0] not in sources.types):
        why = (f"instance type {names[0]} is not known: neither cpu nor memory is shown",) if names else ()
        return Resources(warnings=why)
    return resources_of(
        known,
        kubelet,
        launch,
        networking=sources.networking,
        disk_gib=sources.nodegroup.disk_gib if sources.nodegroup else None,
        computed_by_eks=_computed_by_eks(sources),
    )


def _unrecognised(sources: Sources, launch: LaunchSettings, kubelet: KubeletSettings) -> tuple[str, ...]:
    """Return the warning that nothing in the user data sets up kubelet, where EKS adds nothing to it."""
    if kubelet.recognised or not launch.user_data or _computed_by_eks(sources):
        return ()
    return (
        "user data: nothing in it was recognised: labels, taints, reserved resources and the maximum of pods are "
        "unknown, EKS' defaults are taken",
    )


def _origins(sources: Sources, kubelet: KubeletSettings, tags: TagFacts) -> dict[Attribute, Provenance]:
    """Return the origin of each group of attributes: the least reliable of those that contribute."""
    of_api = Provenance.DECLARED if sources.nodegroup else Provenance.ESTIMATED  # else the tags alone
    told = of_api if _computed_by_eks(sources) else Provenance.DECLARED if kubelet.recognised else Provenance.UNKNOWN
    origins = {attribute: weakest(told, kubelet.provenance.get(attribute, told)) for attribute in provenance.KUBELET}
    if Attribute.MAX_PODS not in kubelet.provenance:
        origins[Attribute.MAX_PODS] = weakest(told, Provenance.ESTIMATED)  # the formula of the interfaces
    for attribute, tagged in ((Attribute.LABELS, tags.labels), (Attribute.TAINTS, tags.taints)):
        if tagged and sources.nodegroup is None:
            origins[attribute] = weakest(origins[attribute], Provenance.ESTIMATED)
    kind = _kind(sources)
    origins[Attribute.CAPACITY] = _of_capacity(sources, kubelet, kind)
    if kind is None and sources.choices.minima is None:
        origins[Attribute.MAX_PODS] = Provenance.UNKNOWN
    declares = sources.nodegroup is not None and architecture_of(sources.nodegroup) is not None
    named = declares or kubelet.family is not None or _own_image(sources)
    origins[Attribute.OS] = Provenance.DECLARED if named else Provenance.ESTIMATED
    known = declares or (kind is not None and kind.architectures)
    origins[Attribute.ARCHITECTURE] = sources.choices.architecture if known else Provenance.UNKNOWN
    return origins


def _of_capacity(sources: Sources, kubelet: KubeletSettings, kind: InstanceType | None) -> Provenance:
    """Return the origin of the capacity: EC2 declares that of a type, less what user data says."""
    if kind is None or not kind.memory_mib:
        return Provenance.ESTIMATED if sources.choices.minima else Provenance.UNKNOWN
    unread = not kubelet.recognised and not _computed_by_eks(sources)
    told = Provenance.ESTIMATED if unread else Provenance.DECLARED
    return weakest(told, kubelet.provenance.get(Attribute.CAPACITY, told))


def _kind(sources: Sources) -> InstanceType | None:
    """Return the type that stands for all; None where it is not known."""
    names = sources.choices.types
    return sources.types.get(names[0]) if names and sources.choices.minima is None else None


def _computed_by_eks(sources: Sources) -> bool:
    """Return whether EKS writes the user data: it does for a managed group unless the launch template has an image of
    its own, which only DescribeNodegroup shows.
    """
    custom = sources.nodegroup is not None and sources.nodegroup.ami_type == "CUSTOM"
    return sources.group.nodegroup is not None and not custom


def _tagged(
    found: Resources, sources: Sources, tags: TagFacts, precedence: str
) -> tuple[dict[str, int], dict[str, int]]:
    """Return capacity and allocatable with the tags' resources, which are both, as in Cluster Autoscaler. No tag gives
    a node more cpu or memory than EC2 says that its type has.
    """
    of_nodegroup = resources(sources.nodegroup.tags) if sources.nodegroup else {}
    tagged = _merged(tags.resources, of_nodegroup, precedence)

    def joined(amounts: Mapping[str, int]) -> dict[str, int]:
        most = {name: min(value, amounts.get(name, value)) for name, value in tagged.items() if name in (CPU, MEMORY)}
        return {**amounts, **tagged, **most}

    return joined(found.capacity), joined(found.allocatable)


def _labels(
    sources: Sources, launch: LaunchSettings, kubelet: KubeletSettings, tags: TagFacts, name: str, precedence: str
) -> dict[str, str]:
    chosen, nodegroup = sources.choices, sources.nodegroup
    known = chosen.types and chosen.minima is None
    kind = _kind(sources)
    architecture = kind.architectures[0] if kind and kind.architectures else architecture_of(nodegroup)
    generic = labels.generic(
        name=name,
        zone=chosen.zones[0] if chosen.zones else "",
        instance_type=chosen.types[0] if known else "",
        architecture=architecture or "",
        system="windows" if kubelet.family is Family.WINDOWS else "linux",
        zone_id=sources.zone_ids.get(chosen.zones[0], "") if chosen.zones else "",
    )
    managed = labels.of_managed_group(sources.group, launch, chosen.capacity)
    of_nodegroup = labels.of_nodegroup(nodegroup) if nodegroup else {}
    return {**generic, **kubelet.labels, **managed, **_merged(tags.labels, of_nodegroup, precedence)}


def _estimated(
    sources: Sources, kubelet: KubeletSettings, tags: TagFacts, node_labels: Mapping[str, str]
) -> frozenset[str]:
    """Return the keys of the node's labels that a script alone promises: no format that is read as such, no tag, not
    EKS, and not all nodes that were launched alike. So is a label of which tag and user data name different values.
    """
    declared = {**tags.labels, **(labels.of_nodegroup(sources.nodegroup) if sources.nodegroup else {})}
    common = sources.observed.common if sources.observed is not None else frozenset()
    promised = set(_contradicted(kubelet, tags))
    if kubelet.provenance.get(Attribute.LABELS, Provenance.DECLARED) is not Provenance.DECLARED:
        promised |= kubelet.labels.keys() - declared.keys()
    return frozenset(key for key, value in node_labels.items() if key in promised and (key, value) not in common)


def _contradicted(kubelet: KubeletSettings, tags: TagFacts) -> list[str]:
    """Return the keys of labels of which a tag names another value than the user data, which kubelet takes."""
    return sorted(key for key, value in tags.labels.items() if kubelet.labels.get(key, value) != value)


def _contradictions(sources: Sources, kubelet: KubeletSettings, tags: TagFacts) -> Iterator[str]:
    """Yield a warning for each tag of the group that its user data or its instance type contradicts."""
    for key in _contradicted(kubelet, tags):
        values = f"{tags.labels[key]!r} and the user data {kubelet.labels[key]!r}"
        yield f"tag {LABEL}{key}: it names {values}: a pod that needs either is not planned there; make them the same"
    for taint in tags.taints:
        others = [one for one in kubelet.taints if one.key == taint.key and one != taint]
        if others and sources.nodegroup is None:
            yield f"tag {TAINT}{taint.key}: the user data sets another taint of this key, both count: make them one"


def _over_eks(sources: Sources, tags: TagFacts, precedence: str) -> Iterator[str]:
    """Yield a warning for each tag that wins over what EKS puts on the node group's nodes (`template.precedence`)."""
    if sources.nodegroup is None or precedence == API_WINS:
        return
    gives = labels.of_nodegroup(sources.nodegroup)
    names = [LABEL + key for key, value in tags.labels.items() if gives.get(key, value) != value]
    for taint in tags.taints:
        of_key = [one for one in sources.nodegroup.taints if one.key == taint.key]
        names += [TAINT + taint.key] if of_key and taint not in of_key else []
    for name in names:
        yield f"tag {name}: it wins over another value of node group {sources.nodegroup.name}, which EKS puts on nodes"


def _merged(tags: Mapping[str, Any], api: Mapping[str, Any], precedence: str) -> dict[str, Any]:
    return {**tags, **api} if precedence == API_WINS else {**api, **tags}


def _taints(
    nodegroup: Nodegroup | None, kubelet: KubeletSettings, tags: TagFacts, precedence: str
) -> tuple[Taint, ...]:
    """Join the taints. Those of the user data are dropped where DescribeNodegroup names their key: EKS itself writes
    the node group's there. A tag changes no taint that the user data sets: both count where they differ.
    """
    api = nodegroup.taints if nodegroup else ()
    shown = api if precedence == API_WINS else _without(api, tags.taints)
    return tuple(dict.fromkeys((*tags.taints, *shown, *_without(kubelet.taints, api))))


def _without(taints: Sequence[Taint], winners: Sequence[Taint]) -> tuple[Taint, ...]:
    taken = {taint.key for taint in winners}
    return tuple(taint for taint in taints if taint.key not in taken)


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: written(name, value) for name, value in amounts.items()}
