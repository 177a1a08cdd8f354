"""Memory of what the last Ready nodes of a group showed, so that a group without nodes is planned from facts.

Decides how much is kept: of ten types and 30 KB in all, those of the groups with the fewest nodes first, and thirty
labels of each. A label that is left out proves nothing: a script's word for it is an estimate again. The record of
the cluster's latest run holds it (docs/designs/disruption.md, "What runs remember")."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.model.planning_memory import SeenNode
from leeward.node_template.observed import Observed

MOST_TYPES, MOST_LABELS, MOST_TAINTS, MOST_BYTES = 10, 30, 10, 30_000
_DIGITS = 16


def key_of(group: str, instance_type: str) -> str:
    """Return the key of the group's type in the memory."""
    return f"{group}/{instance_type}"


def recalled(seen: SeenNode | None, launch: LaunchSettings | None) -> Observed | None:
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


def kept(known: Mapping[str, tuple[Observed, LaunchSettings | None]]) -> dict[str, SeenNode]:
    """Return what is remembered of the observations by `key_of`."""
    found: dict[str, SeenNode] = {}
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


def _seen(observed: Observed, launch: LaunchSettings) -> SeenNode:
    version, user_data = _launch(launch)
    return SeenNode(
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
