"""Taints of another deployment on the same cluster: the owner of a taint, and that ours never removes theirs."""

from collections.abc import Iterator

from leeward.model import well_known
from local.cluster.objects import Obj, name_of
from local.cluster.store import Change, ChangeType
from simulation.view import WorldView

OTHER_DEPLOYMENT = "444455556666-us-east-1"


def tainted_by_others(node: Obj) -> bool:
    """Return whether the taint on the Node names the other deployment: it carries one at most, for a taint's key and
    effect are unique.
    """
    return any(_theirs(taint) for taint in node["spec"].get("taints") or ())


def _theirs(taint: Obj) -> bool:
    return taint.get("key") == well_known.DISRUPTED_TAINT and taint.get("value") == OTHER_DEPLOYMENT


class ForeignTaints:
    """Rule about foreign taints, one object for each run; `watch` observes each write."""

    def __init__(self) -> None:
        self._gone: list[str] = []

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource != "nodes" or change.old is None or change.type is ChangeType.DELETED:
            return
        if tainted_by_others(change.old) and not tainted_by_others(change.obj):
            self._gone.append(name_of(change.obj))

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield nodes whose taint of the other deployment has gone while it works on them."""
        gone, self._gone = self._gone, []
        yield from (name for name in gone if name in view.tainted_by_others)
