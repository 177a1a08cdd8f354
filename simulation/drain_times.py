"""Time that a drain has, computed from the world: announcements of EC2, policies in force, hooks that hold the
instance, executions that are open. The product's own notes are never read.

Where the world does not give an exact moment, the earliest possible one is taken: a rule that says "too early" may miss
a second then, and is never wrong."""

from collections.abc import Iterator
from dataclasses import replace

from leeward.model.group import HookResult
from leeward.policy.document import DrainPolicy, GroupSelector, NodePolicy
from simulation.asked import Asked, AskedOf, Kind
from simulation.drained import deletable, silent_for
from simulation.facts import group_of, policy_of
from simulation.view import WorldView

OUTLIVES = 60.0  # seconds in which a step may work on after its execution was stopped, by the time that one had left
CLOCKS = 5.0  # seconds by which those of two functions may differ
MARGIN = 5.0  # for answering a hook before EC2 takes the instance
REWRITTEN = 120.0  # seconds: a step that began before its policy was rewritten uses the earlier one
KNOWN_AFTER = 60.0  # seconds after the acknowledgement of a warning: every step that began before has ended


class DrainTimes:
    """Times of all drains, one object for each run; `read` it after each event."""

    def __init__(self) -> None:
        self.asked = AskedOf()
        self._known: dict[str, float] = {}  # instance -> when a message about its warning was acknowledged

    def read(self, view: WorldView) -> None:
        """Add the requests since the last read."""
        self.asked.read(view.asked)

    def warned(self, instance: str, at: float) -> None:
        """Record that the product has acknowledged a warning that EC2 takes the instance two minutes later."""
        self._known.setdefault(instance, at)

    def policy(self, instance: str, view: WorldView) -> NodePolicy | None:
        """Return the policy in force for the instance's group, also while the group is terminating it."""
        return policy_of(view, group_of(view, instance))

    def unsettled(self, view: WorldView) -> bool:
        """Return whether policies were rewritten a moment ago."""
        return view.now - view.rewritten < REWRITTEN

    def begun(self, instance: str, view: WorldView) -> float | None:
        """Return the earliest moment at which the present drain can have begun; None where nothing is under way."""
        working = view.working_since(instance)
        return working if working is not None else view.open_since.get(instance)

    def over(self, instance: str, drain: DrainPolicy, view: WorldView) -> float | None:
        """Return when the drain's own time is over: its time-out, which restarts with each attempt, or a later
        terminationGracePeriod, which counts from the opening of the record: an attempt does not extend it.
        """
        begun, grace = self.begun(instance, view), drain.termination_grace_period
        if begun is None:
            return None
        end = begun + drain.timeout.total_seconds()
        return end if grace is None else max(end, view.open_since.get(instance, begun) + grace.total_seconds())

    def may_release(self, instance: str, view: WorldView) -> bool:
        """Return whether an instance may be released with pods on it that could still leave: EC2 takes it now, or the
        drain's time is over. Not the latter where EC2 takes it later, where we have requested its termination ourselves
        so that a hook of ours holds it, or where the policy forces: then it is held until no pod is left that force
        deletes.
        """
        taken = self.asked.taken_at(instance, view.now)
        if taken is not None and view.now >= taken - MARGIN - CLOCKS:
            return True
        policy = self.policy(instance, view)
        if policy is None or self.unsettled(view):
            return True
        forced = policy.drain.force or (view.forced(instance) and not _ended_by_others(instance, view))
        if (
            (forced and deletable(instance, self.with_flags(instance, policy.drain, view), view))
            or instance in view.asked_by_us
            or self._waits(instance, view)
        ):
            return False
        over = self.over(instance, policy.drain, view)
        return over is not None and view.now >= over - CLOCKS

    def without_kubelet(self, instance: str, view: WorldView) -> bool:
        """Return whether a drain whose time is over waits for no grace: its kubelet has been silent for longer than
        `repair.notReadyAfter`, and that is all that was asked about the instance, or the policy forces.
        """
        policy, begun = self.policy(instance, view), self.begun(instance, view)
        if policy is None or begun is None:
            return False
        ill = all(asked.kind in {Kind.ILL, Kind.LIFTED} for asked in self.asked.of(instance))
        silent = silent_for(instance, view) >= policy.repair.not_ready_after.total_seconds() - CLOCKS
        over = view.now >= begun + policy.drain.timeout.total_seconds() - CLOCKS
        return over and silent and (ill or policy.drain.force)

    def with_flags(self, instance: str, drain: DrainPolicy, view: WorldView) -> DrainPolicy:
        """Return the policy with what the flags of a manual drain refuse besides."""
        present = tuple(self._present(instance, view))
        return replace(
            drain,
            evict_unmanaged=drain.evict_unmanaged and not any(one.refuses_unmanaged for one in present),
            delete_local_data=drain.delete_local_data and not any(one.refuses_local for one in present),
        )

    def announced(self, instance: str, view: WorldView) -> bool:
        """Return whether EC2 has announced that it takes the instance, at a moment that lies ahead."""
        taken = self.asked.taken_at(instance, view.now)
        return taken is not None and view.now < taken

    def may_delete(self, instance: str, grace: float, view: WorldView) -> bool:
        """Return whether a pod with that grace may be deleted past its budgets: a manual drain whose flags say so,
        force after the drain's time, or a node deadline that leaves the pod no more than its grace.
        """
        if self.unsettled(view) or any(asked.deletes for asked in self._present(instance, view)):
            return True
        policy, begun = self.policy(instance, view) or _of_forced_upgrade(instance, view), self.begun(instance, view)
        if policy is None and self.asked.taken_at(instance, view.now) is not None:  # also when detached from its group
            policy = policy_of(view, view.groups.get(view.launched_by(instance)))
        if policy is None or begun is None:
            return False
        drain, now = policy.drain, view.now + CLOCKS
        forced = drain.force or view.forced(instance)
        taken = self.asked.taken_at(instance, view.now)
        over = begun + drain.timeout.total_seconds()
        if forced and now >= min(over, over if taken is None else taken - MARGIN):
            return True
        if not (forced or drain.termination_grace_period is not None or at_deadline_deletes(drain)):
            return False
        deadline = self.node_deadline(instance, policy, view)
        return deadline is not None and now >= deadline - grace

    def node_deadline(self, instance: str, policy: NodePolicy, view: WorldView) -> float | None:
        """Return when the node terminates in any case: the policy's terminationGracePeriod, EC2, or another team's hook
        whose default abandons the instance or that alone holds it.
        """
        return min(self._ends(instance, policy, view), default=None)

    def deregistered_by(self, instance: str, policy: NodePolicy, view: WorldView) -> float:
        """Return until when no pod may be evicted while a load balancer has the node: never longer than half of the
        drain.
        """
        begun = self.begun(instance, view)
        if begun is None or self.asked.is_warned(instance):
            return 0
        wait, drain = policy.drain.deregistration_timeout.total_seconds(), policy.drain
        ends = [begun + drain.timeout.total_seconds(), *self._ends(instance, policy, view)]
        return min(begun + wait, begun + max(min(ends) - begun, 0) / 2) - CLOCKS

    def _ends(self, instance: str, policy: NodePolicy, view: WorldView) -> Iterator[float]:
        opened, grace = view.open_since.get(instance), policy.drain.termination_grace_period
        if grace is not None and opened is not None:  # an attempt that follows another has no more time than was left
            yield opened + grace.total_seconds()
        taken = self.asked.taken_at(instance, view.now)
        if taken is not None:
            yield taken
        holds = view.holds(instance)
        guarded = any(hold.ours for hold in holds)
        for hold in holds:
            if not hold.ours and (hold.default is HookResult.ABANDON or not guarded):
                yield hold.ends

    def keeps(self, instance: str, view: WorldView) -> bool:
        """Return whether the node is drained alone, so that its cordon stays."""
        return any(asked.keeps for asked in self._present(instance, view))

    def _present(self, instance: str, view: WorldView) -> Iterator[Asked]:
        """Yield the requests since the record that is open now was opened, or a moment before."""
        since = view.open_since.get(instance)
        yield from (one for one in self.asked.of(instance) if since is None or one.at >= since - KNOWN_AFTER)

    def _waits(self, instance: str, view: WorldView) -> bool:
        """Return whether EC2 takes the instance later, and the product has long known it."""
        known = self._known.get(instance)
        ahead = self.asked.is_warned(instance) and self.announced(instance, view)
        return ahead and known is not None and view.now - known > KNOWN_AFTER


def _of_forced_upgrade(instance: str, view: WorldView) -> NodePolicy | None:
    """Return the defaults, where a forced upgrade has overridden `NotSelected` for the group that holds the
    instance.
    """
    group = group_of(view, instance)
    if group is None or not view.forced(instance):
        return None
    return view.policies.policy_of(group) or NodePolicy(name="", selector=GroupSelector())


def _ended_by_others(instance: str, view: WorldView) -> bool:
    """Return whether its group terminates it without a request of ours: a forced upgrade of the group may then have had
    no part in it.
    """
    group = group_of(view, instance)
    lifecycle = "" if group is None else group.lifecycle_of(instance) or ""
    return lifecycle.startswith("Terminating") and instance not in view.asked_by_us


def at_deadline_deletes(drain: DrainPolicy) -> bool:
    """Return whether the policy deletes blocked pods where EC2 takes the node."""
    return getattr(drain, "at_deadline", "evict") == "delete"
