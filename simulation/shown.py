"""View of a world for the invariants (`view.WorldView`): read from its models at each call."""

from collections.abc import Iterator, Mapping, Sequence, Set

from leeward.disruption.record import DisruptionRecord
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.termination import LaunchPlan, TerminationRecord
from leeward.upgrade.record import UpgradeRecord
from local.cluster.model import Cluster
from local.cluster.objects import is_ready
from simulation.aws.books import Book
from simulation.aws.compute import IN_SERVICE
from simulation.aws.events import ACCOUNT, REGION
from simulation.aws.fleet import SimFleet
from simulation.aws.queue import DeadLetter, Queue
from simulation.aws.reboots import Requested
from simulation.aws.table import SimClaims
from simulation.definitions import DISRUPTION_RUN, UPGRADES
from simulation.faults import Crowd, Injector
from simulation.kubernetes import SimKubernetes
from simulation.machine import Execution
from simulation.removed_objects import Deletion, Eviction, Removal
from simulation.shown_aws import ShownAws
from simulation.shown_hooks import ShownHooks
from simulation.system import System
from simulation.timeline import Timeline

FORCED_FOR = 6 * 3600.0  # seconds: longer than any upgrade of a simulated group


class Shown(ShownAws, ShownHooks):
    """View over the models of its subclass."""

    timeline: Timeline
    injector: Injector
    fleet: SimFleet
    queue: Queue
    state_changes: Queue
    claims: SimClaims
    system: System
    kubernetes: SimKubernetes
    cluster: Cluster
    forced_upgrades: list[tuple[str, float]]
    started_manually: set[str]
    _wanted: dict[str, int]

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self.timeline.now()

    @property
    def groups(self) -> Mapping[str, Group]:
        """Current groups, by name."""
        return {name: group.described() for name, group in self.fleet.groups.items()}

    @property
    def books(self) -> Mapping[str, Book]:
        """Books by group."""
        return {name: group.book for name, group in self.fleet.groups.items()}

    @property
    def records(self) -> Mapping[str, TerminationRecord]:
        """Termination records by instance, for reports and tests; no rule reads them."""
        return self.claims.records

    @property
    def upgrades(self) -> Mapping[str, UpgradeRecord]:
        """Upgrade records by group."""
        return self.system.upgrades.records

    @property
    def reboots(self) -> Sequence[Requested]:
        """Reboots that we have requested."""
        return self.fleet.reboots.requested

    @property
    def ringing(self) -> Mapping[str, float]:
        """Alarms of the account."""
        return self.system.alarms.rings

    @property
    def disruptions(self) -> Mapping[str, DisruptionRecord]:
        """Disruption runs by cluster."""
        return self.system.disruptions.records

    @property
    def disrupting(self) -> Set[str]:
        """Names of open executions."""
        return self.system.machines[DISRUPTION_RUN].executions.keys()

    @property
    def upgrading(self) -> Set[str]:
        """Names of open executions."""
        return {name for machine in UPGRADES for name in self.system.machines[machine].executions}

    @property
    def maxima(self) -> Mapping[str, int]:
        """Planned maximum size by group; of a managed node group EKS', which is the one that it has
        (`Rule.MANAGED`).
        """
        eks, groups = self.system.managed_updates.of_group, self.fleet.groups.items()
        return {name: group.maximum if eks(name) or group.deleted else group.plan.maximum for name, group in groups}

    @property
    def open_executions(self) -> Set[str]:
        """Names of open executions."""
        return self.system.machine.executions.keys()

    def started(self, execution: str) -> float:
        """Return the start in seconds since 1970."""
        return self.system.machine.executions[execution].started

    @property
    def account(self) -> tuple[str, str]:
        """Account and Region of the cluster: those of the deployment."""
        return ACCOUNT, REGION

    @property
    def named_by_operators(self) -> Set[str]:
        """Names in the inputs of executions that operators start."""
        upgrades = (one.input for name in UPGRADES for one in self.system.machines[name].executions.values())
        return {*self.started_manually, *self.system.upgrades.records, *(str(one.get("group")) for one in upgrades)}

    @property
    def acknowledged(self) -> Sequence[tuple[str, str]]:
        """Messages as (message id, body)."""
        return self.queue.acknowledged

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """Dead letters, put there by us, and redriven."""
        return self.queue.dead_letters

    @property
    def faultless(self) -> bool:
        """True if there are only arrivals."""
        return self.injector.faultless

    @property
    def only_kubernetes_fails(self) -> bool:
        """True if AWS and the functions do what they should."""
        return self.injector.only_kubernetes_fails

    @property
    def queue_depth(self) -> int:
        """Messages that wait to be delivered."""
        return self.queue.depth + self.state_changes.depth - self.in_flight

    @property
    def in_flight(self) -> int:
        """Messages that were delivered and not deleted."""
        queues = (self.queue, self.state_changes)
        return sum(m.receives > 0 and m.visible > self.now for queue in queues for m in queue.messages.values())

    @property
    def launches(self) -> Sequence[tuple[str, str]]:
        """Launches as (token, instance)."""
        return self.system.groups.launches

    @property
    def plans(self) -> Sequence[tuple[str, LaunchPlan]]:
        """Launch plans as (instance, plan)."""
        return self.claims.plans

    def troubled(self, within: float) -> bool:
        """Return whether the Kubernetes API is in trouble, as the faults say."""
        return self.injector.troubled(within)

    @property
    def crowded(self) -> Mapping[str, Crowd]:
        """Crowded subnets by zone."""
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
        """Instances neither in a group nor detached from it, which removes the tag."""
        instances = self.fleet.instances.values()
        return [m.id for m in instances if m.lifecycle is None and not m.gone and well_known.GROUP_TAG in m.tags]

    @property
    def deletions(self) -> Sequence[Deletion]:
        """Pods deleted past the Eviction API."""
        return self.kubernetes.deletions

    @property
    def evictions(self) -> Sequence[Eviction]:
        """Pods evicted through the Eviction API."""
        return self.kubernetes.evictions

    @property
    def replicas(self) -> dict[str, int]:
        """Wanted replicas of the fleet's Deployments, which their owners change."""
        return self._wanted

    @property
    def open_since(self) -> Mapping[str, float]:
        """Opening time of the table's open records."""
        return self.claims.index.since

    def known_causes(self, instance: str) -> Sequence[str]:
        """Return the ids of the causes."""
        record = self.claims.records.get(instance)
        return () if record is None else [cause.id for cause in record.all_causes]

    @property
    def asked_by_us(self) -> Set[str]:
        """Instances that we asked for and that are still terminating."""
        asked = (self.fleet.instances.get(one) for one in self.system.groups.asked_for)
        return {one.id for one in asked if one is not None and (one.lifecycle or "").startswith("Terminating")}

    def forced(self, instance: str) -> bool:
        """Return whether an upgrade of its group was started with force in the last hours before its record was opened,
        or since.
        """
        there, opened = self.fleet.instances.get(instance), self.open_since.get(instance, self.now)
        return there is not None and any(
            group == there.group and at > opened - FORCED_FOR for group, at in self.forced_upgrades
        )

    @property
    def reused(self) -> Set[str]:
        """Instances started out of warm pools."""
        return self.fleet.warm_pools.reused

    @property
    def back_in_service(self) -> Mapping[str, float]:
        """Instances that have come back from Standby, and when."""
        return self.fleet.detachment.back_in_service

    def joined(self, instance: str) -> bool:
        """Return whether its Node has joined, true also where EC2 does not know the instance any more."""
        there = self.fleet.instances.get(instance)
        return there is None or there.joined

    def launched(self, instance: str) -> float | None:
        """Return the launch time that EC2 reports."""
        there = self.fleet.instances.get(instance)
        return None if there is None else there.launched

    def launched_by(self, instance: str) -> str:
        """Return the group that the fleet remembers."""
        return self.fleet.launched_by(instance)

    def serves(self, instance: str) -> bool:
        """Return whether it serves, by the group, the Node and the executions."""
        there = self.fleet.instances.get(instance)
        if there is None or there.lifecycle != IN_SERVICE or self.disrupting:
            return False
        node = self.cluster.store.find("nodes", there.node)
        upgrades = (one for name in UPGRADES for one in self.system.machines[name].executions.values())
        upgraded = any(str(one.input.get("group")) == there.group for one in upgrades)
        return node is not None and is_ready(node) and "deletionTimestamp" not in node["metadata"] and not upgraded

    def working_since(self, instance: str) -> float | None:
        """Return the earliest start by the input of the open executions."""
        return min((one.started for one in self._executions(instance)), default=None)

    def states_of(self, instance: str) -> Sequence[str]:
        """Return the names of the states."""
        return [one.state for one in self._executions(instance)]

    def rested_since(self, instance: str) -> float | None:
        """Return the time by the ends of executions."""
        return self.system.last_ended.get(instance)

    def _executions(self, instance: str) -> Iterator[Execution]:
        found = self.system.machine.executions.values()
        return (one for one in found if one.input.get("instance") == instance)

    def target(self, instance: str, at: float) -> str | None:
        """Return the target's state by its group."""
        found = self.fleet.instances.get(instance)
        return None if found is None else self.system.balancers.state(found.group, instance, at)

    @property
    def removals(self) -> Sequence[Removal]:
        """Nodes that were removed."""
        return self.kubernetes.removals

    def running(self, instance: str) -> bool:
        """Return whether EC2 has not begun to terminate it."""
        there = self.fleet.instances.get(instance)
        return there is not None and not there.gone

    def ended_at(self, instance: str) -> float | None:
        """Return when EC2 began to terminate it."""
        there = self.fleet.instances.get(instance)
        return there.ended_at if there is not None else None
