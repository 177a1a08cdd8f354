"""Requests of operators about upgrades: the input of each execution that they start, as the world saw it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TARGETS = ("ami", "launchTemplateVersion", "kubernetesVersion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """One start of an upgrade or one action on it, `at` in seconds since 1970. `asked`: the execution's input;
    `latest`: the number that `$Latest` of the group's launch template meant then.
    """

    at: float
    group: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    latest: int = 1

    @property
    def target(self) -> str:
        """Image, SSM parameter, template version or Kubernetes version that it names; empty where it names none."""
        return str(next((self.asked[key] for key in TARGETS if key in self.asked), ""))

    @property
    def action(self) -> str:
        """`pause`, `resume`, `abort` or `rollback`; empty for a start."""
        return str(self.asked.get("action") or "")

    @property
    def forced(self) -> bool:
        """True if it was started with force."""
        return bool(self.asked.get("force"))
