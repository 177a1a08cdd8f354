"""Rule for budgets of maintenance far ahead: a node is tainted only while its group's budgets allow one more."""

from collections.abc import Iterator
from math import ceil

from leeward.policy.document import Budget
from local.cluster.objects import Obj
from simulation.asked import HANDLED_WITHIN, Kind
from simulation.convergence import is_tainted
from simulation.drain_times import DrainTimes
from simulation.facts import News, always, group_of, is_paced, policy_of
from simulation.message_rules import moved_near
from simulation.node_instances import instance_behind
from simulation.view import WorldView

EVENT_CLOCKS = 30.0  # seconds by which the clock of a message's sender may be ahead
SETTLED = 120.0  # a node unavailable for less may have been unknown when the reconciler counted


class MaintenanceBudgets:
    """Unavailable nodes of one run, and the nodes tainted against their budgets."""

    def __init__(self, times: DrainTimes) -> None:
        self._times = times
        self._news = News()
        self._now = 0.0
        self._tainted: list[str] = []  # instances whose node has just been tainted
        self._unavailable: dict[str, float] = {}  # instance -> since when
        self._suspected: dict[str, tuple[float, str]] = {}

    def note_availability(self, node: Obj) -> None:
        """Record since when a node is unavailable: tainted, not ready, or being deleted."""
        instance = instance_behind(node)
        conditions = (node.get("status") or {}).get("conditions") or ()
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        if is_tainted(node) or not ready or "deletionTimestamp" in node["metadata"]:
            self._unavailable.setdefault(instance, self._now)
        else:
            self._unavailable.pop(instance, None)

    def note_taint(self, instance: str) -> None:
        """Record that the node of an instance has just been tainted."""
        self._tainted.append(instance)

    def forget(self, instance: str) -> None:
        """Drop the instance: its node was deleted."""
        self._unavailable.pop(instance, None)

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield nodes tainted against their budgets. A node of maintenance far ahead is tainted only while its group's
        budgets allow one more. It is reported some time later: the maintenance may just have been moved nearer, by a
        message that is acknowledged after the taint. A manually started execution needs no budget, nor does an instance
        that has ended in between.
        """
        self._now = view.now
        tainted, self._tainted = self._tainted, []
        for instance in tainted:
            paced = is_paced(instance, self._times.asked, view) and not _may_pay(instance, view)
            if view.running(instance) and paced and (text := self._too_many(instance, view)):
                self._suspected[instance] = (view.now, text)
        for instance in moved_near(self._news.of("moved", view.acknowledged), view.now):
            self._suspected.pop(instance, None)
        for instance, (at, text) in list(self._suspected.items()):
            if view.now - at > HANDLED_WITHIN:
                del self._suspected[instance]
                if not self._asked_otherwise(instance, at):
                    yield text

    def _asked_otherwise(self, instance: str, at: float) -> bool:
        """Return whether another message had asked for it: a node is tainted before the message is recorded."""
        others = [one for one in self._times.asked.of(instance) if one.kind is not Kind.MAINTENANCE]
        return any(one.at <= at + EVENT_CLOCKS for one in others)

    def _too_many(self, instance: str, view: WorldView) -> str | None:
        group = group_of(view, instance)
        policy = policy_of(view, group)
        if group is None or policy is None:
            return None
        zones = {member.id: member.zone for member in group.instances}
        joined = [instance_behind(node) for node in view.cluster.store.each("nodes") if instance_behind(node) in zones]
        busy = [name for name in zones if name in self._unavailable and self._counts(name, view)]
        for budget in filter(always, policy.disruption.budgets):
            if budget.zone in {None, zones[instance]}:
                most = _limit(budget, sum(budget.zone in {None, zones[name]} for name in joined))
                held = sum(budget.zone in {None, zones[name]} for name in busy)
                if held > most:
                    where = f"{group.name} in {budget.zone}" if budget.zone else group.name
                    return f"{instance}: {held} nodes of {where} are unavailable, {most} may be"
        return None

    def _counts(self, instance: str, view: WorldView) -> bool:
        """Return whether the minute reconciler has to count an unavailable node: it knew of it, or tainted
        it itself.
        """
        paced = is_paced(instance, self._times.asked, view)
        return paced or view.now - self._unavailable[instance] > SETTLED


def _limit(budget: Budget, nodes: int) -> int:
    return ceil(nodes * budget.nodes / 100) if budget.percent else budget.nodes


def _may_pay(instance: str, view: WorldView) -> bool:
    """Return whether its group owes for a launch of ours: the instance may be terminated as the offset, and that waits
    for no budget.
    """
    group = group_of(view, instance)
    book = None if group is None else view.books.get(group.name)
    return book is not None and book.most > 0
