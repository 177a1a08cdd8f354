"""Facts that the disruption planner remembers of earlier runs: since when a group launches its present nodes,
differences that launches are seen not to fix, and commands whose new node did not serve.

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
