"""Facts that the disruption planner remembers of earlier runs: since when a group launches its present nodes,
differences that launches are seen not to fix, commands whose new node did not serve, and what the last nodes showed.

The record of the cluster's latest run holds it (docs/designs/disruption.md, "What runs remember")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLaunch:
    """Launches of a group, and since when they are as they are. `digest`: of everything that its nodes are compared
    with; `since`: first observation of that digest; `proofs`: differences that its launches do not fix, by their
    digest, each with a sentence of evidence; `shown`: the instance that was the first to show a difference although it
    was launched like this, by the difference's digest.
    """

    digest: str
    since: datetime
    proofs: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCommand:
    """Command whose new node came up and did not serve: the run that dropped it, when and why."""

    run: int
    at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedNode:
    """Observation of the last Ready nodes of a group and type. `version`, `user_data`: launch template and version,
    and a digest, with which they were launched; `by_zone`: labels beside `labels`; `taints`: `KEY=VALUE:EFFECT`.
    """

    version: str
    user_data: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    by_zone: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)
