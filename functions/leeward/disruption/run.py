"""Document passed between the steps of disruption, the lease of a run, and the takeover of one whose execution is dead.

The document is small, versioned, and the same for every step. Any number of starts ends with one execution that
works."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.disruption.record import DisruptionRecord
from leeward.errors import InvalidInputError
from leeward.ports.clock import Clock
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Disruptions
from leeward.workflow.executions import execution_name, start_first_free
from leeward.workflow.lease import LeaseLostError, write_version
from leeward.workflow.steps import check_started, found_in

VERSION = 1
STARTED = {"cluster": str, "disruption": int, "v": int}  # keys of an execution's input
LONGEST_WHY = 500
MOST_NAMES = 20
STARTS = 20  # executions of one run that are tried at one time


class DisruptionNext(StrEnum):
    """Next action of the state machine; its Choice states compare with these words."""

    HAND_OVER = "hand-over"  # another execution holds the run
    NOTHING = "nothing"  # there is no such run, or it has ended
    VALIDATE = "validate"
    TAINT = "taint"
    LAUNCH = "launch"
    BOOT = "boot"
    READY = "ready"
    TERMINATE = "terminate"
    FOLLOW = "follow"
    END = "end"
    GIVE_UP = "give-up"
    DONE = "done"
    GIVEN_UP = "given-up"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Result of a run that has ended. `nodes`: group -> nodes that are gone; `savings`: dollars an hour of commands all
    of whose nodes are gone; `saved`: group -> its part, without commands over several groups.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    savings: float = 0.0
    saved: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRun:
    """State of one execution between two steps. `number` 0: started manually, the run is computed from the current
    state; `pause` in seconds; `validated`: when the commands were validated last. For readers of the execution: `nodes`
    and `groups` of its commands (the first `MOST_NAMES`), and what a run that has ended saves. `ends` and `healthy`
    (the budgets that this step has read) are not passed on.
    """

    cluster: str
    number: int
    next: DisruptionNext
    execution: str = ""
    pause: int = 0
    validated: datetime | None = None
    why: str = ""
    nodes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    ends: Ends = Ends()
    healthy: tuple[HealthSample, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the document. Raises InvalidInputError naming the invalid field: people start executions manually."""
        cluster, number = raw.get("cluster"), raw.get("disruption") or 0
        if not isinstance(cluster, str) or not cluster:
            raise InvalidInputError(f"cluster: found {found_in(cluster)}, expected the name of a cluster")
        check_started(raw, STARTED)
        if not isinstance(number, int) or number < 0:
            raise InvalidInputError(f"disruption: found {number!r}, expected the number of a run, or none")
        return cls(
            cluster=cluster,
            number=number,
            next=DisruptionNext(raw.get("next") or DisruptionNext.VALIDATE),
            execution=str(raw.get("execution") or ""),
            pause=int(raw.get("pause") or 0),
            validated=_moment(raw.get("validated") or ""),
            why=str(raw.get("why") or ""),
            nodes=tuple(raw.get("nodes") or ()),
            groups=tuple(raw.get("groups") or ()),
        )

    def naming(self, nodes: Iterable[str], groups: Iterable[str]) -> Self:
        """Return the document with the names of what is disrupted."""
        return replace(self, nodes=tuple(sorted(nodes)[:MOST_NAMES]), groups=tuple(sorted(groups)[:MOST_NAMES]))

    @property
    def about(self) -> str:
        """Name of what is disrupted, in the words of a failed execution's cause."""
        named = ", ".join(self.nodes)
        return f"run {self.number} of cluster {self.cluster}" + (f" ({named})" if named else "")

    def handed_over(self, why: str) -> Self:
        """Return the document of an execution that ends because another one has the run."""
        return replace(self, next=DisruptionNext.HAND_OVER, why=why)

    def to_json(self) -> dict[str, Any]:
        """Return the document that the state machine carries."""
        return {
            "v": VERSION,
            "cluster": self.cluster,
            "nodes": list(self.nodes),
            "groups": list(self.groups),
            "about": self.about,
            "savedPerHour": self.ends.savings,
            "disruption": self.number,
            "execution": self.execution,
            "next": self.next.value,
            "pause": self.pause,
            "validated": self.validated.isoformat() if self.validated else "",
            "why": self.why[:LONGEST_WHY],
            **({"healthy": healthy_pods.to_json(self.healthy)} if self.healthy else {}),
        }


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError as error:
        raise InvalidInputError(
            f"input: found validated {text!r}, expected a time such as 2026-03-02T00:50:32+00:00"
        ) from error


def is_leased(record: DisruptionRecord, disruption_executions: NamedExecutions) -> bool:
    """Return whether an execution works on the run, or has been started and will take its lease."""
    name = record.execution or execution_name(record.cluster, record.number, 1)
    return disruption_executions.running(name)


def read(run: DisruptionRun, disruptions: Disruptions) -> DisruptionRecord:
    """Return the record if this execution still holds it. Raises LeaseLostError."""
    record = disruptions.read(run.cluster)
    if record is None or record.number != run.number or record.execution != run.execution or not record.open:
        raise LeaseLostError(f"run {run.number} of {run.cluster}: {record.execution if record else '?'} has it now")
    return record


def written(record: DisruptionRecord, disruptions: Disruptions) -> DisruptionRecord:
    """Write the record and return it. Raises RecordChangedError, and the step is run again."""
    return write_version(record, disruptions.write, f"run of {record.cluster}")


def start(record: DisruptionRecord, disruption_executions: NamedExecutions) -> str:
    """Start an execution for the run. Idempotent. Raises RecordChangedError if `STARTS` of them have ended."""
    attempts = range(max(record.attempt, 1), record.attempt + STARTS)
    names = (execution_name(record.cluster, record.number, attempt) for attempt in attempts)
    document = {"v": 1, "cluster": record.cluster, "disruption": record.number}
    return start_first_free(disruption_executions, names, document)


def restart(record: DisruptionRecord | None, disruption_executions: NamedExecutions, clock: Clock) -> str | None:
    """Start an execution for an open run that no execution holds, and return its name; None where there is nothing to
    do yet.
    """
    if record is None or not record.open or is_leased(record, disruption_executions):
        return None
    if record.retry is not None and clock.now() < record.retry:
        return None
    return start(record, disruption_executions)


def retry_at(attempt: int, now: datetime) -> datetime:
    """Return when a run whose step has failed is started again: after 1, 2, 4 ... at most 15 minutes."""
    return now + timedelta(minutes=min(2 ** max(attempt - 1, 0), 15))
