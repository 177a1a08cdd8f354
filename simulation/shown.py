"""View of a world for the invariants (`view.WorldView`): read from its models at each call."""

from collections.abc import Iterator, Mapping, Sequence, Set
from math import inf

from leeward.disruption.record import DisruptionRecord
from leeward.model import well_known
from leeward.model.group import LAUNCHING, Group, HookResult, LifecycleHook
from leeward.model.termination import LaunchPlan, TerminationRecord
from leeward.upgrade.record import UpgradeRecord
from local.cluster.model import Cluster
from local.cluster.objects import is_ready
from simulation.aws.books import Book
from simulation.aws.compute import IN_SERVICE
from simulation.aws.fleet import SimFleet
from simulation.aws.hook_waits import global_time_out
from simulation.aws.queue import DeadLetter, Queue
from simulation.aws.table import SimClaims
from simulation.definitions import DISRUPTION_RUN, UPGRADES
from simulation.faults import Crowd, Injector
from simulation.kubernetes import Deletion, Eviction, Removal, SimKubernetes
from simulation.machine import Execution
from simulation.shown_aws import ShownAws
from simulation.system import System
from simulation.timeline import Timeline
from simulation.view import Hold

FORCED_FOR = 6 * 3600.0  # seconds: longer than any upgrade of a simulated group


class Shown(ShownAws):
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
    _wanted: Mapping[str, int]

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
        return {name: group.maximum if eks(name) else group.plan.maximum for name, group in groups}

    @property
    def waiting(self) -> Set[tuple[str, str, str]]:
        """Waiting actions as (group, hook, instance)."""
        return self.fleet.waiting.keys()

    @property
    def completed_hooks(self) -> Sequence[tuple[str, str, str, bool]]:
        """Answers of ours that had an effect."""
        return self.system.groups.completed

    @property
    def timed_out(self) -> Sequence[tuple[str, str, str]]:
        """Actions without an answer as (group, hook, instance)."""
        return self.fleet.timed_out

    @property
    def heartbeats(self) -> Sequence[tuple[str, str, str, bool]]:
        """Heartbeats of ours that had an effect."""
        return self.system.groups.heartbeats

    @property
    def open_executions(self) -> Set[str]:
        """Names of open executions."""
        return self.system.machine.executions.keys()

    def started(self, execution: str) -> float:
        """Return the start in seconds since 1970."""
        return self.system.machine.executions[execution].started

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
    def replicas(self) -> Mapping[str, int]:
        """Wanted replicas of the fleet's Deployments."""
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
        return {one for one in self.system.groups.asked_for if self._lifecycle(one).startswith("Terminating")}

    def forced(self, instance: str) -> bool:
        """Return whether an upgrade of its group was started with force in the last hours before its record was opened,
        or since.
        """
        there, opened = self.fleet.instances.get(instance), self.open_since.get(instance, self.now)
        return there is not None and any(
            group == there.group and at > opened - FORCED_FOR for group, at in self.forced_upgrades
        )

    def holds(self, instance: str) -> Sequence[Hold]:
        """Return the holds of every group's hooks; those of another team that was answered too: no event reports the
        answer.
        """
        waiting = [
            self._hold(action.hook, action.since, action.timer.when if action.timer else self.now, action.default)
            for (_, _, held), action in self.fleet.waiting.items()
            if held == instance
        ]
        there = self.fleet.instances.get(instance)
        hooks = self.fleet.groups[there.group].hooks.values() if there is not None else ()
        for hook, default in hooks:
            since = self.fleet.waited_since(hook.group, hook.name, instance)
            waits = (hook.group, hook.name, instance) in self.fleet.waiting
            if since is not None and not waits and not self.ours(hook.name, hook.group):
                waiting.append(self._hold(hook, since, since + hook.heartbeat_timeout, default))
        return waiting

    def _hold(self, hook: LifecycleHook, since: float, ends: float, default: HookResult) -> Hold:
        launching, timeout = hook.transition == LAUNCHING, hook.heartbeat_timeout
        ours = self.ours(hook.name, hook.group)
        return Hold(
            hook=hook.name, ours=ours, launching=launching, since=since, timeout=timeout, ends=ends, default=default
        )

    def event_came(self, group: str, hook: str, instance: str) -> float:
        """Return when the bus delivered it, since the action began."""
        since, heard = self.fleet.waited_since(group, hook, instance), self.system.bus.heard.get(instance, inf)
        return inf if since is None or heard < since else heard

    def time_out(self, group: str, hook: str) -> float:
        """Return the time-out, infinite for a hook that the group no longer has."""
        known = self.fleet.groups[group].hooks.get(hook)
        return inf if known is None else known[0].heartbeat_timeout

    def held_to_the_end(self, group: str, hook: str, instance: str) -> bool:
        """Return whether the global time-out, counted from the action's begin, has passed."""
        since = self.fleet.waited_since(group, hook, instance)
        known = self.fleet.groups[group].hooks.get(hook) if group in self.fleet.groups else None
        if since is None or known is None:
            return False
        return self.now >= since + global_time_out(known[0].heartbeat_timeout)

    @property
    def misdirected(self) -> Sequence[tuple[str, str, str]]:
        """Heartbeats as (group, hook, instance)."""
        return self.system.groups.misdirected

    @property
    def reused(self) -> Set[str]:
        """Instances started out of warm pools."""
        return self.fleet.warm_pools.reused

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

    def _lifecycle(self, instance: str) -> str:
        there = self.fleet.instances.get(instance)
        return (there.lifecycle or "") if there is not None else ""

    def target(self, instance: str, at: float) -> str | None:
        """Return the target's state by its group."""
        found = self.fleet.instances.get(instance)
        return None if found is None else self.system.balancers.state(found.group, instance, at)

    @property
    def removals(self) -> Sequence[Removal]:
        """Nodes that were removed."""
        return self.kubernetes.removals

    def ours(self, hook: str, group: str) -> bool:
        """Return whether fn sync put it there, or the group's policy names it."""
        there = self.fleet.groups.get(group)
        named = there is not None and any(one.name == hook for one in getattr(there.plan, "hooks", ()))
        return named or (group, hook) in self.system.groups.put

    def ends(self, hook: str, group: str) -> bool:
        """Return whether it is a terminate hook of ours."""
        return self.ours(hook, group) and not any(
            known.name == hook for known, _ in self.fleet.groups[group].hooks_for(LAUNCHING)
        )

    def running(self, instance: str) -> bool:
        """Return whether EC2 has not begun to terminate it."""
        there = self.fleet.instances.get(instance)
        return there is not None and not there.gone
