"""One of several clusters that a deployment serves: the scene of what happens to it, and the view by which rules judge
it. AWS, the queues, the table and the state machines are the world's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from leeward.disruption.record import DisruptionRecord
from leeward.model.termination import LaunchPlan
from leeward.policy.document import ClusterPolicies
from leeward.upgrade.record import UpgradeRecord
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.settings import ClusterSettings
from simulation.aws.fleet import SimFleet
from simulation.aws.part import PartOfFleet
from simulation.aws.reboots import Requested
from simulation.convergence import instance_of
from simulation.definitions import DISRUPTION_RUN
from simulation.endings import Ending
from simulation.excerpts import Excerpt, Part
from simulation.faults import Crowd, Injector
from simulation.kubernetes import SimKubernetes
from simulation.plans import ArrivalPlan, FleetPlan
from simulation.shown import Shown
from simulation.timeline import Streams
from simulation.workloads import wanted_replicas

if TYPE_CHECKING:
    from simulation.aws.compute import SimInstance
    from simulation.world import World

OTHER_UIDS = 1 << 40  # added to a world's seed for the objects of its second cluster
CHOOSES = 20  # the first bit of an arrival's pick that chooses the cluster


class Site(Shown):
    """Cluster of a world. `injector`: the faults of its API, and for the first cluster all others too."""

    def __init__(
        self, world: World, plan: FleetPlan, cluster: Cluster, kubernetes: SimKubernetes, injector: Injector
    ) -> None:
        self._world, self.plan = world, plan
        self.first = cluster is world.cluster
        self.seed = world.seed if self.first else f"{world.seed}/{plan.cluster}"
        self.cluster_name, self.cluster, self.kubernetes, self.injector = plan.cluster, cluster, kubernetes, injector
        self._part = PartOfFleet(world.fleet, plan.cluster, first=self.first)
        self.fleet = cast(SimFleet, self._part)
        self.timeline, self.queue, self.state_changes = world.timeline, world.queue, world.state_changes
        self.claims, self.system, self.asked = world.claims, world.system, world.asked
        self.started_manually, self.forced_upgrades = world.started_manually, world.forced_upgrades
        self.say, self.rejoin = world.say, world.rejoin
        self.register: Callable[[NodeSpec], object] = cluster.add_node
        self.policies: ClusterPolicies = plan.policies
        self.rewritten = 0.0
        self.deployed = [(0.0, plan.policies)]
        self.tainted_by_others: set[str] = set()
        self._wanted = wanted_replicas(plan.workloads)
        self._begin_reading(world)

    def _begin_reading(self, world: World) -> None:
        asked, has = world.system.groups, self._part.has
        self._completed = Excerpt(asked.completed, self._of_group)
        self._heartbeats = Excerpt(asked.heartbeats, self._of_group)
        self._misdirected = Excerpt(asked.misdirected, self._of_group)
        self._launches = Excerpt(asked.launches, lambda launch: has(launch[1]))
        self._plans = Excerpt(world.claims.plans, lambda plan: has(plan[0]))
        self._decrements, self._terminations = Excerpt(asked.decrements, has), Excerpt(asked.terminations, has)
        self._reboots = Excerpt(world.fleet.reboots.requested, lambda reboot: has(reboot.instance))
        self._warned = Excerpt(world.warned, lambda warning: has(warning[0]))
        self._ends = Excerpt(world.system.ends, self._is_mine)
        self._hooks_put = Excerpt(asked.hooks_put, self._of_group)

    def _is_mine(self, ending: Ending) -> bool:
        return ending.group in self.fleet.groups or ending.cluster == self.cluster_name

    def _of_group(self, action: tuple[Any, ...]) -> bool:
        return action[0] in self.fleet.groups

    def owns(self, instance: str) -> bool:
        """Return whether the instance is one of the cluster's."""
        return self._part.has(instance)

    def labels(self, member: SimInstance) -> Mapping[str, str]:
        """Return the labels with which a node registers."""
        return self._world.labels(member)

    def rewrite(self, policies: ClusterPolicies) -> None:
        """Deploy other policies."""
        self.policies = self.system.clusters.written[self.cluster_name] = policies
        self.rewritten = self.now
        self.deployed.append((self.now, policies))

    def work_in_threads(self) -> None:
        """Make functions work in threads; several clusters are served so in any case."""
        self._world.work_in_threads()

    @property
    def _refuses(self) -> bool:
        """True if it is in an account of its own, which refuses its role now and then."""
        return self._world.apart and not self.first

    @property
    def account(self) -> tuple[str, str]:
        """Account and Region of the cluster."""
        there = self._world.accounts.account_of(self.cluster_name)
        return there.account, there.region

    def refused_since(self, at: float) -> float:
        """Return the seconds of the account's refusals after `at`."""
        refusals, now = self._world.accounts.account_of(self.cluster_name).refusals, self.timeline.now()
        return sum(max(min(end, now) - max(begin, at), 0.0) for begin, end in refusals)

    def refused_anywhere(self, since: float) -> bool:
        """Return whether any account of the deployment has refused its role since then."""
        return self._world.refused_anywhere(since)

    @property
    def over(self) -> bool:
        """True once arrivals and faults have stopped."""
        return self._world.over

    @property
    def flags(self) -> bool:
        """True if operators give flags with what they start."""
        return self._world.flags

    @flags.setter
    def flags(self, given: bool) -> None:
        self._world.flags = given

    @property
    def days_ahead(self) -> float | None:
        """Days by which maintenance is announced ahead in a world that lasts weeks."""
        return self._world.days_ahead

    @days_ahead.setter
    def days_ahead(self, days: float | None) -> None:
        self._world.days_ahead = days

    @property
    def faultless(self) -> bool:
        """True if there are only arrivals, in all clusters, and its own account refuses nothing."""
        return self._world.faultless and not self._refuses

    @property
    def only_kubernetes_fails(self) -> bool:
        """True if AWS and the functions do what they should."""
        return self._world.only_kubernetes_fails and not self._refuses

    @property
    def endings(self) -> Sequence[Ending]:
        """Ends of executions about its groups, and of its disruption runs."""
        return self._ends

    def free_addresses(self, zone: str) -> int:
        """Return the addresses of the subnet that the clusters share."""
        return self._world.free_addresses(zone)

    def stood_still(self, within: float) -> bool:
        """Return whether the services that all clusters share have."""
        return self._world.stood_still(within)

    @property
    def short_zones(self) -> Mapping[str, float]:
        """Zones by the launches of all clusters."""
        return self._world.short_zones

    @property
    def crowded(self) -> Mapping[str, Crowd]:
        """Crowded subnets by zone; the clusters share them."""
        return self._world.crowded

    @property
    def upgrades(self) -> Mapping[str, UpgradeRecord]:
        """Upgrade records of its groups."""
        return Part(lambda: self.system.upgrades.records, self.fleet.groups.__contains__)

    @property
    def disruptions(self) -> Mapping[str, DisruptionRecord]:
        """Its disruptions."""
        return Part(lambda: self.system.disruptions.records, self.cluster_name.__eq__)

    @property
    def disrupting(self) -> Set[str]:
        """Names of open executions for it."""
        open_ = self.system.machines[DISRUPTION_RUN].executions.items()
        return {name for name, one in open_ if one.input.get("cluster") == self.cluster_name}

    @property
    def completed_hooks(self) -> Sequence[tuple[str, str, str, bool]]:
        """Answers of ours that had an effect."""
        return self._completed

    @property
    def heartbeats(self) -> Sequence[tuple[str, str, str, bool]]:
        """Heartbeats of ours that had an effect."""
        return self._heartbeats

    @property
    def misdirected(self) -> Sequence[tuple[str, str, str]]:
        """Heartbeats as (group, hook, instance)."""
        return self._misdirected

    @property
    def launches(self) -> Sequence[tuple[str, str]]:
        """Launches as (token, instance)."""
        return self._launches

    @property
    def plans(self) -> Sequence[tuple[str, LaunchPlan]]:
        """Launch plans as (instance, plan)."""
        return self._plans

    @property
    def decrements(self) -> Sequence[str]:
        """Instances."""
        return self._decrements

    @property
    def terminations(self) -> Sequence[str]:
        """Instances."""
        return self._terminations

    @property
    def reboots(self) -> Sequence[Requested]:
        """Reboots of its instances."""
        return self._reboots

    @property
    def warned(self) -> Sequence[tuple[str, float]]:
        """Warnings as (instance, when)."""
        return self._warned

    @property
    def hooks_put(self) -> Sequence[tuple[str, str]]:
        """Hooks as (group, hook)."""
        return self._hooks_put

    @property
    def addressed(self) -> Sequence[str]:
        """Uids of nodes and pods."""
        return self.kubernetes.addressed

    @property
    def reconciled(self) -> float:
        """Start of the last run by the schedule."""
        return self.system.reconciled

    @property
    def asked_by_reconciler(self) -> float:
        """Time by the requests of the function's sandboxes."""
        return self.kubernetes.listed.get("reconciler", 0.0)

    def failed_since(self, at: float) -> bool:
        """Return whether a fault hit one of its calls."""
        return self.injector.api_failed_at >= at

    @property
    def open_executions(self) -> Set[str]:
        """Names of open executions about its instances; those of any other name are the first cluster's."""
        names = self.system.machine.executions.keys()
        return {name for name in names if self._part.has(instance_of(name) or "")}

    @property
    def open_since(self) -> Mapping[str, float]:
        """Opening time of the open records of its instances."""
        return Part(lambda: self.claims.index.since, self._part.has)


def sites_of(world: World, plan: FleetPlan, beside: FleetPlan, settings: ClusterSettings) -> tuple[Site, Site]:
    """Build the sites of a world with two clusters: the second has a cluster model and API faults of its own. In half
    of the worlds its nodes have the names of the first one's, as in networks with the same addresses.
    """
    streams = Streams(f"{world.seed}/{beside.cluster}")
    gate = Injector(
        world.injector.faults.of_kubernetes(), streams, world.timeline, world.invocations.sleep, _named(world, beside)
    )
    gate.active = False
    cluster = Cluster(clock=world.timeline.now, seed=OTHER_UIDS + world.seed, settings=settings)
    api = world.system.serve(beside.cluster, beside.policies, cluster, gate)
    sites = (
        Site(world, plan, world.cluster, world.kubernetes, world.injector),
        Site(world, beside, cluster, api, gate),
    )
    if streams.stream("names").random() < 0.5:
        numbers = count(1)
        sites[1].fleet.named = lambda _: f"node-i-{next(numbers):017x}"
    world.work_in_threads()
    return sites


def _named(world: World, plan: FleetPlan) -> Callable[[str], None]:
    return lambda line: world.say(f"{plan.cluster}: {line}")


def shared_out(plan: Sequence[ArrivalPlan], scenes: Sequence[Any], scene: object) -> Sequence[ArrivalPlan]:
    """Return the arrivals that hit the scene, one of several: bits of `pick` that nothing else reads choose."""
    return [arrival for arrival in plan if scenes[(arrival.pick >> CHOOSES) % len(scenes)] is scene]
