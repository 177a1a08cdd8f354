"""Notes of a drain before its first eviction, in one write: its clocks, its taint, and that its pods may leave."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leeward.errors import LeewardError
from leeward.model.termination import Status, TerminationRecord
from leeward.ports import Ports
from leeward.termination.run import Run, noted_attempt


@dataclass(slots=True)
class FirstNotes:
    """Notes that are still to be written, and the run as it is after the last write."""

    run: Run
    times: dict[str, datetime] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    record: TerminationRecord | None = None  # as it was after the last write
    failure: LeewardError | None = None  # of the table, which no wait for the cluster answers

    def add(self, times: Mapping[str, datetime], **more: Any) -> None:
        """Note these times, and other values of `note_attempt`."""
        self.times |= times
        self.more |= {name: value for name, value in more.items() if value}

    @property
    def outdated(self) -> bool:
        """True if a cause has joined, or the attempt is over, since the step has read the record."""
        new = self.record
        return new is not None and (
            (new.version, new.attempt) != (self.run.version, self.run.attempt) or new.status is Status.CLOSED
        )

    def write(self, record: TerminationRecord, ports: Ports) -> TerminationRecord:
        """Write what was noted, and return the record as it then stands; the given one if there was nothing."""
        if self.times or self.more:
            times, more, self.times, self.more = self.times, self.more, {}, {}  # one try: the caller's error counts
            try:
                self.run, self.record = noted_attempt(self.run, ports, times, **more)
            except LeewardError as error:
                self.failure = error
                raise
            return self.record
        return record
