"""Drift detection: whether a node has drifted, since when, and the fix; and the annotations that record it on the node.

A node is replaced for drift only where a node that its group would launch now is in order in every field; else the
group itself is outdated, and the fix is an upgrade (docs/features.md, K15)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leeward.drift.desired import of_desired, of_requirements, registers, would_drift
from leeward.drift.launched import of_hidden, of_instance
from leeward.drift.reasons import Field, Reason
from leeward.drift.template_hash import fields_of, read, written
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.times import format_instant, parse_instant
from leeward.policy.document import NodePolicy
from leeward.snapshot.cluster import ClusterSnapshot


class Remedy(StrEnum):
    """Fix of a drifted node; `none`: it has not drifted, or drift is switched off."""

    REPLACE = "replace"
    UPGRADE = "upgrade"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Drift of one node. `since`: when it was first observed, None while it is in order."""

    node: str
    reasons: tuple[Reason, ...] = ()
    since: datetime | None = None
    remedy: Remedy = Remedy.NONE

    @property
    def drifted(self) -> bool:
        """True if the node differs in at least one field."""
        return bool(self.reasons)

    @property
    def summary(self) -> str:
        """Sentence about the drift."""
        fields = dict.fromkeys(reason.field.value for reason in self.reasons)
        return f"it has drifted in {', '.join(fields)}"


def drift_of(snapshot: ClusterSnapshot, node: Node) -> Drifted:
    """Return the drift of one node; a node of no selected group has no desired state to differ from."""
    policy = snapshot.policy_of_node(node)
    if policy is None:
        return Drifted(node=node.name)
    order = {field: place for place, field in enumerate(Field)}
    found = sorted(_reasons(snapshot, node, policy), key=lambda one: (order[one.field], one.want, one.have))
    reasons = tuple(dict.fromkeys(found))
    if not reasons:
        return Drifted(node=node.name)
    return Drifted(
        node=node.name,
        reasons=reasons,
        since=_since(node) or snapshot.now,
        remedy=_remedy(snapshot, node, policy, reasons) if watches(snapshot, policy) else Remedy.NONE,
    )


def all_drift(snapshot: ClusterSnapshot) -> tuple[Drifted, ...]:
    """Return the drift of every node, by name."""
    return tuple(drift_of(snapshot, node) for node in sorted(snapshot.nodes, key=lambda node: node.name))


def watches(snapshot: ClusterSnapshot, policy: NodePolicy) -> bool:
    """Return whether drift is on for the cluster and for the policy."""
    return snapshot.policies.settings.drift and policy.disruption.drift


def annotations(snapshot: ClusterSnapshot, node: Node, drift: Drifted) -> dict[str, str | None]:
    """Return the annotations that the node should carry, None: absent. `drift`: the result of `drift_of`.

    A node without hashes of this version, or without some of them, gets those of its own launch template version, where
    that can be read, else the current ones: unknown is not drifted.
    """
    policy = snapshot.policy_of_node(node)
    if policy is None:
        return {}
    wanted: dict[str, str | None] = {well_known.DRIFTED_SINCE: None, well_known.DRIFT_REASONS: None}
    if drift.since is not None and watches(snapshot, policy):
        fields = dict.fromkeys(reason.field.value for reason in drift.reasons)
        wanted = {well_known.DRIFTED_SINCE: format_instant(drift.since), well_known.DRIFT_REASONS: ",".join(fields)}
    return wanted | written({**_launched_with(snapshot, node, policy), **(read(node.annotations) or {})})


def _launched_with(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> dict[Field, str]:
    group = snapshot.group_of(node)
    launchable = snapshot.launchables.get(group.name) if group else None
    now = launchable.launch_of(snapshot.type_of(node)) if launchable else None
    return fields_of(snapshot.launched_from.get(node.instance_id) or now, policy)


def _reasons(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> Iterable[Reason]:
    group, instance = snapshot.group_of(node), snapshot.instance_of(node)
    if group is None:
        return
    launchable = snapshot.launchables.get(group.name)
    launch = launchable.launch_of(snapshot.type_of(node)) if launchable else None
    expected = tuple(launchable.expected.values()) if launchable else ()
    if instance is not None:
        yield from of_instance(instance, group, launch)
    yield from of_requirements(snapshot, node, group, policy, launchable)
    yield from of_desired(node, policy, expected)
    then = snapshot.launched_from.get(node.instance_id)
    yield from of_hidden(node, policy, launch, then, registers=registers(policy, expected))


def _remedy(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy, reasons: Iterable[Reason]) -> Remedy:
    group = snapshot.group_of(node)
    launchable = snapshot.launchables.get(group.name) if group else None
    fixable = all(reason.fixable for reason in reasons) and not would_drift(policy, launchable)
    return Remedy.REPLACE if fixable else Remedy.UPGRADE


def _since(node: Node) -> datetime | None:
    try:
        return parse_instant(node.annotations.get(well_known.DRIFTED_SINCE, ""))
    except (ValueError, OverflowError):
        return None
