"""One simulated world: a fleet, its cluster, the product deployed on it, arrivals and faults.

`World(seed, fleet, faults, arrivals).run(hours)`: the same arguments give the same history, byte for byte."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from random import Random

from leeward.model.group import HookResult
from leeward.policy.document import ClusterPolicies
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.settings import ClusterSettings
from simulation.account_rules import AccountRules
from simulation.account_troubles import between_accounts
from simulation.accounts import accounts_of
from simulation.arrivals import Arrivals, Troubles
from simulation.asked import Asked
from simulation.autoscaler import autoscalers_of
from simulation.aws import events
from simulation.aws.bus import Bus
from simulation.aws.compute import SimInstance
from simulation.aws.events import DEPLOYMENT, RESERVATION_WARNING, SPOT_WARNING, Event
from simulation.aws.fleet import SimFleet
from simulation.aws.listeners import Listeners
from simulation.aws.queue import STATE_CHANGES_AT_ONCE, Queue, drawn
from simulation.aws.table import SimClaims
from simulation.both import Both
from simulation.cluster_rules import ClusterRules
from simulation.convergence import is_tainted
from simulation.fault_rates import Faults
from simulation.gates import first_gate
from simulation.hosts import Hosts
from simulation.invariants import Checker, Rule, Violation
from simulation.invocations import Invocations
from simulation.journal import Journal
from simulation.outcome import Outcome, sums
from simulation.plans import ArrivalPlan, FleetPlan, Player
from simulation.second_starts import SecondStarts
from simulation.shown import Shown
from simulation.site import Site, shared_out, sites_of
from simulation.system import Parts, System
from simulation.timeline import START, Entry, Streams, Timeline
from simulation.workloads import create_workloads, wanted_replicas

WARM_UP = 180.0  # seconds before the first arrival: pods start, sync puts the hooks
CONVERGE = 4 * 3600.0 + 30  # seconds after faults and arrivals have stopped; not just when the reconciler starts
SETTLED = 1800.0  # seconds after a launch
STORY = 4000  # lines kept
CLUSTER = ClusterSettings(watch_log=100, history=1000)  # no client watches it, and the invariants read at once
MOST_ENTRIES = 2_000_000  # of the timeline, in a week: a world that has more does not become idle


class World(Shown):
    """World with its fleet, its cluster and what happens to both. `run` it once. `beside`: a second cluster that the
    same deployment serves; then each has a `Site` by which it is touched and judged.
    """

    limit = MOST_ENTRIES
    days_ahead: float | None = None  # how far maintenance is announced in a world that lasts weeks
    rewritten = 0.0  # when the policies were
    over = False  # arrivals and faults have stopped
    flags = False  # operators give flags

    def __init__(
        self,
        seed: int,
        fleet: FleetPlan,
        faults: Faults,
        arrivals: Sequence[ArrivalPlan],
        *,
        disruption: bool = False,
        beside: FleetPlan | None = None,
        begins: float = START,
    ) -> None:
        self.seed, self.policies, self._fleet_plan = seed, fleet.policies, fleet
        self.deployed = [(0.0, fleet.policies)]
        self.cluster_name = fleet.cluster
        self.timeline, streams = Timeline(begins), Streams(seed)
        self.story: deque[str] = deque(maxlen=STORY)
        self.heard: Callable[[str], None] = lambda _line: None  # each line of the story, for a watcher
        self.seen: Callable[[], None] = lambda: None  # after each event
        self.labels: Callable[[SimInstance], Mapping[str, str]] = lambda _member: {}  # with which a node registers
        self.invocations = Invocations(self.timeline)
        self.injector = first_gate(faults, streams, self.timeline, self.invocations, self.say)
        self.cluster = Cluster(clock=self.timeline.now, seed=seed, settings=CLUSTER)
        self.claims = SimClaims(deployment=DEPLOYMENT)
        self.asked, self.warned = Journal[Asked](), Journal[tuple[str, float]]()
        self.started_manually: set[str] = set()
        self.forced_upgrades: list[tuple[str, float]] = []  # group, when
        self.queue = Queue(self.timeline, self.invocations)
        self.queue.cut = partial(drawn, random=streams.stream("cuts"))
        self.state_changes = Queue(
            self.timeline, self.invocations, prefix="s", at_once=STATE_CHANGES_AT_ONCE, beside=self.queue
        )
        self.bus = Bus(self.timeline, self.injector, self.queue.send, self.state_changes.send)
        self._hosts = Hosts(self.timeline, self.scene_of)
        self.fleet = self._fleet_of(fleet, beside, streams.stream("fleet"))
        self.system = System(self._parts(streams), self.say)
        self.kubernetes = self.system.connect(fleet.cluster, fleet.policies, self.cluster, decides=disruption)
        self._wanted = wanted_replicas(fleet.workloads)
        self._settle_beside(fleet, beside)
        self.checker, self._checkers = Checker(seed), [(Checker(seed), site) for site in self.sites[1:]]
        self.violations: list[Violation] = []
        self.enough: Callable[[Violation], bool] = lambda _: False  # true if the run may end with this one
        self.tainted_by_others: set[str] = set()  # nodes on which another deployment works
        self.register: Callable[[NodeSpec], object] = self.cluster.add_node  # how a kubelet does
        self._random = streams.stream("world")
        self._history = sha256()
        self._pump: Entry | None = None
        self._touched = True
        for scene in self.scenes:
            scene.cluster.observe(lambda _change: self._touch())
        self._arrivals = [Arrivals(scene, shared_out(arrivals, self.scenes, scene)) for scene in self.scenes]
        self._autoscalers = [*autoscalers_of(self.scenes, (fleet,) if beside is None else (fleet, beside))]
        self._players: Sequence[Player] = self._in_order()

    def _settle_beside(self, fleet: FleetPlan, beside: FleetPlan | None) -> None:
        """Add the second cluster, its account if that is another one, and the rules between the two."""
        self.sites = sites_of(self, fleet, beside, CLUSTER) if beside is not None else ()
        self.accounts = accounts_of(self.fleet, fleet, beside)
        self.apart = len(self.accounts.of) > 1  # the second cluster is in another account and Region
        if self.apart:
            self.system.ports = self.accounts.ports(self.system.ports)
        self._between = (ClusterRules(self.sites), AccountRules(self)) if self.sites else ()

    def _fleet_of(self, plan: FleetPlan, beside: FleetPlan | None, random: Random) -> SimFleet:
        """Return the instances and groups of both clusters; the world listens to them."""
        to = Listeners(
            joined=self._hosts.joined,
            ended=self._hosts.ended,
            down=self._hosts.down,
            up=self._hosts.up,
            emit=self._emit,
            changed=self._touch,
            said=self.say,
            asked=self.asked.append,
        )
        fleet = SimFleet(plan.groups, plan.cluster, self.timeline, self.injector, random, to)
        if beside is not None:
            fleet.add(beside.groups, beside.cluster)
        return fleet

    def _in_order(self) -> Sequence[Player]:
        """Return what happens to the clusters: to each, to its API, and to both of two."""
        troubles = [Troubles(self), *(Troubles(site, of_api_alone=True) for site in self.sites[1:])]
        both = [Both(self.sites, Random(f"{self.seed}/both"), self._emit, hosts=not self.apart)] if self.sites else []
        apart = between_accounts(self.sites, self.accounts, Random(f"{self.seed}/accounts"), self.bus.emit)
        return (*self._arrivals, *troubles, *self._autoscalers, *both, *apart, *map(SecondStarts, self.scenes))

    def _parts(self, streams: Streams) -> Parts:
        return Parts(
            fleet=self.fleet,
            queue=self.queue,
            state_changes=self.state_changes,
            claims=self.claims,
            bus=self.bus,
            invocations=self.invocations,
            injector=self.injector,
            timeline=self.timeline,
            streams=streams,
        )

    def run(self, hours: float, converge: float = CONVERGE) -> Outcome:
        """Run so many hours with arrivals and faults, then as long without as everything needs to become idle."""
        self._populate()
        self.timeline.afterwards = self._after
        self.timeline.run_until(self.timeline.now() + WARM_UP)
        for scene in self.scenes:
            scene.injector.active = True
        for player in self._players:
            player.begin()
        self.timeline.run_until(self.timeline.now() + hours * 3600)
        for scene in self.scenes:
            scene.injector.stop()
        self.over, self.system.decides = True, False
        for player in self._players:
            player.over = True
        self.say("faults and arrivals are over")
        self.timeline.run_until(self.timeline.now() + converge)
        if not self.timeline.stopped:
            self._found(self.checker.at_the_end(self.scenes[0]))
            for checker, site in self._checkers:
                self._found(checker.at_the_end(site))
        return self._outcome((hours * 3600 + converge) / 86400)

    def say(self, line: str) -> None:
        """Add one line to the story."""
        at = datetime.fromtimestamp(self.timeline.now(), UTC)
        self.story.append(f"{at:%d %H:%M:%S} {line}")
        self.heard(line)

    def rejoin(self, member: SimInstance) -> None:
        """Register the node again, as its kubelet does, if the instance still runs."""
        if member.state == "running":
            self._hosts.joined(member)

    @property
    def scenes(self) -> "Sequence[World | Site]":
        """What arrivals and other controllers touch: one scene for each cluster."""
        return self.sites or (self,)

    def scene_of(self, member: SimInstance) -> "World | Site":
        """Return the scene whose cluster the instance joins."""
        return next((site for site in self.sites if member.group in site.fleet.groups), self)

    def _populate(self) -> None:
        self.fleet.populate()
        create_workloads(self.cluster, self._fleet_plan.workloads)
        for site in self.sites[1:]:
            create_workloads(site.cluster, site.plan.workloads)

    def _emit(self, event: Event) -> None:
        self.say(f"event {event['detail-type']}: {events.gist(event)}")
        self.bus.emit(self.accounts.addressed(event) if self.apart else event)
        detail = event["detail"]
        if event["detail-type"] in {SPOT_WARNING, RESERVATION_WARNING}:
            self.warned.append((detail["instance-id"], self.timeline.now()))
        if detail.get("LifecycleHookName") == "their-hook":
            self.timeline.after(self._random.uniform(5, 60), lambda: self._their_answer(detail), "their hook")

    def _their_answer(self, detail: Mapping[str, str]) -> None:
        self.fleet.answer(detail["AutoScalingGroupName"], "their-hook", detail["EC2InstanceId"], HookResult.CONTINUE)

    def work_in_threads(self) -> None:
        """Make functions work in threads, which give way to each other at calls of ports."""
        dice = Random(f"{self.seed}/threads")
        self.system.each = partial(self.invocations.side_by_side, random=dice)
        self.injector.give_way = partial(self.invocations.give_way, dice)

    def last_weeks(self) -> None:
        """Announce maintenance two weeks ahead, and run functions that find nothing to do less often."""
        for autoscaler in self._autoscalers:
            autoscaler.scan_every = 60.0
        self.days_ahead, self.system.sparse, self.system.restless = 14.0, True, self._has_marks

    def _has_marks(self) -> bool:
        young = any(self.timeline.now() - m.launched < SETTLED for m in self.fleet.instances.values() if not m.gone)
        stopped = any(record.runs for record in self.system.upgrades.records.values())
        return (
            young or stopped or any(is_tainted(node) for one in self.scenes for node in one.cluster.store.each("nodes"))
        )

    def refused_anywhere(self, since: float) -> bool:
        """Return whether any account of the deployment has refused its role since then."""
        return any(end >= since for account in self.accounts.of for _, end in account.refusals)

    def rewrite(self, policies: ClusterPolicies) -> None:
        """Deploy other policies."""
        self.policies = self.system.clusters.written[self.cluster_name] = policies
        self.rewritten = self.timeline.now()
        self.deployed.append((self.rewritten, policies))

    def _touch(self) -> None:
        self._touched = True

    def _after(self, name: str) -> None:
        """Let the cluster catch up after every entry of the timeline, then check."""
        now = self.timeline.now()
        if self._touched:
            due = [scene.cluster.step(now) for scene in self.scenes]
            self._schedule(min((one for one in due if one is not None), default=None))
            self._touched = False
        self._history.update(f"{now:.6f} {name}\n".encode())
        self._found(self.checker.after_event(self.scenes[0]))
        for checker, site in self._checkers:
            self._found(checker.after_event(site))
        for rules in self._between:
            found = rules.check()
            self._found([Violation(seed=self.seed, at=now, rule=rule, text=text) for rule, text in found])
        self.seen()
        if self.timeline.happened >= self.limit:
            text = f"{self.limit} entries of the timeline, the last one: {name}"
            self._found([Violation(seed=self.seed, at=now, rule=Rule.REST, text=text)])
            self.timeline.stopped = True

    def _schedule(self, due: float | None) -> None:
        if self._pump is not None:
            if self._pump.callback is not None and self._pump.when == due:
                return
            self._pump.cancel()
        self._pump = None if due is None else self.timeline.at(due, self._touch, "cluster")

    def _found(self, violations: Sequence[Violation]) -> None:
        for violation in violations:
            self.say(f"VIOLATION {violation}")
            self.violations.append(violation)
            self.timeline.stopped = self.timeline.stopped or self.enough(violation)

    def _outcome(self, days: float) -> Outcome:
        self._history.update("\n".join(self.story).encode())
        return Outcome(
            seed=self.seed,
            days=days,
            events=self.timeline.happened,
            checks=self.checker.checks,
            faults=sums(scene.injector.counts for scene in self.scenes),
            arrivals=sums(arrivals.counts for arrivals in self._arrivals),
            violations=tuple(self.violations),
            unexpected=tuple(self.system.unexpected),
            executions=self.system.machine.closed_ever,
            terminated=self.claims.closed_ever,
            dead_letters=len(self.queue.dead_letters),
            redriven=len(self.queue.redriven),
            hooks_timed_out=sum(self.ours(hook, group) for group, hook, _ in self.fleet.timed_out),
            digest=self._history.hexdigest(),
            story=tuple(self.story),
            disruptions=dict(sorted(self.system.disruptions.ended.items())),
            figures=self.checker.figures(self.scenes[0]),
        )
