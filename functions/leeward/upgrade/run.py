"""Run document that travels between the steps of node-group-upgrade: small, versioned, the same for every step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.errors import InvalidInputError
from leeward.upgrade.record import NotedHold
from leeward.workflow.steps import check_started, found_in

VERSION = 1
STARTED: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("group", "cluster", "action", "ami", "kubernetesVersion", "by"), str),
    "launchTemplateVersion": (str, int),
    **{"groups": list, "then": list, "override": list, "force": bool},
    **{"attempt": int, "after": str, "automatic": str, "v": int},  # of starts by Leeward itself
}  # keys of an execution's input
REFUSED_UPDATE = "NodegroupUpdateFailure"  # error of an upgrade whose update EKS has refused or failed
MOST_PAUSES = 1500  # of one execution: about ten events each, of the 25,000 that its history may have
LONGEST_WHY = 500


class Next(StrEnum):
    """Next transition of the state machine; its Choice states compare with these words."""

    HAND_OVER = "hand-over"  # another execution holds the lease
    RECORDED = "recorded"  # the request is recorded, the running execution reads it
    CHECK = "check"
    MANAGED = "managed"  # EKS rolls the group, Leeward supervises
    BLOCKED = "blocked"
    PREPARE = "prepare"
    POINT = "point"
    LAUNCH = "launch"
    WAIT = "wait"
    READY = "ready"
    CORDONED = "cordoned"
    PAUSED = "paused"
    ALARM = "alarm"
    WINDOW = "window"
    BAKE = "bake"
    ABORT = "abort"
    ROLLBACK = "rollback"
    SCALE_DOWN = "scale-down"
    RESTORE = "restore"
    CREATION_FAILURE = "creation-failure"
    EVICTION_FAILURE = "eviction-failure"
    UPDATE_FAILURE = "update-failure"
    UPGRADED = "upgraded"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled-back"
    CONTINUED = "continued"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """State of one execution between two steps. `pause` in seconds; `pauses`: so many so far, which bound the history
    of the execution; `full`: there were so many that another execution continues. `healthy`: the budgets that this step
    has read, and `hold`: what holds the upgrade; both are not passed on.
    """

    group: str
    execution: str
    next: Next
    cluster: str = ""
    attempt: int = 0
    pause: int = 0
    pauses: int = 0
    why: str = ""
    healthy: tuple[HealthSample, ...] = ()
    hold: NotedHold | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the document. Raises InvalidInputError naming what is wrong: operators start executions manually."""
        group, groups = raw.get("group"), raw.get("groups")
        if group is None and isinstance(groups, list) and groups:
            group = groups[0]
        if not isinstance(group, str) or not group:
            raise InvalidInputError(f"group: found {found_in(group)}, expected the name of an Auto Scaling group")
        check_started(raw, STARTED)
        return cls(
            group=group,
            execution=str(raw.get("execution") or ""),
            next=Next(raw.get("next") or Next.CHECK),
            cluster=str(raw.get("cluster") or ""),
            attempt=int(raw.get("attempt") or 0),
            pause=int(raw.get("pause") or 0),
            pauses=int(raw.get("pauses") or 0),
            why=str(raw.get("why") or ""),
        )

    def handed_over(self, why: str) -> Self:
        """Return the document of an execution that ends because another one has the lease."""
        return replace(self, next=Next.HAND_OVER, why=why)

    @property
    def about(self) -> str:
        """Name of what is upgraded, in the words of a failed execution's cause."""
        return f"group {self.group}" + (f", cluster {self.cluster}" if self.cluster else "")

    def to_json(self) -> dict[str, Any]:
        """Return the document that the state machine carries."""
        return {
            "v": VERSION,
            "group": self.group,
            "cluster": self.cluster,
            "about": self.about,
            "execution": self.execution,
            "attempt": self.attempt,
            "next": self.next.value,
            "pause": self.pause,
            "pauses": self.pauses,
            "full": self.pauses >= MOST_PAUSES,
            "why": self.why[:LONGEST_WHY],
            **({"healthy": healthy_pods.to_json(self.healthy)} if self.healthy else {}),
        }
