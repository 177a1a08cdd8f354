"""What a world shows of itself to the invariants (`view.WorldView`): read from its models at each call."""

from collections.abc import Mapping, Sequence, Set

from leeward.disruption.record import RoundRecord
from leeward.model import keys
from leeward.model.group import Group
from leeward.model.termination import LaunchPlan, TerminationRecord
from leeward.upgrade.record import UpgradeRecord
from simulation.aws.books import Book
from simulation.aws.fleet import SimFleet
from simulation.aws.queue import DeadLetter, Queue
from simulation.aws.table import SimClaims
from simulation.definitions import DISRUPTION_ROUND, NODE_GROUP_UPGRADE
from simulation.faults import Crowd, Faults, Injector
from simulation.kubernetes import Deletion, Eviction, Removal, SimKubernetes
from simulation.system import System
from simulation.timeline import Timeline


class Shown:
    """The models are its subclass's."""

    timeline: Timeline
    injector: Injector
    fleet: SimFleet
    queue: Queue
    claims: SimClaims
    system: System
    kubernetes: SimKubernetes
    _wanted: Mapping[str, int]

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self.timeline.now()

    @property
    def groups(self) -> Mapping[str, Group]:
        """As they stand."""
        return {name: group.described() for name, group in self.fleet.groups.items()}

    @property
    def books(self) -> Mapping[str, Book]:
        """By group."""
        return {name: group.book for name, group in self.fleet.groups.items()}

    @property
    def records(self) -> Mapping[str, TerminationRecord]:
        """By instance."""
        return self.claims.records

    @property
    def upgrades(self) -> Mapping[str, UpgradeRecord]:
        """By group."""
        return self.system.upgrades.records

    @property
    def rounds(self) -> Mapping[str, RoundRecord]:
        """By cluster."""
        return self.system.rounds.records

    @property
    def disrupting(self) -> Set[str]:
        """Names."""
        return self.system.machines[DISRUPTION_ROUND].executions.keys()

    @property
    def upgrading(self) -> Set[str]:
        """Names."""
        return self.system.machines[NODE_GROUP_UPGRADE].executions.keys()

    @property
    def maxima(self) -> Mapping[str, int]:
        """By group."""
        return {name: group.plan.maximum for name, group in self.fleet.groups.items()}

    @property
    def waiting(self) -> Set[tuple[str, str, str]]:
        """(group, hook, instance)."""
        return self.fleet.waiting.keys()

    @property
    def completed_hooks(self) -> Sequence[tuple[str, str, str, bool]]:
        """Ours that had an effect."""
        return self.system.groups.completed

    @property
    def timed_out(self) -> Sequence[tuple[str, str, str]]:
        """(group, hook, instance)."""
        return self.fleet.timed_out

    @property
    def heartbeats(self) -> Sequence[tuple[str, str, str, bool]]:
        """Ours that had an effect."""
        return self.system.groups.heartbeats

    @property
    def open_executions(self) -> Set[str]:
        """Names."""
        return self.system.machine.executions.keys()

    def started(self, execution: str) -> float:
        """Seconds since 1970."""
        return self.system.machine.executions[execution].started

    @property
    def acknowledged(self) -> Sequence[tuple[str, str]]:
        """(message id, body)."""
        return self.queue.acknowledged

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """Put there by us, and redriven."""
        return self.queue.dead_letters

    @property
    def faultless(self) -> bool:
        """Only arrivals."""
        return self.injector.faults == Faults.none()

    @property
    def queue_depth(self) -> int:
        """Messages that wait to be delivered."""
        return self.queue.depth - self.in_flight

    @property
    def in_flight(self) -> int:
        """Messages that were delivered and not deleted."""
        return sum(m.receives > 0 and m.visible > self.now for m in self.queue.messages.values())

    @property
    def launches(self) -> Sequence[tuple[str, str]]:
        """(token, instance)."""
        return self.system.groups.launches

    @property
    def plans(self) -> Sequence[tuple[str, LaunchPlan]]:
        """(instance, plan)."""
        return self.claims.plans

    @property
    def crowded(self) -> Mapping[str, Crowd]:
        """By zone."""
        return self.injector.crowded

    @property
    def decrements(self) -> Sequence[str]:
        """Instances."""
        return self.system.groups.decrements

    @property
    def terminations(self) -> Sequence[str]:
        """Instances."""
        return self.system.groups.terminations

    @property
    def strays(self) -> Sequence[str]:
        """Neither in a group nor detached from it, which takes the tag away."""
        instances = self.fleet.instances.values()
        return [m.id for m in instances if m.lifecycle is None and not m.gone and keys.GROUP_TAG in m.tags]

    @property
    def deletions(self) -> Sequence[Deletion]:
        """Past the Eviction API."""
        return self.kubernetes.deletions

    @property
    def evictions(self) -> Sequence[Eviction]:
        """Through the Eviction API."""
        return self.kubernetes.evictions

    @property
    def replicas(self) -> Mapping[str, int]:
        """Of the fleet's Deployments."""
        return self._wanted

    def target(self, instance: str, at: float) -> str | None:
        """By its group."""
        found = self.fleet.instances.get(instance)
        return None if found is None else self.system.balancers.state(found.group, instance, at)

    @property
    def removals(self) -> Sequence[Removal]:
        """Nodes."""
        return self.kubernetes.removals

    def ours(self, hook: str, group: str) -> bool:
        """Whether fn sync put it there."""
        return (group, hook) in self.system.groups.put

    def running(self, instance: str) -> bool:
        """Whether EC2 has not begun to end it."""
        there = self.fleet.instances.get(instance)
        return there is not None and not there.gone
