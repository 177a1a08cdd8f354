"""The pause switch: the simulation's model, with calls counted and failures planned."""

from threading import RLock

from leeward.model.pause import PauseRecord
from simulation.aws.pauses import SimPauses
from tests.fakes.calls import Calls


class FakePauses(Calls):
    """`records` by cluster."""

    def __init__(self) -> None:
        super().__init__()
        self._table = SimPauses()
        self._lock = RLock()
        self.records = self._table.records

    def read(self, cluster: str) -> PauseRecord:
        """The latest."""
        self._call("read")
        return self._table.read(cluster)

    def write(self, record: PauseRecord) -> PauseRecord | None:
        """None when another writer was faster."""
        with self._lock:
            self._call("write")
            return self._table.write(record)
