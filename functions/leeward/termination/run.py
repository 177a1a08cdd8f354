"""Document passed between the steps of node-termination, and the record that it carries, so that a step makes as few
calls of the table as it can.

A step that follows at once uses the record that the step before has read or written some seconds ago, where a cause
that joins in between is noticed all the same: the version that the run carries is that record's, so the next pause and
the close of the record fail, and the run reads again. After a pause the record is always read. Notes that nothing but
the next step needs are written with that step's own call (docs/designs/aws-calls.md)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.errors import InvalidInputError, LeewardError, ObjectGoneError
from leeward.isolation import attempt
from leeward.model.codec import decode, encode
from leeward.model.seen import Seen
from leeward.model.termination import Status, Subject, TerminationRecord, taken_at
from leeward.model.times import format_instant, parse_instant
from leeward.ports import Ports
from leeward.ports.records import Claims
from leeward.workflow.steps import check_started, found_in

VERSION = 1
UNCLAIMED = ("cluster", "group", "node", "policy", "taken")  # keys of an input that no record stands behind yet
STARTED = {"instance": str, "attempt": int, "v": int, **dict.fromkeys(UNCLAIMED, str)}  # keys of an execution's input


LARGEST_CARRIED = 65_536  # characters of a record; Step Functions passes 256 KiB from state to state
CARRIED_FOR = timedelta(seconds=5)  # as long as a step may act on a record that it has read itself
SHOWN_WITHIN = 30  # seconds: progress of a drain that pauses for longer is written before the pause


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
    """Notes of earlier steps that the record does not have yet: the next call that writes or reads it writes them."""

    times: Mapping[str, datetime] = field(default_factory=dict)
    evicted: int = 0  # as in `note_attempt`
    seen: Seen | None = None

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self.times or self.evicted or self.seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """State of one execution between two steps. Moments are RFC 3339."""

    instance: str
    attempt: int
    version: int  # of the record, as last read
    next: Next
    pause: int = 0  # seconds
    why: str = ""
    until: str = ""  # ends every loop of the state machine
    look: str = ""  # when a drain that pauses reads its pods next
    # The record's, for readers of the execution, empty where they are not known; with the two that follow they evict
    # pods while the table is away.
    node: str = ""
    group: str = ""
    cluster: str = ""
    policy: str = ""  # its name
    taken: str = ""  # when EC2 takes the instance, empty if it does not
    unwritten: Unwritten = Unwritten()
    record: Mapping[str, Any] | None = None  # for the next step, as it was at `read_at`
    read_at: datetime | None = None
    given: tuple[Mapping[str, Any], datetime] | None = None  # record from the step before, and when that was read
    # Of one step, and not passed on:
    notices: tuple[Notice, ...] = ()
    healthy: tuple[HealthSample, ...] = ()  # the budgets that it has read
    deleted: int = 0  # pods that it has deleted instead of evicted

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
            unwritten=decode(Unwritten, raw.get("unwritten") or {}),
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
            **({"unwritten": encode(self.unwritten)} if self.unwritten else {}),
            **self._carried(),
            **({"deleted": self.deleted} if self.deleted else {}),
            **({"healthy": healthy_pods.to_json(self.healthy)} if self.healthy else {}),
        }


def current(
    run: Run, ports: Ports, unless: Callable[[TerminationRecord], bool] = lambda _: False
) -> tuple[Run, TerminationRecord]:
    """Return the record, from the step before or the table, and the run without the notes that the call has written.
    `unless`: whether the record has to be read. Raises InvalidInputError for an instance without a claim.
    """
    run, record = latest(run, ports, unless)
    if record is None:
        raise InvalidInputError(f"{run.instance}: found no termination record, expected one: claim it first")
    return run, record


def latest(
    run: Run, ports: Ports, unless: Callable[[TerminationRecord], bool] = lambda _: False
) -> tuple[Run, TerminationRecord | None]:
    """Return the same, None for an instance without a claim."""
    carried = _carried(run, ports)
    if carried is not None and not unless(carried):
        return replace(run, read_at=run.given[1] if run.given else None), carried
    return reread(run, ports)


def reread(run: Run, ports: Ports) -> tuple[Run, TerminationRecord | None]:
    """Read the record; notes that wait are written in the same call."""
    now, notes = ports.clock.now(), run.unwritten
    if not notes:
        return replace(run, read_at=now), ports.claims.read(run.instance)
    try:
        record = ports.claims.note_attempt(
            run.instance, run.attempt, times=notes.times, evicted=notes.evicted, seen=notes.seen
        )
    except ObjectGoneError:
        return replace(run, read_at=now, unwritten=Unwritten()), None
    return replace(run, read_at=now, unwritten=Unwritten()), record


def noted(run: Run, ports: Ports, times: Mapping[str, datetime], **more: Any) -> tuple[Run, TerminationRecord]:
    """Write a note, with those that wait, and return the record as it then stands."""
    notes = run.unwritten
    record = ports.claims.note(run.instance, times={**notes.times, **times}, seen=notes.seen, **more)
    return replace(run, read_at=ports.clock.now(), unwritten=Unwritten(evicted=notes.evicted)), record


def noted_attempt(run: Run, ports: Ports, times: Mapping[str, datetime], **more: Any) -> tuple[Run, TerminationRecord]:
    """Write a note about the run's attempt, with those that wait, and return the record as it then stands."""
    notes = run.unwritten
    both = {"evicted": notes.evicted, "seen": notes.seen, **more}
    record = ports.claims.note_attempt(run.instance, run.attempt, times={**notes.times, **times}, **both)
    return replace(run, read_at=ports.clock.now(), unwritten=Unwritten()), record


def later(run: Run, record: TerminationRecord, **times: datetime) -> tuple[Run, TerminationRecord]:
    """Return the run and the record with times that the next call writes. Times that are set stay."""
    new = {name: at for name, at in times.items() if name not in record.times}
    unwritten = replace(run.unwritten, times={**run.unwritten.times, **new})
    return replace(run, unwritten=unwritten), replace(record, times={**record.times, **new})


def carrying(run: Run, record: TerminationRecord, claims: Claims) -> Run:
    """Return the run with the record for the step that follows, as old as this step's own is."""
    return replace(run, record=claims.carried(record))


def _carried(run: Run, ports: Ports) -> TerminationRecord | None:
    """Return the record that the step before has passed on, None for none that counts: it is too old, of another
    attempt, or cannot be parsed.
    """
    if run.given is None or ports.clock.now() - run.given[1] > CARRIED_FOR:
        return None
    document = run.given[0]
    record = attempt(lambda: ports.claims.restored(document))
    if isinstance(record, LeewardError) or record.instance != run.instance:
        return None
    return record if record.attempt == run.attempt and record.status is Status.OPEN else None
