"""Inputs of a command that launches nodes: what its target group launches, and what the pods that move ask for.

A command whose new node came up and did not serve its pods was planned on a wrong guess of that node. Planned again
from the same inputs it fails again, so it is not proposed until one of them changes (docs/designs/disruption.md, "What
runs remember")."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

from leeward.disruption.candidates import Candidate
from leeward.model.times import format_instant
from leeward.snapshot.cluster import ClusterSnapshot

_DIGITS = 16


def launch_inputs(snapshot: ClusterSnapshot, nodes: Sequence[Candidate], group: str) -> str:
    """Return the digest: the launch settings, labels, taints and capacity of every type that the group may launch, and
    the needs of every pod that moves. Names and labels of pods, zones and prices are left out, as they come and go.
    """
    launchable = snapshot.launchables[group]
    launches = {
        name: (one.template, one.version, one.image, one.user_data) if one is not None else None
        for name, one in launchable.launches.items()
    }
    new = {name: (one.labels, one.taints, one.allocatable) for name, one in launchable.expected.items()}
    pods = sorted(_canonical((pod.identity.namespace, pod.needs)) for node in nodes for pod in node.pods)
    return sha256(_canonical((group, launches, new, pods)).encode()).hexdigest()[:_DIGITS]


def why_failed_before(snapshot: ClusterSnapshot, nodes: Sequence[Candidate], group: str) -> str:
    """Return why the group is not proposed as the target for these nodes; empty where nothing is remembered of it."""
    if not snapshot.failed_commands:
        return ""
    failed = snapshot.failed_commands.get(launch_inputs(snapshot, nodes, group))
    if failed is None:
        return ""
    return (
        f"a new node of {group} is not tried again: run {failed.run} launched it at {format_instant(failed.at)} and "
        f"dropped the command ({failed.why}), and neither the pods nor what {group} launches have changed"
    )


def _canonical(value: Any) -> str:
    """Return a text that is the same in every process: sets and maps in order."""
    if isinstance(value, Enum):
        return repr(value.value)
    if is_dataclass(value):
        return _canonical([getattr(value, one.name) for one in fields(value) if one.compare])
    if isinstance(value, Mapping):
        return _canonical(sorted((str(key), _canonical(inner)) for key, inner in value.items()))
    if isinstance(value, Set):
        return _canonical(sorted(map(_canonical, value)))
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_canonical, value))}]"
    return repr(value)
