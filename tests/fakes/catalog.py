"""The sheets of fn sync: the simulation's, with calls counted and failures planned."""

from collections.abc import Mapping

from leeward.model.facts import FactKind, Sheet
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
