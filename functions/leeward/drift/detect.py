"""Drift detection: whether a node has drifted, since when, and the fix; and the annotations that record it on the node.

A node is replaced for drift only where a node that its group would launch now is in order in every field; else the
group itself is outdated, and the fix is an upgrade (docs/features.md, K15). Differences that launches are seen not to
fix are reported, and neither cause nor prevent a replacement (`evidence`)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leeward.drift.differences import lacks_of_new_nodes, of_desired, of_hidden, of_instance, of_requirements, registers
from leeward.drift.evidence import SHOWN, Evidence, remembered
from leeward.drift.reasons import DriftReason, Field
from leeward.drift.template_hash import fields_of, read, written
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.planning_memory import WantedLaunch
from leeward.model.times import format_instant, parse_instant
from leeward.policy.document import NodePolicy
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable, unread_launch

WRITTEN = "fn sync writes the annotations of the policy onto the node"


class Remedy(StrEnum):
    """Fix of a drifted node; `none`: it has not drifted, its launches are seen not to fix what differs or cannot be
    read, or drift is switched off.
    """

    REPLACE = "replace"
    UPGRADE = "upgrade"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Drift of one node."""

    node: str
    reasons: tuple[DriftReason, ...] = ()
    since: datetime | None = None  # when it was first observed, None while it is in order
    remedy: Remedy = Remedy.NONE
    # why it is not known what its group launches now, and the fix; only differences from its policy are reported then
    unread: str = ""
    upgrade: str = ""  # what has to change before an upgrade fixes it, empty unless the remedy is one

    def remedy_of(self, reason: DriftReason) -> Remedy:
        """Return the fix of one difference: none where a launch does not fix it, while the node's may fix others."""
        by_launch = not reason.proof and reason.field is not Field.ANNOTATIONS
        return self.remedy if reason.fixable or (by_launch and self.remedy is Remedy.UPGRADE) else Remedy.NONE

    @property
    def drifted(self) -> bool:
        """True if the node differs in at least one field."""
        return bool(self.reasons)

    @property
    def summary(self) -> str:
        """Sentence about the drift."""
        fields = dict.fromkeys(reason.field.value for reason in self.reasons if not reason.proof)
        fields = fields or dict.fromkeys(reason.field.value for reason in self.reasons)
        return f"it has drifted in {', '.join(fields)}"

    @property
    def not_fixed(self) -> str:
        """Sentence about the differences that launches are seen not to fix, empty where there are none."""
        proved = [reason for reason in self.reasons if reason.proof]
        if not proved:
            return WRITTEN if any(reason.field is Field.ANNOTATIONS for reason in self.reasons) else ""
        wants = ", ".join(f"{one.field.value} (wanted {one.want})" for one in proved)
        return f"a new node would differ too in {wants}: {proved[0].proof}"


def drift_of(snapshot: ClusterSnapshot, node: Node) -> Drifted:
    """Return the drift of one node; a node of no selected group has no desired state to differ from."""
    return _drift_of(snapshot, node, _evidence(snapshot))


def _evidence(snapshot: ClusterSnapshot) -> Evidence:
    order = {field: place for place, field in enumerate(Field)}

    def raw(node: Node) -> tuple[DriftReason, ...]:
        policy = snapshot.policy_of_node(node)
        found = _reasons(snapshot, node, policy) if policy is not None else ()
        return tuple(dict.fromkeys(sorted(found, key=lambda one: (order[one.field], one.want, one.have))))

    return Evidence(snapshot, raw)


def _drift_of(snapshot: ClusterSnapshot, node: Node, evidence: Evidence) -> Drifted:
    policy = snapshot.policy_of_node(node)
    if policy is None:
        return Drifted(node=node.name)
    reasons, unread = evidence.judged(node), _unread(snapshot, node)
    if not reasons:
        return Drifted(node=node.name, unread=unread)
    judged = not unread and watches(snapshot, policy)
    remedy = _remedy(snapshot, node, policy, reasons) if judged else Remedy.NONE
    return Drifted(
        node=node.name,
        reasons=reasons,
        since=min(_since(node) or snapshot.now, snapshot.now),
        remedy=remedy,
        unread=unread,
        upgrade=_before_upgrade(snapshot, node, policy, reasons) if remedy is Remedy.UPGRADE else "",
    )


def _unread(snapshot: ClusterSnapshot, node: Node) -> str:
    group, launchable = snapshot.group_of(node), _launchable(snapshot, node)
    if group is None or launchable is None:
        return ""
    found = unread_launch(group, launchable, snapshot.type_of(node))
    return str(found) if found is not None else ""


def all_drift(snapshot: ClusterSnapshot) -> tuple[Drifted, ...]:
    """Return the drift of every node, by name."""
    evidence = _evidence(snapshot)
    return tuple(_drift_of(snapshot, node, evidence) for node in sorted(snapshot.nodes, key=lambda node: node.name))


def wanted_launches(snapshot: ClusterSnapshot, drift: Iterable[Drifted]) -> dict[str, WantedLaunch]:
    """Return what is remembered about launches of every group in which drift is on. `drift`: of every node."""
    watched = [one for one in snapshot.selected if (policy := snapshot.policy_of(one)) and watches(snapshot, policy)]
    return remembered(snapshot, _evidence(snapshot), {one.node: one.reasons for one in drift}, watched)


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
    keys = (well_known.DRIFTED_SINCE, well_known.DRIFT_REASONS, well_known.DRIFT_NOT_FIXABLE)
    wanted: dict[str, str | None] = dict.fromkeys(keys)
    if drift.since is not None and watches(snapshot, policy):
        wanted[well_known.DRIFTED_SINCE] = format_instant(drift.since)
        wanted[well_known.DRIFT_REASONS] = _fields(drift.reasons)
        wanted[well_known.DRIFT_NOT_FIXABLE] = _fields(one for one in drift.reasons if one.proof) or None
    return wanted | written({**_launched_with(snapshot, node, policy), **(read(node.annotations) or {})})


def _fields(reasons: Iterable[DriftReason]) -> str:
    return ",".join(dict.fromkeys(reason.field.value for reason in reasons))


def _launched_with(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> dict[Field, str]:
    launchable = _launchable(snapshot, node)
    now = launchable.launch_of(snapshot.type_of(node)) if launchable else None
    return fields_of(snapshot.launched_from.get(node.instance_id) or now, policy)


def _reasons(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> Iterable[DriftReason]:
    group, instance = snapshot.group_of(node), snapshot.instance_of(node)
    if group is None:
        return
    launchable = snapshot.launchables.get(group.name)
    launch = launchable.launch_of(snapshot.type_of(node)) if launchable else None
    expected = tuple(launchable.expected.values()) if launchable else ()
    then = snapshot.launched_from.get(node.instance_id)
    if instance is not None:
        yield from of_instance(instance, group, launch, then)
    yield from of_requirements(snapshot, node, group, policy, launchable)
    yield from of_desired(node, policy, expected)
    yield from of_hidden(node, policy, launch, then, registers=registers(policy, expected))


def _remedy(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy, reasons: Iterable[DriftReason]) -> Remedy:
    reasons = [one for one in reasons if one.field is not Field.ANNOTATIONS and not (one.proof and one.field in SHOWN)]
    if not reasons:
        return Remedy.NONE
    fixable = all(reason.fixable for reason in reasons) and not lacks_of_new_nodes(policy, _launchable(snapshot, node))
    return Remedy.REPLACE if fixable else Remedy.UPGRADE


def _before_upgrade(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy, reasons: Iterable[DriftReason]) -> str:
    """Return what an upgrade to the present version does not fix: what the policy asks and no new node has, else the
    fields, such as startup taints, that its user data does not register.
    """
    fields = dict.fromkeys(one.field.value for one in reasons if not one.fixable and one.field is not Field.ANNOTATIONS)
    lacks = lacks_of_new_nodes(policy, _launchable(snapshot, node)) or tuple(fields)
    group = snapshot.group_of(node)
    named = group.name if group is not None else ""
    return (
        f"a new node of {named} would drift as well in {', '.join(lacks)}: change policy {policy.name}, or what "
        f"{named} launches; drift or leeward upgrade start {named} then replaces its nodes"
    )


def _launchable(snapshot: ClusterSnapshot, node: Node) -> Launchable | None:
    group = snapshot.group_of(node)
    return snapshot.launchables.get(group.name) if group else None


def _since(node: Node) -> datetime | None:
    try:
        return parse_instant(node.annotations.get(well_known.DRIFTED_SINCE, ""))
    except (ValueError, OverflowError):
        return None
