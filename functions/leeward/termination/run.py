"""Document passed between the steps of node-termination: small, versioned, the same for every step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.errors import InvalidInputError
from leeward.model.deadlines import taken_at
from leeward.model.termination import Subject, TerminationRecord
from leeward.model.times import format_instant
from leeward.workflow.steps import check_started, found_in

VERSION = 1
UNCLAIMED = ("cluster", "group", "node", "policy", "taken")  # keys of an input that no record stands behind yet
STARTED = {"instance": str, "attempt": int, "v": int, **dict.fromkeys(UNCLAIMED, str)}  # keys of an execution's input


class Next(StrEnum):
    """Next action of the state machine; its Choice states compare with these words."""

    HAND_OVER = "hand-over"  # another execution terminates this instance
    REPLACE = "replace"
    TERMINATE_FIRST = "terminate-first"  # our hook holds the instance while it drains
    DRAIN = "drain"
    WAIT = "wait"
    DRAINED = "drained"
    GONE = "gone"
    REBOOT = "reboot"  # drained, and to be rebooted
    REBOOTED = "rebooted"
    FAILED = "failed"
    CANCEL = "cancel"  # no cause requests the termination of the instance any more
    ANSWER = "answer"
    REMOVE = "remove"
    FINISH = "finish"
    AGAIN = "again"  # a cause joined at the last moment
    DONE = "done"
    RETURNED_TO_SERVICE = "returned-to-service"
    CANCELLED = "cancelled"
    KEPT = "kept"  # drained, and to be left in service, cordoned


class NoticeKind(StrEnum):
    """Kinds of information about a step for an operator, beside its result."""

    STALE_FACTS = "stale-facts"  # decided on facts that are old or missing
    ELSEWHERE = "elsewhere"  # the replacement is in another zone
    NOWHERE = "nowhere"  # no subnet could take one
    REFUSED = "refused"  # LaunchInstances does not serve the group


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Sentence for the log, counted by its kind."""

    kind: NoticeKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """State of one execution between two steps. `pause` in seconds; `version` is the record's, as last read; `until`
    (RFC 3339) ends every loop of the state machine; `look` (RFC 3339): when a drain that pauses reads its pods next;
    `node`, `group` and `cluster` are the record's, for readers of the execution, empty where they are not known; with
    `policy` (its name) and `taken` (RFC 3339: when EC2 takes the instance, empty if it does not) they evict pods while
    the table is away;
    `notices`, `healthy` (the budgets that it has read) and `deleted` (pods that it has deleted instead of evicted)
    belong to one step and are not passed on.
    """

    instance: str
    attempt: int
    version: int
    next: Next
    pause: int = 0
    why: str = ""
    until: str = ""
    look: str = ""
    node: str = ""
    group: str = ""
    cluster: str = ""
    policy: str = ""
    taken: str = ""
    notices: tuple[Notice, ...] = ()
    healthy: tuple[HealthSample, ...] = ()
    deleted: int = 0

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the document. Raises InvalidInputError naming the invalid value: people start executions manually."""
        instance = raw.get("instance")
        if not isinstance(instance, str) or not instance.startswith("i-"):
            raise InvalidInputError(f"instance: found {found_in(instance)}, expected the id of an instance")
        check_started(raw, STARTED)
        return cls(
            instance=instance,
            attempt=int(raw.get("attempt") or 0),
            version=int(raw.get("version") or 0),
            next=Next(raw.get("next") or Next.REPLACE),
            pause=int(raw.get("pause") or 0),
            why=str(raw.get("why") or ""),
            until=str(raw.get("until") or ""),
            look=str(raw.get("look") or ""),
            node=str(raw.get("node") or ""),
            group=str(raw.get("group") or ""),
            cluster=str(raw.get("cluster") or ""),
            policy=str(raw.get("policy") or ""),
            taken=str(raw.get("taken") or ""),
        )

    def naming(self, subject: Subject) -> Self:
        """Return the document with the names of what is terminated."""
        return replace(
            self,
            node=subject.node or self.node,
            group=subject.group or "",
            cluster=subject.cluster,
            policy=subject.policy,
        )

    def taken_by(self, record: TerminationRecord, now: datetime) -> Self:
        """Return the document with the moment at which EC2 takes the instance, by the record as it is now."""
        taken = taken_at(record, now)
        return replace(self, taken=format_instant(taken) if taken is not None else "")

    @property
    def about(self) -> str:
        """Name of what is terminated, in the words of a failed execution's cause."""
        name = f"{self.node} ({self.instance})" if self.node else self.instance
        return ", ".join(
            filter(None, (name, self.group and f"group {self.group}", self.cluster and f"cluster {self.cluster}"))
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document that the state machine carries."""
        return {
            "v": VERSION,
            "instance": self.instance,
            "node": self.node,
            "group": self.group,
            "cluster": self.cluster,
            "about": self.about,
            "attempt": self.attempt,
            "version": self.version,
            "next": self.next.value,
            "pause": self.pause,
            "why": self.why,
            "until": self.until,
            "look": self.look,
            **({"policy": self.policy, "taken": self.taken} if self.taken else {}),
            **({"deleted": self.deleted} if self.deleted else {}),
            **({"healthy": healthy_pods.to_json(self.healthy)} if self.healthy else {}),
        }
