"""Ports to Step Functions: starting, ending and reading executions; and to SQS: the dead-letter queue, and the delay
until a failed message is delivered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from leeward.model.execution import Execution, Machine, Step


class Executions(Protocol):
    """The node-termination state machine."""

    def start(self, instance: str, attempt: int, unclaimed: Mapping[str, str] | None = None) -> bool:
        """Start the execution named for the attempt; True when it runs (new or already open),
        False when a closed one holds the name. `unclaimed`: more of its input, where the table could not take the
        claim.
        """
        ...

    def running(self, instance: str, attempt: int) -> bool:
        """Return whether the execution named for the attempt is open."""
        ...

    def all_running(self) -> frozenset[str]:
        """Return the names of all open executions; one call reads a thousand and may lag by seconds, in both
        directions.
        """
        ...

    def wake(self, token: str) -> None:
        """End a pause; a token whose task has ended is no error."""
        ...


class NamedExecutions(Protocol):
    """A state machine whose executions its callers name: both of upgrades, and that of disruption."""

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """Start an execution; True when it runs (new or already open), False when a closed one holds the name."""
        ...

    def running(self, name: str) -> bool:
        """Return whether the execution is open."""
        ...


class PastExecutions(Protocol):
    """Executions of Leeward's state machines, running ones and those that ended less than 90 days ago."""

    def look(self, machine: Machine, name: str) -> Execution | None:
        """Return one execution by its name; None when Step Functions does not know it, never did or not any more."""
        ...

    def steps(self, machine: Machine, name: str) -> Sequence[Step] | None:
        """Return its whole history, in the order in which states were entered; None as for `look`."""
        ...


class DeadLetters(Protocol):
    """Dead-letter queue, to which malformed messages are sent without a retry."""

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Send the body with the message attributes `reason` and `message_id`, the id of the original message."""
        ...


class Redelivery(Protocol):
    """Delay until a queue delivers failed messages again."""

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Set the delays of messages of one queue. `delays`: receipt handle -> seconds; `queue`: its ARN, empty for the
        interruption queue. An expired handle is skipped: its message is visible already.
        """
        ...
