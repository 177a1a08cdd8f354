"""Types of a decision about one message."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leeward.model.group import HookResult
from leeward.model.instance import CapacityType
from leeward.model.message import HookAction, MessageKind
from leeward.model.termination import Cause, Subject
from leeward.model.zonal_shift import ZonalShift


class NodeAction(StrEnum):
    """Actions on a node, strongest first. `drain` and `replace` claim the instance and start its termination."""

    DRAIN = "drain"
    REPLACE = "replace"
    CORDON = "cordon"
    NONE = "none"

    @property
    def terminates(self) -> bool:
        """True if node-termination takes over."""
        return self in {NodeAction.DRAIN, NodeAction.REPLACE}


class RecordOutcome(StrEnum):
    """Outcomes of a queue record: deleted, sent to the dead-letter queue, or delivered again."""

    DONE = "done"
    MALFORMED = "malformed"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """Answer to a lifecycle action. `at_once` False: node-termination answers when the node is drained."""

    action: HookAction
    result: HookResult
    at_once: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScarceOffering:
    """Capacity that is running out: an instance type in a zone."""

    instance_type: str
    zone: str
    capacity_type: CapacityType


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision:
    """Action on one instance of the message, and its reason. `subject` and `cause` are set if it is claimed."""

    instance: str
    action: NodeAction
    reason: str
    cluster: str | None = None
    subject: Subject | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision about one message.

    `keep_hook`: a launch hook of ours whose node is not Ready yet; the group holds the instance in Pending:Wait, where
    the minute reconciler finds it. `deferred`: claimed now, tainted and started by the minute reconciler when the
    budgets allow. `shifted`: clusters whose zonal shifts may have changed, `announced`: the shift that has begun.
    """

    kind: MessageKind | None
    outcome: RecordOutcome
    action: NodeAction
    reason: str
    at: datetime | None = None
    deadline: datetime | None = None
    nodes: tuple[NodeDecision, ...] = ()
    hook: HookAnswer | None = None
    keep_hook: bool = False
    deferred: bool = False
    unavailable: ScarceOffering | None = None
    ended_execution: str = ""
    shifted: tuple[str, ...] = ()
    announced: ZonalShift | None = None
