"""Document passed between the steps of node-termination: small, versioned, the same for every step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.errors import InvalidInputError
from leeward.model.seen import Seen
from leeward.model.termination import Subject, TerminationRecord, taken_at
from leeward.model.times import format_instant, parse_instant
from leeward.workflow.steps import check_started, found_in

VERSION = 1
UNCLAIMED = ("cluster", "group", "node", "policy", "taken")  # keys of an input that no record stands behind yet
STARTED = {"instance": str, "attempt": int, "v": int, **dict.fromkeys(UNCLAIMED, str)}  # keys of an execution's input


LARGEST_CARRIED = 65_536  # characters of a record; Step Functions passes 256 KiB from state to state


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


AT_ONCE = frozenset(
    {
        Next.REPLACE,
        Next.TERMINATE_FIRST,
        Next.DRAIN,
        Next.DRAINED,
        Next.GONE,
        Next.ANSWER,
        Next.REMOVE,
        Next.FINISH,
    }
)
"""After these a step follows without a pause, as long as the run names none."""


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
class Unwritten:
    """Notes of earlier steps that the record does not have yet: the next call that writes or reads it writes them.
    `evicted`: as in `note_attempt`.
    """

    times: Mapping[str, datetime] = field(default_factory=dict)
    evicted: int = 0
    seen: Seen | None = None

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self.times or self.evicted or self.seen)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(
            times={name: parse_instant(at) for name, at in (raw.get("times") or {}).items()},
            evicted=int(raw.get("evicted") or 0),
            seen=Seen.from_json(raw["seen"]) if raw.get("seen") else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document that the run carries."""
        return {
            "times": {name: format_instant(at) for name, at in self.times.items()},
            "evicted": self.evicted,
            **({"seen": self.seen.to_json()} if self.seen else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """State of one execution between two steps. `pause` in seconds; `version` is the record's, as last read; `until`
    (RFC 3339) ends every loop of the state machine; `look` (RFC 3339): when a drain that pauses reads its pods next;
    `node`, `group` and `cluster` are the record's, for readers of the execution, empty where they are not known; with
    `policy` (its name) and `taken` (RFC 3339: when EC2 takes the instance, empty if it does not) they evict pods while
    the table is away;
    `unwritten` and `record` (as it was at `read_at`) are passed on as `carried_record.py` says; `given`: the record
    that the step before has passed on, and when that was read.
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
    unwritten: Unwritten = Unwritten()
    record: Mapping[str, Any] | None = None
    read_at: datetime | None = None
    given: tuple[Mapping[str, Any], datetime] | None = None
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
            unwritten=Unwritten.from_json(raw.get("unwritten") or {}),
            given=(raw["record"], parse_instant(raw["readAt"])) if raw.get("record") and raw.get("readAt") else None,
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

    def _carried(self) -> dict[str, Any]:
        """Return the record for a step that follows at once: a pause ends when a cause has joined. One with a long past
        is read by that step instead: an item of the table may be larger than what a state machine passes on.
        """
        if self.record is None or self.read_at is None or self.pause > 0 or self.next not in AT_ONCE:
            return {}
        if len(json.dumps(self.record)) > LARGEST_CARRIED:
            return {}
        return {"record": self.record, "readAt": format_instant(self.read_at)}

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
            **({"unwritten": self.unwritten.to_json()} if self.unwritten else {}),
            **self._carried(),
            **({"deleted": self.deleted} if self.deleted else {}),
            **({"healthy": healthy_pods.to_json(self.healthy)} if self.healthy else {}),
        }
