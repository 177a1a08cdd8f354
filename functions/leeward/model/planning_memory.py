"""What the disruption planner remembers of earlier runs: since when a group launches what it launches now, what its
launches have been seen not to bring, and commands that failed their second validation.

The record of the cluster's latest run holds it (docs/designs/disruption.md, "What runs remember")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLaunch:
    """What a group launches, and since when. `digest`: of everything that decides what a new node is compared with;
    `since`: first observation of that digest; `proofs`: differences that its launches do not mend, by their digest,
    each with a sentence of evidence.
    """

    digest: str
    since: datetime
    proofs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCommand:
    """Command whose new node came up and did not serve: the run that dropped it, when and why."""

    run: int
    at: datetime
    why: str
