"""Rules that what could succeed did: ends of upgrades and of disruption runs.

Read from the executions as operators see them, and from the world; no record of the product is asked."""

from collections.abc import Iterator

from leeward.model import well_known
from local.cluster.objects import Obj, annotations_of, name_of
from simulation.convergence import is_tainted
from simulation.definitions import DISRUPTION_RUN, NODE_GROUP_UPGRADE, UPGRADES
from simulation.endings import Ending
from simulation.facts import News, group_of
from simulation.failure_causes import JUDGED, PREFLIGHT, false_causes, held_for_good, superseded
from simulation.foreign_taints import tainted_by_others
from simulation.node_instances import instance_behind
from simulation.taint_times import TaintTimes
from simulation.view import WorldView

UNDONE = {"pause", "abort"}  # control requests that never end in an upgrade
UPGRADED = "Upgraded"
TO_THE_OPERATOR = {PREFLIGHT, "InvalidInput"}  # nothing was begun: the operator decides
HARMLESS = {"ControlRequestRecorded", "Delegated", "Continued"}
SETTLES = 1800.0  # seconds after a failure: a pause between two attempts, and a run of the reconciler
RECOVERS = 600.0  # seconds after the last fault, by which its consequences are over


class Liveness:
    """Ends of one run; `quiet` is when faults and arrivals have stopped."""

    def __init__(self, times: TaintTimes) -> None:
        self._times = times
        self._new = News().of
        self._last: dict[str, Ending] = {}  # group -> last end of an upgrade of it
        self._runs: list[Ending] = []  # disruption runs that began after all troubles
        self._quiet: float | None = None
        self._failed: dict[str, float] = {}  # group -> when an upgrade of it has failed, until its leftovers are judged

    def ends(self, view: WorldView) -> Iterator[str]:
        """Yield ends that nothing in the world excuses, or whose text names what the world does not show."""
        if self._quiet is None and view.over:
            self._quiet = view.now
        for ending in self._new("endings", view.endings):
            if ending.machine in UPGRADES:
                yield from self._upgrade(ending, view)
            elif ending.machine == DISRUPTION_RUN:
                yield from self._disruption(ending, view)

    def leftovers(self, view: WorldView) -> Iterator[str]:
        """Yield what an upgrade has left some time after its failure, beside cordons of old nodes, which the next start
        or an abort needs.
        """
        for group, at in list(self._failed.items()):
            if view.rolls(group):
                del self._failed[group]
            elif view.now - at > SETTLES:
                del self._failed[group]
                for node in view.cluster.store.sorted("nodes"):
                    member = group_of(view, instance_behind(node))
                    if member is not None and member.name == group and view.running(instance_behind(node)):
                        yield from _left(node, group, view)

    def at_the_end(self, view: WorldView) -> Iterator[str]:
        """Yield groups whose last upgrade, begun when all troubles were over, has not ended well."""
        for group, ending in sorted(self._last.items()):
            late = self._quiet is not None and ending.began > self._quiet + RECOVERS
            failed = ending.status == "FAILED" and ending.state not in TO_THE_OPERATOR
            failed = failed and not (ending.machine != NODE_GROUP_UPGRADE and ending.state in JUDGED)  # as EKS says it
            if late and failed and not held_for_good(ending, view):
                yield f"{group}: {ending.name} ended with {ending.state}: {ending.cause[:300]}"

    def _upgrade(self, ending: Ending, view: WorldView) -> Iterator[str]:
        if ending.group not in view.groups:
            return
        if ending.status == "TIMED_OUT":
            yield f"{ending.name} of {ending.group} timed out in {ending.state}"
        elif ending.status == "SUCCEEDED":
            if ending.action in UNDONE and ending.state == UPGRADED:
                yield f"{ending.name} was started to {ending.action} the upgrade of {ending.group}, and has upgraded it"
            if ending.state not in HARMLESS:
                self._last[ending.group] = ending
        elif ending.status == "FAILED" and ending.state not in TO_THE_OPERATOR:
            self._last[ending.group], self._failed[ending.group] = ending, view.now
            yield from self._failure(ending, view)

    def _failure(self, ending: Ending, view: WorldView) -> Iterator[str]:
        failed = f"{ending.name} of {ending.group} ended with {ending.state}"
        if ending.state not in JUDGED:
            if self._is_calm(ending, view) and not superseded(ending, view):
                yield f"{failed} without a fault: {ending.cause[:300]}"
        elif ending.machine == NODE_GROUP_UPGRADE and (texts := [*false_causes(ending, self._times.free, view)]):
            yield f"{failed}: {'; '.join(texts)}"

    def _disruption(self, ending: Ending, view: WorldView) -> Iterator[str]:
        bad = ending.status in {"FAILED", "TIMED_OUT"} and ending.state not in TO_THE_OPERATOR
        if bad and self._is_calm(ending, view):
            yield f"{ending.name} ended with {ending.status} {ending.state} without a fault: {ending.cause[:300]}"

    def _is_calm(self, ending: Ending, view: WorldView) -> bool:
        """Return whether no fault can have hit the execution. One that names no cluster looks for its group in every
        account.
        """
        if "cluster" not in ending.asked and view.refused_anywhere(ending.began):
            return False
        return view.faultless or (self._quiet is not None and ending.began > self._quiet + RECOVERS)


def _left(node: Obj, group: str, view: WorldView) -> Iterator[str]:
    instance, notes = instance_behind(node), annotations_of(node)
    there = view.groups[group]
    template = next((one.template for one in there.instances if one.id == instance), None)
    if instance in view.open_since:
        return  # it is drained, or held by its hook while pods may not leave
    is_new = template is not None and there.launch.template is not None and template == there.launch.template
    if is_new and group in {notes.get(well_known.CORDONED_FOR), notes.get(well_known.EXCLUDED_FOR)}:
        yield f"{name_of(node)} of {group} is new and cordoned"
    ours = is_tainted(node) and not tainted_by_others(node)
    if ours and view.working_since(instance) is None:
        yield f"{name_of(node)} of {group} carries our taint, and nothing works on it"
