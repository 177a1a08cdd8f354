"""Evidence of what launches bring: a difference that a node launched under the wanted value shows as well is not fixed
by one more launch.

A comparison of an instance with its launch template is a guess about the next launch. Scripts rename instances, rules
of an account change their settings, an override names another image: then every new node differs, and replacing nodes
has no end (docs/designs/disruption.md, "Drift"). Two observations tell: a member that comes from the very launch
template version that the group launches now, for what that version alone decides; and a member that was launched after
the planner has seen the present wanted values, for everything. A difference that other members under the wanted values
do not show is a change of that node alone, which a launch does fix; unless another member showed it before: then
something changes the nodes of the group some time after their launch."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from leeward.drift.reasons import DriftReason, Field
from leeward.model.group import Group, GroupInstance
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node
from leeward.model.planning_memory import WantedLaunch
from leeward.model.times import format_instant
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable

HIDDEN = frozenset({Field.STARTUP_TAINTS, Field.USER_DATA, Field.KUBELET, Field.BLOCK_DEVICES})
UNPROVED = HIDDEN | {Field.ANNOTATIONS}  # of which no node proves anything: no launch gives annotations
SHOWN = frozenset(
    {
        Field.AMI,
        Field.SUBNETS,
        Field.SECURITY_GROUPS,
        Field.INSTANCE_PROFILE,
        Field.TAGS,
        Field.METADATA_OPTIONS,
        Field.DETAILED_MONITORING,
    }
)  # read from the instance itself
BY_VERSION = SHOWN - {Field.SUBNETS}  # decided by the launch template version alone, unless a parameter or tag is
SETTLES = timedelta(minutes=10)  # for which launches may still get the image that a parameter named before
YOUNG = timedelta(seconds=30)  # for which what EC2 reports of an instance may still be incomplete
MOST_PROOFS = 20  # of a group that are remembered
_TEMPLATE_TAGS = "k8s.io/cluster-autoscaler/node-template/"
_DIGITS = 12

Raw = Callable[[Node], Sequence[DriftReason]]  # the differences of a node, before any evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Difference:
    """Members under the wanted value that show one difference, and those that do not, each with how that is known."""

    showing: Mapping[str, str]
    matching: Mapping[str, str]


class Evidence:
    """Evidence of a whole snapshot, computed for a group when its first drifted node is judged."""

    def __init__(self, snapshot: ClusterSnapshot, raw: Raw) -> None:
        self._snapshot, self._raw = snapshot, raw
        self._reasons: dict[str, Sequence[DriftReason]] = {}
        self._known: dict[tuple[str, Field, str], _Difference] = {}
        self._wanted: dict[str, WantedLaunch | None] = {}
        self._listed: dict[str, GroupInstance] = {}
        self._members: dict[str, list[Node]] = defaultdict(list)
        for node in sorted(snapshot.nodes, key=lambda node: node.name):
            group = snapshot.group_of(node)
            if group is not None:
                self._members[group.name].append(node)

    def judged(self, node: Node) -> tuple[DriftReason, ...]:
        """Return the node's differences; those that a launch does not fix are not fixable and have their proof."""
        group = self._snapshot.group_of(node)
        reasons = self._of(node)
        if group is None:
            return tuple(reasons)
        return tuple(self._with_proof(node, group, reason) for reason in reasons)

    def _with_proof(self, node: Node, group: Group, reason: DriftReason) -> DriftReason:
        if reason.field in UNPROVED:
            return reason
        wanted = self._wanted_of(group)
        proof = wanted.proofs.get(key_of(reason), "") if wanted is not None else ""
        proof = proof or self._proof(node, group, reason)
        return replace(reason, fixable=False, proof=proof) if proof else reason

    def _wanted_of(self, group: Group) -> WantedLaunch | None:
        """Return what is remembered of the present wanted values, None where nothing is, or they have changed."""
        if group.name not in self._wanted:
            wanted = self._snapshot.wanted_launches.get(group.name)
            current = wanted is not None and wanted_digest(self._snapshot, group) in {"", wanted.digest}
            self._wanted[group.name] = wanted if current else None
            self._listed |= {member.id: member for member in group.instances}
        return self._wanted[group.name]

    def _proof(self, node: Node, group: Group, reason: DriftReason) -> str:
        found = self._difference(group, reason)
        other = next((how for name, how in found.showing.items() if name != node.name), "")
        if other:
            return other
        how, wanted = found.showing.get(node.name, ""), self._wanted_of(group)
        first = wanted.shown.get(key_of(reason), node.instance_id) if wanted is not None else node.instance_id
        if how and first != node.instance_id:
            return f"{how}, as {first} did before"
        return "" if found.matching else how

    def first_shown(self, group: Group) -> dict[str, str]:
        """Return the differences that members show although they were launched under the wanted value, by their key,
        with the instance of one of them.
        """
        shown: dict[str, str] = {}
        for node in self._members[group.name]:
            for reason in self._of(node):
                if reason.field not in UNPROVED and self._launched_under(node, group, reason):
                    shown.setdefault(key_of(reason), node.instance_id)
        return shown

    def _difference(self, group: Group, reason: DriftReason) -> _Difference:
        known = self._known.get((group.name, reason.field, reason.want))
        if known is None:
            showing: dict[str, str] = {}
            matching: dict[str, str] = {}
            for node in self._members[group.name]:
                how = self._launched_under(node, group, reason)
                if how:
                    shows = any((one.field, one.want) == (reason.field, reason.want) for one in self._of(node))
                    (showing if shows else matching)[node.name] = how
            known = _Difference(showing=showing, matching=matching)
            self._known[group.name, reason.field, reason.want] = known
        return known

    def _of(self, node: Node) -> Sequence[DriftReason]:
        if node.name not in self._reasons:
            self._reasons[node.name] = self._raw(node)
        return self._reasons[node.name]

    def _launched_under(self, node: Node, group: Group, reason: DriftReason) -> str:
        """Return how it is known that the node was launched under the wanted value, empty where it is not."""
        launchable = self._snapshot.launchables.get(group.name)
        launch = launchable.launch_of(self._snapshot.type_of(node)) if launchable is not None else None
        if launch is None:
            return ""
        wanted, member = self._wanted_of(group), self._listed.get(node.instance_id)
        instance = self._snapshot.instance_of(node)
        if instance is None or self._snapshot.now - instance.launched < YOUNG:
            return ""
        if member is not None and _decided_by_version(reason, launch, group) and _is_from(member, launch, group):
            source = group.launch.configuration or f"{launch.template} version {launch.version}"
            return f"{node.name} comes from {source}, which the group launches now, and differs in it as well"
        if wanted is None:
            return ""
        settles = SETTLES if reason.field is Field.AMI and launch.alias else timedelta()
        if instance.launched <= wanted.since + settles:
            return ""
        since = format_instant(wanted.since)
        return f"{node.name} was launched after this was wanted ({since}), and differs in it as well"


def key_of(reason: DriftReason) -> str:
    """Return the key of a difference among the proofs of its group."""
    return _hash(f"{reason.field.value} {reason.want}")


def wanted_digest(snapshot: ClusterSnapshot, group: Group) -> str:
    """Return the digest of everything that decides what nodes of the group are compared with; empty where a part of it
    cannot be read: unknown is no change.
    """
    launchable, policy = snapshot.launchables.get(group.name), snapshot.policy_of(group)
    if launchable is None or policy is None or not launchable.launches:
        return ""
    launches = [_launch(launchable, name, group) for name in sorted(launchable.launches)]
    if not all(launches):
        return ""
    tags = sorted((key, value) for key, value in group.tags.items() if key.startswith(_TEMPLATE_TAGS))
    node = policy.node
    asked = repr((policy.requirements, sorted(node.labels.items()), node.taints, node.annotations))
    capacity = launchable.capacity
    return _hash(repr((launches, sorted(group.subnets), sorted(group.zones), launchable.types, capacity, tags, asked)))


def remembered(
    snapshot: ClusterSnapshot,
    evidence: Evidence,
    reasons: Mapping[str, Iterable[DriftReason]],
    watched: Iterable[Group],
) -> dict[str, WantedLaunch]:
    """Return what is remembered of each watched group from now on. `reasons`: by node, with their proofs. The present
    values count from their first observation; what is known of launches stays until they change.
    """
    proofs: dict[str, dict[str, str]] = defaultdict(dict)
    for node in snapshot.nodes:
        group = snapshot.group_of(node)
        if group is not None:
            found = {key_of(one): one.proof for one in reasons.get(node.name, ()) if one.proof}
            proofs[group.name] |= found
    after: dict[str, WantedLaunch] = {}
    for group in watched:
        before, digest = snapshot.wanted_launches.get(group.name), wanted_digest(snapshot, group)
        if not digest:
            after |= {group.name: before} if before is not None else {}
            continue
        if before is None or before.digest != digest:
            before = WantedLaunch(digest=digest, since=snapshot.now.replace(microsecond=0))
        known = _bounded({**proofs[group.name], **before.proofs})
        shown = _bounded({**evidence.first_shown(group), **before.shown})
        after[group.name] = replace(before, proofs=known, shown=shown)
    return after


def _bounded(known: Mapping[str, str]) -> dict[str, str]:
    return dict(list(known.items())[-MOST_PROOFS:])


def _decided_by_version(reason: DriftReason, launch: LaunchSettings, group: Group) -> bool:
    if reason.field is Field.TAGS:  # the group's own tags change without a version
        return reason.want.partition("=")[0] not in group.tags
    return reason.field in BY_VERSION and not (reason.field is Field.AMI and (launch.alias or launch.overridden))


def _is_from(member: GroupInstance, launch: LaunchSettings, group: Group) -> bool:
    if group.launch.configuration:
        return member.configuration == group.launch.configuration
    source = member.template
    present = launch.template, str(launch.version)
    return source is not None and bool(launch.version) and (source.id, source.version) == present


def _launch(launchable: Launchable, name: str, group: Group) -> tuple[object, ...]:
    """Return the parts of one type's launch that are compared, empty where its image is not known."""
    launch = launchable.launches[name]
    if launch is None or launch.image.startswith("resolve:"):
        return ()
    look = launch.look
    tags = sorted({**(look.tags or {}), **propagated_over(group, look.tags or {})}.items())
    shown = (look.security_groups, look.profile, sorted((look.metadata or {}).items()), tags, look.monitoring)
    return name, launch.template, launch.version, launch.image, shown


def propagated_over(group: Group, tags: Iterable[str]) -> dict[str, str]:
    """Return the group's propagated tags among these keys of its template: they win over the template's (EC2 Auto
    Scaling, "Tag Auto Scaling groups and instances").
    """
    return {key: group.tags[key] for key in tags if key in group.propagated and key in group.tags}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
