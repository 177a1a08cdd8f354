"""Managed node groups in memory."""

from collections.abc import Iterable

from leeward.errors import ObjectGoneError
from leeward.model.nodegroup import Nodegroup
from tests.fakes.calls import Calls


class FakeNodegroups(Calls):
    """`asked["describe"]` counts calls; `fail("describe", error)` makes them raise."""

    def __init__(self, nodegroups: Iterable[Nodegroup] = ()) -> None:
        super().__init__()
        self.known = {(one.cluster, one.name): one for one in nodegroups}

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """The one that was put in."""
        self._call("describe")
        found = self.known.get((cluster, name))
        if found is None:
            raise ObjectGoneError(f"no node group {name} in {cluster}")
        return found
