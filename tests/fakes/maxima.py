"""Raised maximum sizes: the simulation's model, with calls counted and failures planned."""

from collections.abc import Iterable, Mapping
from threading import RLock

from leeward.model.capacity import RaisedMaximum
from simulation.aws.maxima import SimMaxima
from tests.fakes.calls import Calls


class FakeMaxima(Calls):
    """`items` by group."""

    def __init__(self) -> None:
        super().__init__()
        self._table = SimMaxima()
        self._lock = RLock()
        self.items = self._table.items

    def read(self, group: str) -> RaisedMaximum | None:
        """As it stands."""
        self._call("read")
        return self._table.read(group)

    def read_all(self, groups: Iterable[str]) -> Mapping[str, RaisedMaximum]:
        """As they stand."""
        self._call("read_all")
        return self._table.read_all(groups)

    def write(self, item: RaisedMaximum) -> RaisedMaximum | None:
        """None when another writer was faster."""
        with self._lock:
            self._call("write")
            return self._table.write(item)
