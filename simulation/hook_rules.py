"""Rules that must hold for lifecycle hooks: answers, heartbeats of what waits, launch hooks that give up."""

from collections.abc import Iterator
from math import inf

from simulation.arrivals import AWAY
from simulation.facts import News
from simulation.view import WorldView

NEVER_JOINS = 900.0  # seconds past its own time-out for which a launch hook may be kept waiting for a Node
BOOTS_WITHIN = 900.0  # seconds after its launch: an instance whose Node is not there then does not join any more
RECONCILED = 130.0  # seconds: a heartbeat that ended so long before was the last, where one reconciler run fails

OUTLASTS_RECONCILER = 300.0  # seconds: a shorter hook that only the reconciler can know ends where one or two runs fail
ACTS_AGAIN = 75.0  # seconds: failed messages come sooner, but a failed execution is started by the minute reconciler
NAMED = 190.0  # seconds: policies are cached for a minute, the reconciler looks each minute, and one run may fail
REACTS_WITHIN = 60.0  # seconds from the first event about an instance to its first heartbeat


class HookRules:
    """Rules for hooks, one object for each run."""

    def __init__(self) -> None:
        self._new = News().of
        self._reported: set[tuple[str, str]] = set()
        self._kept: dict[tuple[str, str, str], float] = {}  # group, hook, instance -> our last heartbeat

    def answers(self, view: WorldView) -> Iterator[str]:
        """Yield hooks of ours that timed out. One times out only for a launch that does not join, where it was kept
        waiting for as long as Auto Scaling allows, where it is short and its event was lost or a service was away,
        where its account refused its role until the end, and where its owner had taken it out of the policies before
        any termination was open (docs/designs/which-hooks-are-ours.md).
        """
        for group, hook, instance, by_us in self._new("kept", view.heartbeats):
            if by_us:
                self._kept[group, hook, instance] = view.now
        for group, hook, instance in self._new("timed out", view.timed_out):
            if not view.ours(hook, group) or view.held_to_the_end(group, hook, instance):
                continue
            if view.ends(hook, group) and self._unheard(group, hook, instance, view):
                continue
            if _was_refused(view.time_out(group, hook), view) or _stood_still(view.time_out(group, hook), view):
                continue
            if instance not in view.open_since and _was_given_up(group, hook, view):
                continue
            if view.ends(hook, group) or not _never_joined(instance, view):
                yield f"{hook} of {group} for {instance} timed out"

    def _unheard(self, group: str, hook: str, instance: str, view: WorldView) -> bool:
        """Return whether a short hook's events were lost or late, and no other event had named the instance in time. A
        termination that was open before the hook began uses facts that are minutes old until an event comes
        (docs/designs/aws-calls.md), so it knows of the hook only if it has heartbeaten it.
        """
        time_out, opened = view.time_out(group, hook), view.open_since.get(instance, inf)
        kept = view.now - self._kept.get((group, hook, instance), -inf) < 2 * time_out
        if opened < view.now - time_out and not kept:
            opened = inf
        first = min(view.event_came(group, hook, instance), opened)
        return time_out < OUTLASTS_RECONCILER and first > view.now - REACTS_WITHIN

    def misdirected(self, view: WorldView) -> Iterator[str]:
        """Yield heartbeats under a name other than that of the hook that waits."""
        for group, hook, instance in self._new("misdirected", view.misdirected):
            yield f"{hook} of {group} for {instance}"

    def launches(self, view: WorldView) -> Iterator[str]:
        """Yield launch hooks kept waiting too long. Checked after each heartbeat: nothing else keeps a hook waiting. An
        API server that does not answer says nothing about the Node.
        """
        for _, hook, instance, by_us in self._new("heartbeats", view.heartbeats):
            if not by_us or (hook, instance) in self._reported or view.joined(instance) or view.troubled(RECONCILED):
                continue
            for hold in view.holds(instance):
                if hold.hook == hook and hold.launching and view.now - hold.since > hold.timeout + NEVER_JOINS:
                    self._reported.add((hook, instance))
                    yield f"{hook} of {instance} has waited for {view.now - hold.since:.0f} s, no Node has joined"


def _stood_still(time_out: float, view: WorldView) -> bool:
    """Return whether the hook is so short that it ends while a service is away that every heartbeat needs."""
    return time_out <= 2 * AWAY[1] and view.stood_still(ACTS_AGAIN)


def _was_refused(time_out: float, view: WorldView) -> bool:
    """Return whether the account refused its role until shortly before the time-out, for longer than the interval of
    heartbeats, which is half of it.
    """
    until_the_end = view.refused_since(view.now - ACTS_AGAIN) > 0
    return until_the_end and view.refused_since(view.now - time_out) > time_out / 2


def _was_given_up(group: str, hook: str, view: WorldView) -> bool:
    """Return whether for most of its last time-out no policy in force named the hook: it is its owner's then."""
    time_out = view.time_out(group, hook)
    unnamed = view.unnamed_since(view.now - time_out, group, hook)
    return unnamed > 0 and time_out - unnamed < NAMED


def _never_joined(instance: str, view: WorldView) -> bool:
    launched = view.launched(instance)
    return launched is not None and not view.joined(instance) and view.now >= launched + BOOTS_WITHIN - RECONCILED
