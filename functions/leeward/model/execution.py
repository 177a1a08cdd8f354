"""An execution of a state machine as Step Functions remembers it, cut down to what tells what happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

MACHINE_PREFIX = "leeward-"


class Machine(StrEnum):
    """Our state machines."""

    TERMINATION = "node-termination"
    UPGRADE = "node-group-upgrade"
    ROUND = "disruption-round"

    @property
    def named(self) -> str:
        """As Step Functions knows it."""
        return MACHINE_PREFIX + self.value


class ExecutionStatus(StrEnum):
    """As DescribeExecution says it."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    PENDING_REDRIVE = "PENDING_REDRIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution. `stopped` None: it runs; `given`: its input; `error` and `cause`: of one that did not succeed."""

    machine: Machine
    name: str
    status: ExecutionStatus
    started: datetime
    stopped: datetime | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One try of a state that failed; Step Functions may have tried again."""

    at: datetime
    error: str
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stay in a state. `left` None: the execution is in it, or ended in it; `output`: what it went on with;
    `works`: it does something, where other states choose or wait and hand on what they were given.
    """

    state: str
    entered: datetime
    left: datetime | None = None
    output: Mapping[str, Any] = field(default_factory=dict)
    works: bool = True
    failures: tuple[Failure, ...] = ()

    @property
    def next(self) -> str:
        """What a step of ours said comes next, empty for a state that says nothing."""
        return str(self.output.get("next") or "")

    @property
    def why(self) -> str:
        """Its sentence."""
        return str(self.output.get("why") or "")
