"""Node that a group would launch next, built from group, launch template, DescribeNodegroup and tags.

Decides which source wins where several name the same key (docs/policy.md, `template.precedence`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.model.nodegroup import Nodegroup
from leeward.model.quantity import written
from leeward.node_template import labels
from leeward.node_template.choices import Choices, architecture_of, is_windows, narrowed
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.pods import NO_CNI_SETTINGS, Networking
from leeward.node_template.resources import Resources, resources_of
from leeward.node_template.tags import TagFacts, resources, tag_facts
from leeward.node_template.user_data import kubelet_settings

TAGS_WIN, API_WINS = "asg-tags", "eks-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Known data of a group. `launch` None: its template could not be read; `nodegroup` None: self-managed, or
    DescribeNodegroup failed; `types`: instance types by name; `networking`: the VPC CNI's settings.
    """

    group: Group
    choices: Choices
    launch: LaunchSettings | None = None
    nodegroup: Nodegroup | None = None
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    networking: Networking = NO_CNI_SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedNode:
    """Node that does not exist yet. Amounts as `leeward.model.quantity` counts them; without cpu and memory where the
    instance type is not known, so that no pod seems to fit. `warnings`: assumptions and skipped inputs.
    """

    name: str
    group: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a Node object as `kubectl get node -o json` shows one (docs/schema/template.json); it is Ready."""
        taints = [
            {"key": one.key, **({"value": one.value} if one.value else {}), "effect": one.effect} for one in self.taints
        ]
        spec = {"taints": taints} if taints else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(sorted(self.labels.items()))},
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
    unread = f"the launch template of {sources.group.name} is not known: EKS' defaults are taken"
    return ExpectedNode(
        name=name,
        group=sources.group.name,
        labels=_labels(sources, launch, kubelet, tags, name, precedence),
        taints=_taints(sources.nodegroup, kubelet, tags, precedence),
        capacity=capacity,
        allocatable=allocatable,
        warnings=(
            *(() if sources.launch else (unread,)),
            *sources.choices.warnings,
            *tags.warnings,
            *kubelet.warnings,
            *found.warnings,
        ),
    )


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
    """Return the user data's settings; EKS' image type gives the family."""
    found = kubelet_settings(launch.user_data)
    nodegroup = sources.nodegroup
    if is_windows(nodegroup):
        return replace(found, family=Family.WINDOWS)
    if nodegroup is not None and nodegroup.ami_type.startswith("BOTTLEROCKET"):
        return replace(found, family=Family.BOTTLEROCKET)
    return found


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


def _computed_by_eks(sources: Sources) -> bool:
    """Return whether EKS writes the user data: it does for a managed group unless the launch template has an image of
    its own, which only DescribeNodegroup shows.
    """
    custom = sources.nodegroup is not None and sources.nodegroup.ami_type == "CUSTOM"
    return sources.group.nodegroup is not None and not custom


def _tagged(
    found: Resources, sources: Sources, tags: TagFacts, precedence: str
) -> tuple[dict[str, int], dict[str, int]]:
    """Return capacity and allocatable with the tags' resources, which are both, as in Cluster Autoscaler."""
    of_nodegroup = resources(sources.nodegroup.tags) if sources.nodegroup else {}
    tagged = _merged(tags.resources, of_nodegroup, precedence)
    return {**found.capacity, **tagged}, {**found.allocatable, **tagged}


def _labels(
    sources: Sources, launch: LaunchSettings, kubelet: KubeletSettings, tags: TagFacts, name: str, precedence: str
) -> dict[str, str]:
    chosen, nodegroup = sources.choices, sources.nodegroup
    known = chosen.types and chosen.minima is None
    kind = sources.types.get(chosen.types[0]) if known else None
    architecture = kind.architectures[0] if kind and kind.architectures else architecture_of(nodegroup)
    generic = labels.generic(
        name=name,
        zone=chosen.zones[0] if chosen.zones else "",
        instance_type=chosen.types[0] if known else "",
        architecture=architecture or "",
        system="windows" if kubelet.family is Family.WINDOWS else "linux",
    )
    managed = labels.of_managed_group(sources.group, launch, chosen.capacity)
    of_nodegroup = labels.of_nodegroup(nodegroup) if nodegroup else {}
    return {**generic, **kubelet.labels, **managed, **_merged(tags.labels, of_nodegroup, precedence)}


def _merged(tags: Mapping[str, Any], api: Mapping[str, Any], precedence: str) -> dict[str, Any]:
    return {**tags, **api} if precedence == API_WINS else {**api, **tags}


def _taints(
    nodegroup: Nodegroup | None, kubelet: KubeletSettings, tags: TagFacts, precedence: str
) -> tuple[Taint, ...]:
    """Join the taints. Those of the user data are dropped where DescribeNodegroup or a tag names their key: EKS itself
    writes the node group's there.
    """
    api = nodegroup.taints if nodegroup else ()
    if precedence != API_WINS:
        api = _without(api, tags.taints)
    taints = (*tags.taints, *api)
    return tuple(dict.fromkeys((*taints, *_without(kubelet.taints, taints))))


def _without(taints: Sequence[Taint], winners: Sequence[Taint]) -> tuple[Taint, ...]:
    taken = {taint.key for taint in winners}
    return tuple(taint for taint in taints if taint.key not in taken)


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: written(name, value) for name, value in amounts.items()}
