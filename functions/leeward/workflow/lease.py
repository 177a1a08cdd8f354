"""Lease of an execution on its record: the record names the execution that works on it.

Each write is conditional on the version that was read. Of several executions for one record, one continues and the
others end."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from leeward.errors import RecordChangedError
from leeward.ports import Ports
from leeward.workflow.steps import RunDocument, Step


class LeaseLostError(RecordChangedError):
    """Another execution has taken the lease: this one must not write the record again. The message names the other."""


class LeasedRun(RunDocument, Protocol):
    """Run document of an execution with a lease."""

    def handed_over(self, why: str) -> Self:
        """Return the document of an execution that ends because another one has the lease."""
        ...


class Versioned(Protocol):
    """Record with the version at which it was read."""

    @property
    def version(self) -> int: ...


R = TypeVar("R", bound=LeasedRun)
V = TypeVar("V", bound=Versioned)


def guarded(steps: Mapping[str, Step[R]]) -> dict[str, Step[R]]:
    """Wrap the steps (by name): where one raises LeaseLostError, its execution ends with the message as reason."""

    def wrapped(step: Step[R]) -> Step[R]:
        def take(run: R, call: Mapping[str, Any], ports: Ports) -> R:
            try:
                return step(run, call, ports)
            except LeaseLostError as lost:
                return run.handed_over(str(lost))

        return take

    return {name: wrapped(step) for name, step in steps.items()}


def write_version(record: V, write: Callable[[V], V | None], subject: str) -> V:
    """Write the record and return it with its new version. `write` returns None if the record has another version by
    now: then RecordChangedError is raised, and Step Functions retries the step. `subject`: for the message.
    """
    written = write(record)
    if written is None:
        raise RecordChangedError(f"{subject}: another writer was first at version {record.version}")
    return written
