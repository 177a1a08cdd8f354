"""The sheets of fn sync: the simulation's, with calls counted and failures planned."""

from collections.abc import Mapping
from datetime import datetime

from leeward.model.facts import FactKind, Sheet
from leeward.model.reservation import IpReservation, Pool, Promises
from simulation.aws.catalog import SimCatalog
from tests.fakes.calls import Calls


class FakeCatalog(Calls):
    """Empty until somebody keeps something."""

    def __init__(self) -> None:
        super().__init__()
        self._sheets = SimCatalog()

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """All of the cluster."""
        self._call("read")
        return self._sheets.read(cluster)

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """The later look stays."""
        self._call("keep")
        self._sheets.keep(cluster, kind, sheet)

    def promises(self, cluster: str) -> Promises:
        """As they stand."""
        self._call("promises")
        return self._sheets.promises(cluster)

    def promise(self, cluster: str, instance: str, promise: IpReservation, *, after: int) -> bool:
        """Only at the version that the caller read."""
        self._call("promise")
        return self._sheets.promise(cluster, instance, promise, after=after)

    def run_short(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Beside the promises."""
        self._call("run_short")
        self._sheets.run_short(cluster, pool, until)
