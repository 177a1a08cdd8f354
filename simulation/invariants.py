"""What must hold after every event; with `convergence`, also what must hold at the end of a run.

It looks at a `WorldView` and changes nothing. A `Checker` remembers how far it has looked, so that a check after every
event costs what has happened since; it watches the cluster's nodes, whose marks come and go between two events."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from leeward.policy.selection import policy_for
from local.cluster.history import Cause
from local.cluster.model import Cluster
from local.cluster.objects import Obj, name_of
from local.cluster.store import Change, ChangeType
from simulation.convergence import EVENTUAL, instance_of, is_marked, launched_for
from simulation.view import HookCall, Rule, Violation, WorldView

__all__ = ["Checker", "HookCall", "Rule", "Violation", "WorldView", "check"]

T = TypeVar("T")
HANDING_OVER = 300.0  # seconds: an execution whose record was opened again while it was ending sees that by itself


def check(view: WorldView, seed: int | None = None) -> list[Violation]:
    """What always holds, over everything that has happened so far. In a run keep a `Checker`."""
    return Checker(seed).after_event(view)


class Checker:
    """One for each run. `checks` counts the calls of `after_event`."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self.checks = 0
        self._cluster: Cluster | None = None
        self._seen: dict[str, int] = {}
        self._tokens: dict[str, str] = {}
        self._launched_for: set[str] = set()
        self._paid: set[str] = set()
        self._overlaps: dict[str, float] = {}
        self._cordoned: set[str] = set()  # nodes whose cordon came with our mark
        self._uncordoned_not: list[str] = []

    def after_event(self, view: WorldView) -> list[Violation]:
        """What the events since the last call have broken."""
        self.checks += 1
        if self._cluster is None:
            self._cluster = view.cluster
            view.cluster.observe(self._watch)
        return [
            Violation(seed=self.seed, at=view.now, rule=rule, text=text)
            for rule, rule_check in self._rules()
            for text in rule_check(view)
        ]

    def at_the_end(self, view: WorldView) -> list[Violation]:
        """What has not come to rest; only once faults and arrivals have stopped and `STUCK_AFTER` has passed."""
        found = self.after_event(view)
        for rule, rule_check in EVENTUAL:
            found += [Violation(seed=self.seed, at=view.now, rule=rule, text=text) for text in rule_check(view)]
        return found

    def _rules(self) -> tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...]:
        return (
            (Rule.EVICTION, self._evictions),
            (Rule.DELETION, self._deletions),
            (Rule.FOREIGN_HOOK, self._foreign_hooks),
            (Rule.ANSWER, self._answers),
            (Rule.LAUNCH, self._launches),
            (Rule.DECREMENT, self._decrements),
            (Rule.EXECUTION, self._executions),
            (Rule.REMOVAL, self._removals),
            (Rule.CORDON, self._cordons),
        )

    def _new(self, name: str, all_: Sequence[T]) -> Sequence[T]:
        """What has come since the last look."""
        seen, self._seen[name] = self._seen.get(name, 0), len(all_)
        return all_[seen:] if len(all_) > seen else ()

    def _evictions(self, view: WorldView) -> Iterator[str]:
        for violation in self._new("violations", view.cluster.history.violations()):
            if violation.cause is Cause.EVICTION:
                yield f"{violation.pod} evicted, {violation.pdb} has {violation.healthy} of {violation.desired}"

    def _deletions(self, view: WorldView) -> Iterator[str]:
        for deletion in self._new("deletions", view.deletions):
            if not _may_delete(deletion.instance, view):
                yield f"{deletion.pod} on {deletion.instance}"

    def _answers(self, view: WorldView) -> Iterator[str]:
        for group, hook, instance, by_us in self._new("answers", view.completed_hooks):
            if not by_us and view.ours(hook, group):
                yield f"{hook} of {group} for {instance} timed out, or was answered by somebody else"

    def _foreign_hooks(self, view: WorldView) -> Iterator[str]:
        for name, calls in (("completed", view.completed_hooks), ("heartbeaten", view.heartbeats)):
            for group, hook, instance, by_us in self._new(name, calls):
                if by_us and not view.ours(hook, group):
                    yield f"{hook} of {group} {name} for {instance}"

    def _launches(self, view: WorldView) -> Iterator[str]:
        for token, instance in self._new("launches", view.launches):
            first = self._tokens.setdefault(token, instance)
            self._launched_for.add(launched_for(token))
            if first != instance:
                yield f"token {token} launched {first} and {instance}"

    def _decrements(self, view: WorldView) -> Iterator[str]:
        for instance in self._new("decrements", view.decrements):
            if instance in self._paid:
                yield f"{instance} was paid for twice"
            elif instance not in self._launched_for:
                yield f"{instance} was terminated with decrement, nothing was launched for it"
            self._paid.add(instance)

    def _executions(self, view: WorldView) -> Iterator[str]:
        if len(view.open_executions) < 2:
            self._overlaps.clear()
            return
        instances: set[str] = set()
        twice: set[str] = set()
        for instance in filter(None, map(instance_of, view.open_executions)):
            (twice if instance in instances else instances).add(instance)
        self._overlaps = {instance: self._overlaps.get(instance, view.now) for instance in sorted(twice)}
        for instance, since in self._overlaps.items():
            if view.now - since > HANDING_OVER:
                self._overlaps[instance] = float("inf")  # told once
                yield f"{instance} has several for {view.now - since:.0f} s"

    def _removals(self, view: WorldView) -> Iterator[str]:
        for removal in self._new("removals", view.removals):
            if view.running(removal.instance):
                yield f"{removal.node} ({removal.instance})"

    def _cordons(self, _: WorldView) -> Iterator[str]:
        found, self._uncordoned_not = self._uncordoned_not, []
        yield from found

    def _watch(self, change: Change) -> None:
        """Inside a write: only looks."""
        if change.resource != "nodes":
            return
        name, old, new = name_of(change.obj), change.old, change.obj
        if change.type is ChangeType.DELETED or not _unschedulable(new):
            self._cordoned.discard(name)
        elif old is not None and not _unschedulable(old) and is_marked(new) and not is_marked(old):
            self._cordoned.add(name)
        elif old is not None and is_marked(old) and not is_marked(new) and name in self._cordoned:
            self._uncordoned_not.append(name)


def _unschedulable(node: Obj) -> bool:
    return bool(node["spec"].get("unschedulable"))


def _may_delete(instance: str, view: WorldView) -> bool:
    """Whether the policy of the instance's group lets pods be deleted past their budgets at all."""
    record = view.records.get(instance)
    group = view.groups.get(record.subject.group or "") if record else None
    policy = policy_for(view.policies.policies, group.name, group.tags) if group else None
    return policy is not None and (policy.drain.force or policy.drain.termination_grace_period is not None)
