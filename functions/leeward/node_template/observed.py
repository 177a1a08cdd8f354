"""Nodes that show what the next node of their group will be: Ready ones of the same instance type that booted with the
same launch template version, or with the same user data.

Decides what follows from them. The smaller of estimate and observation is the capacity; labels that all of them share
are added, and an estimated label that none of them carries is removed; taints that all of them share are joined: a
taint of some of them was put there later. Of nodes that booted otherwise only `of_unknown_source` says anything: a
label that none of their user data names may come from a controller, which labels the next node too.

Memory of what the last Ready nodes of a group showed, so that a group without nodes is planned from facts.

Decides how much is kept: of ten types and 30 KB in all, those of the groups with the fewest nodes first, and thirty
labels of each. A label that is left out proves nothing: a script's word for it is an estimate again. The record of
the cluster's latest run holds it (docs/designs/disruption.md, "What runs remember")."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from leeward.model import well_known
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node, Taint
from leeward.model.planning_memory import RememberedNode
from leeward.node_template.labels import ARCH, BETA, HOSTNAME, OS
from leeward.node_template.user_data import kubelet_settings

_PLATFORM = (OS, ARCH, BETA[OS], BETA[ARCH])
_NOT_SHARED = ("node.kubernetes.io/", "eks.amazonaws.com/", well_known.PREFIX, "topology.", "failure-domain.")  # of a
#   node, of a template version, of a place
_TRANSIENT = ("node.kubernetes.io/", "node.cloudprovider.", "ToBeDeleted", "DeletionCandidate", "karpenter.sh/")
MOST_TYPES, MOST_LABELS, MOST_TAINTS, MOST_BYTES = 10, 30, 10, 30_000
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyNode:
    """Ready node of a group. `type`, `zone` as EC2 has them; `launch`: the settings that it was launched with, None
    where they cannot be read any more.
    """

    node: Node
    type: str
    zone: str
    allocatable: Mapping[str, int]
    launch: LaunchSettings | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Observation of nodes of a type. `labels`: in every zone; `by_zone`: in that zone. `allocatable`: the smallest
    amount of each resource that all of them report. `carried`: every label of any of them, `common`: those of
    all; `nodes`: their number, 0 of nodes that are gone, of whose labels some are not known any more.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    by_zone: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)
    carried: frozenset[tuple[str, str]] = frozenset()
    common: frozenset[tuple[str, str]] = frozenset()
    nodes: int = 0

    def amounts(self, capacity: Mapping[str, int], allocatable: Mapping[str, int]) -> tuple[dict[str, int], ...]:
        """Return capacity and allocatable, the smaller of estimate and observation. The estimate of what a node keeps
        back stays; a resource that no node reports yet (a device plugin may still start) stays estimated.
        """
        least = {name: min(value, allocatable.get(name, value)) for name, value in self.allocatable.items()}
        amounts = {**allocatable, **least}
        kept = {name: capacity.get(name, value) - value for name, value in allocatable.items()}
        return {**capacity, **{name: value + kept.get(name, 0) for name, value in amounts.items()}}, amounts

    def corrected(self, labels: Mapping[str, str], guessed: Mapping[str, str]) -> dict[str, str]:
        """Return the labels with the nodes' own operating system and architecture, without `guessed` ones that no node
        carries.
        """
        missing = {key for key, value in guessed.items() if self.nodes and (key, value) not in self.carried}
        platform = {key: value for key, value in self.carried if key in _PLATFORM}
        return {**{key: value for key, value in labels.items() if key not in missing}, **platform}


def observed(
    nodes: Iterable[ReadyNode], instance_type: str, launch: LaunchSettings | None, startup: Iterable[str] = ()
) -> Observed | None:
    """Return what the nodes show about the next one of the type; None without a node that was launched alike.
    `startup`: keys of taints that nodes lose again.
    """
    alike = [one for one in nodes if one.type == instance_type and _same_launch(one.launch, launch)]
    if not alike:
        return None
    zones = {one.zone for one in alike}
    by_zone = {zone: _shared([one for one in alike if one.zone == zone]) for zone in zones}
    everywhere = _shared(alike) if len(zones) > 1 else {}  # of a single zone: which labels are the zone's is not known
    taints = [taint for taint in alike[0].node.taints if not _is_transient(taint, frozenset(startup))]
    resources = set.intersection(*(set(one.allocatable) for one in alike))
    return Observed(
        labels=everywhere,
        by_zone=by_zone,
        taints=tuple(taint for taint in taints if all(taint in one.node.taints for one in alike)),
        allocatable={name: min(one.allocatable[name] for one in alike) for name in sorted(resources)},
        carried=frozenset(item for one in alike for item in one.node.labels.items()),
        common=frozenset(set.intersection(*(set(one.node.labels.items()) for one in alike))),
        nodes=len(alike),
    )


def of_unknown_source(nodes: Sequence[ReadyNode]) -> tuple[dict[str, dict[str, str]], dict[str, int]]:
    """Return what all nodes have and no user data names that any of them booted with: labels by zone, with the value
    that the nodes of the zone share, and extended resources, the smallest amount. Device and feature discovery may have
    put them there, another controller, or a person.
    """
    if not nodes:
        return {}, {}
    booted = {node.launch.user_data for node in nodes if node.launch is not None}
    named = {key for user_data in booted for key in kubelet_settings(user_data).labels}
    keys = set.intersection(*(set(node.node.labels) for node in nodes)) - named
    zones = {zone: _shared([node for node in nodes if node.zone == zone]) for zone in {node.zone for node in nodes}}
    labels = {zone: {key: shared[key] for key in shared if key in keys} for zone, shared in zones.items()}
    resources = {name for name in set.intersection(*(set(node.allocatable) for node in nodes)) if "/" in name}
    return labels, {name: min(node.allocatable[name] for node in nodes) for name in sorted(resources)}


def _same_launch(then: LaunchSettings | None, now: LaunchSettings | None) -> bool:
    """Return whether both boot alike. Without user data the image decides, so that it has to be the same version."""
    if then is None or now is None:
        return False
    same_version = bool(now.template) and (then.template, then.version) == (now.template, now.version)
    return same_version or bool(now.user_data and then.user_data == now.user_data)


def _shared(nodes: Sequence[ReadyNode]) -> dict[str, str]:
    """Return the labels that all carry, without those of one node, of its place or of its template version."""
    shared = set.intersection(*(set(one.node.labels.items()) for one in nodes))
    own = {text for one in nodes for text in (one.node.name, one.node.instance_id) if text}
    return {
        key: value
        for key, value in sorted(shared)
        if key != HOSTNAME and value not in own and not key.startswith(_NOT_SHARED)
    }


def _is_transient(taint: Taint, startup: frozenset[str]) -> bool:
    """Return whether the taint is of the node's state, and not of its launch."""
    key = taint.key
    return key in startup or "not-ready" in key or key.startswith((*_TRANSIENT, well_known.PREFIX))


def key_of(group: str, instance_type: str) -> str:
    """Return the key of the group's type in the memory."""
    return f"{group}/{instance_type}"


def recalled(seen: RememberedNode | None, launch: LaunchSettings | None) -> Observed | None:
    """Return the observation; None without one, and where the group launches from another version with other user
    data now.
    """
    if seen is None or launch is None:
        return None
    version, user_data = _launch(launch)
    if version != seen.version and not (user_data and user_data == seen.user_data):
        return None
    shown = (seen.labels, *seen.by_zone.values())
    zones = [set({**seen.labels, **labels}.items()) for labels in seen.by_zone.values()] or [set(seen.labels.items())]
    return Observed(
        labels=seen.labels,
        by_zone=seen.by_zone,
        taints=tuple(_taint(text) for text in seen.taints),
        allocatable=seen.allocatable,
        carried=frozenset(item for labels in shown for item in labels.items()),
        common=frozenset(set.intersection(*zones)),
        nodes=0,
    )


def kept(known: Mapping[str, tuple[Observed, LaunchSettings | None]]) -> dict[str, RememberedNode]:
    """Return what is remembered of the observations by `key_of`."""
    found: dict[str, RememberedNode] = {}
    left = MOST_BYTES
    for key in sorted(known, key=lambda key: (known[key][0].nodes, key)):
        observed, launch = known[key]
        if launch is None or len(found) == MOST_TYPES:
            continue
        seen = _seen(observed, launch)
        if (size := len(key) + len(repr(seen))) <= left:
            left -= size
            found[key] = seen
    return found


def _seen(observed: Observed, launch: LaunchSettings) -> RememberedNode:
    version, user_data = _launch(launch)
    return RememberedNode(
        version=version,
        user_data=user_data,
        labels=_some(observed.labels.items()),
        by_zone={
            zone: _some(item for item in labels.items() if item not in observed.labels.items())
            for zone, labels in sorted(observed.by_zone.items())
        },
        taints=tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in observed.taints[:MOST_TAINTS]),
        allocatable=dict(sorted(observed.allocatable.items())[:MOST_LABELS]),
    )


def _some(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    return dict(sorted(labels)[:MOST_LABELS])


def _taint(text: str) -> Taint:
    key, _, rest = text.partition("=")
    value, _, effect = rest.rpartition(":")
    return Taint(key=key, value=value, effect=effect)


def _launch(launch: LaunchSettings) -> tuple[str, str]:
    """Return the version, and a digest of the user data; empty where there is none."""
    digest = sha256(launch.user_data.encode()).hexdigest()[:_DIGITS] if launch.user_data else ""
    return f"{launch.template}/{launch.version}", digest
