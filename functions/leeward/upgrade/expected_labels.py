"""Labels that a new node of a self-managed group has to carry, or the gate stays closed (docs/features.md, U6).

A label that no node gets keeps the gate closed for good, so only facts count: labels that the version's
user data declares (NodeConfig, TOML), and labels that its script or the group's tags name where every old node that
booted with the same user data carries them. Others are reported by pre-flight and not waited for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from leeward.errors import LeewardError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.model.node import Node
from leeward.node_template.provenance import Attribute, Provenance
from leeward.node_template.tags import LABEL, tag_facts
from leeward.node_template.user_data import kubelet_settings
from leeward.ports.compute import LaunchSources
from leeward.upgrade.members import Target
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.record import UpgradeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedLabels:
    """Labels of a target's nodes. `required`: the gate waits for them; `unproven`: named by a script or a tag, without
    an old node to show that a node gets them; `unclear`: whether the user data gives labels that cannot be known.
    """

    required: Mapping[str, str] = field(default_factory=dict)
    unproven: Mapping[str, str] = field(default_factory=dict)
    unclear: bool = False


def are_overridden(record: UpgradeRecord) -> bool:
    """Return whether the start, or one that continues it, lets nodes without their labels pass."""
    return Code.LABELS_MISSING.value in record.request.overrides


def labelled(record: UpgradeRecord, group: Group, nodes: Iterable[Node], launches: LaunchSources) -> UpgradeRecord:
    """Return the record with the labels of its target; without any where they are overridden. The version before has
    none: a label that its nodes lack is no reason to fail a rollback.
    """
    if record.target.nodegroup is not None:
        return record
    labels = {} if are_overridden(record) else expected_labels(record.target, group, nodes, launches).required
    return replace(record, target=replace(record.target, node_labels=labels))


def expected_labels(target: Target, group: Group, nodes: Iterable[Node], launches: LaunchSources) -> ExpectedLabels:
    """Return the labels. Nothing is known of the user data where some instance types come from templates of their own,
    and where the template cannot be read. A target whose version is yet to be made is like the group's template.
    """
    tagged = tag_facts({key: value for key, value in group.tags.items() if key.startswith(LABEL)}).labels
    several = target.overrides or target.by_requirements
    user_data = None if several else _user_data(group, target.template or group.launch.template, launches)
    if user_data is None:
        return ExpectedLabels(unproven=tagged)
    settings = kubelet_settings(user_data)
    origin = settings.provenance.get(Attribute.LABELS, Provenance.ESTIMATED)
    declared = settings.labels if origin is Provenance.DECLARED else {}
    guessed = {key: value for key, value in {**tagged, **settings.labels}.items() if key not in declared}
    if origin is Provenance.UNKNOWN:
        return ExpectedLabels(unproven=guessed, unclear=True)
    shown = _shown(user_data, target, group, nodes, launches) if guessed else {}
    proven = {key: value for key, value in guessed.items() if shown.get(key) == value}
    unproven = {key: value for key, value in guessed.items() if key not in proven}
    return ExpectedLabels(required={**declared, **proven}, unproven=unproven)


def _shown(
    user_data: str, target: Target, group: Group, nodes: Iterable[Node], launches: LaunchSources
) -> Mapping[str, str]:
    """Return the labels that all old nodes carry which booted with the same user data."""
    by_instance = {node.instance_id: node for node in nodes}
    same: dict[LaunchTemplateRef, bool] = {}
    shared: set[tuple[str, str]] | None = None
    for member in group.instances:
        node, template = by_instance.get(member.id), member.template
        if node is None or template is None or template == target.template:
            continue
        if template not in same:
            same[template] = _user_data(group, template, launches) == user_data
        if same[template]:
            labels = set(node.labels.items())
            shared = labels if shared is None else shared & labels
    return dict(shared or ())


def _user_data(group: Group, template: LaunchTemplateRef | None, launches: LaunchSources) -> str | None:
    """Return the user data of the template; None where it cannot be read or is gone."""
    if template is None:
        return None
    try:
        settings = launches.settings(replace(group, launch=replace(group.launch, template=template)))
    except LeewardError:
        return None
    return settings.user_data if settings is not None else None
