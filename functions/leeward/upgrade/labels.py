"""The labels that a new node of a self-managed group has to carry, or the gate stays closed (docs/features.md, U6).

Decides from what the version's user data passes to kubelet and from the group's tags for Cluster Autoscaler. A tag
is not binding: it counts where an old node carries its label, or where there is no old node to compare."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leeward.errors import LeewardError
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.node_template.tags import LABEL, tag_facts
from leeward.node_template.user_data import kubelet_settings
from leeward.ports.compute import LaunchSources
from leeward.upgrade.members import Target
from leeward.upgrade.record import UpgradeRecord


def labelled(record: UpgradeRecord, group: Group, nodes: Iterable[Node], launches: LaunchSources) -> UpgradeRecord:
    """Return the record with the labels of its target, and of the one before, to which a rollback returns."""
    if record.target.nodegroup is not None:
        return record
    members = {one.id for one in group.instances}
    old = [node for node in nodes if node.instance_id in members]
    previous = record.previous
    return replace(
        record,
        target=_with_labels(record.target, group, old, launches),
        previous=_with_labels(previous, group, old, launches) if previous is not None else None,
    )


def _with_labels(target: Target, group: Group, old: Iterable[Node], launches: LaunchSources) -> Target:
    known = [node.labels for node in old]
    tagged = tag_facts({key: value for key, value in group.tags.items() if key.startswith(LABEL)}).labels
    with_control = {key: value for key, value in tagged.items() if not known or any(key in labels for labels in known)}
    return replace(target, node_labels={**_of_user_data(target, group, launches), **with_control})


def _of_user_data(target: Target, group: Group, launches: LaunchSources) -> Mapping[str, str]:
    """Return the labels in the user data. Empty where some instance types come from templates of their own, and where
    the template cannot be read; labels that only a script on the instance knows are missing.
    """
    if target.template is None or target.overrides:
        return {}
    launched = replace(group, launch=replace(group.launch, template=target.template))
    try:
        settings = launches.settings(launched)
    except LeewardError:
        return {}
    return kubelet_settings(settings.user_data).labels if settings is not None and settings.user_data else {}
