"""Ports of disruption rounds beside the ports that every package has: the record of a cluster's round and the
executions that run it. The rest of the seam is `ports.py`."""

from collections.abc import Mapping
from typing import Any, Protocol

from leeward.disruption.record import RoundRecord


class Rounds(Protocol):
    """The table's records of rounds, one for each cluster: its claim. Writes are conditional: the loser reads again."""

    def read(self, cluster: str) -> RoundRecord | None:
        """Return the cluster's latest record, open or ended, strongly consistent."""
        ...

    def write(self, record: RoundRecord) -> RoundRecord | None:
        """Return the record with version + 1, written if the version that it carries is still the newest of the same
        round (0: there is no record, or the last one has ended); None when another writer was faster.
        """
        ...


class RoundExecutions(Protocol):
    """The disruption-round state machine."""

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """Start an execution; True when it runs (new or already open), False when a closed one holds the name."""
        ...

    def running(self, name: str) -> bool:
        """Return whether the execution is open."""
        ...
