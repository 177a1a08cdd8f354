"""Execution of a state machine as Step Functions records it, cut down to the fields that show what happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

MACHINE_PREFIX = "leeward-"


class Machine(StrEnum):
    """State machines of Leeward."""

    TERMINATION = "node-termination"
    UPGRADE = "node-group-upgrade"
    MANAGED_UPGRADE = "managed-node-group-upgrade"
    DISRUPTION = "disruption"

    @property
    def named(self) -> str:
        """Name in Step Functions."""
        return MACHINE_PREFIX + self.value


class ExecutionStatus(StrEnum):
    """Statuses as DescribeExecution returns them."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    PENDING_REDRIVE = "PENDING_REDRIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Execution of a state machine. `stopped` None: it runs; `given`: its input; `error` and `cause`: if
    unsuccessful.
    """

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
    """Failed try of a state; Step Functions may have tried again."""

    at: datetime
    error: str
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Stay in one state. `left` None: the execution is in it, or ended in it; `output`: the output passed on; `works`:
    it does something, where other states choose or wait and pass on their input.
    """

    state: str
    entered: datetime
    left: datetime | None = None
    output: Mapping[str, Any] = field(default_factory=dict)
    works: bool = True
    failures: tuple[Failure, ...] = ()

    @property
    def next(self) -> str:
        """Next action that a step of ours returned, empty for a state that returns none."""
        return str(self.output.get("next") or "")

    @property
    def why(self) -> str:
        """Sentence of the step."""
        return str(self.output.get("why") or "")
