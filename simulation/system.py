"""Deployment made of the models: ports behind gates, functions behind queue, schedules, machine."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from leeward import errors
from leeward.errors import RecordChangedError
from leeward.isolation import Executor, in_turn
from leeward.node_template.cache import NodegroupCache
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports
from leeward.ports.autoscaling import GroupChanges, Groups, Maxima
from leeward.ports.compute import Instances, LaunchSources, Network, PriceList, Templates
from leeward.ports.eks import ManagedUpdates, Nodegroups
from leeward.ports.executions import Executions, NamedExecutions
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.load_balancers import LoadBalancers
from leeward.ports.monitoring import Alarms, ServiceLimits
from leeward.ports.queues import DeadLetters, Redelivery
from leeward.ports.records import Catalog, Claims, Disruptions, Upgrades
from leeward.time_budget import TimeBudget
from local.cluster.model import Cluster
from simulation import functions
from simulation.admission import Webhook
from simulation.aws import events
from simulation.aws.alarms import SimAlarms
from simulation.aws.balancers import SimLoadBalancers, balanced
from simulation.aws.bus import ENDED_BADLY, USUALLY, Bus
from simulation.aws.catalog import SimCatalog
from simulation.aws.changes import SimGroupChanges
from simulation.aws.disruption_books import DisruptionBooks
from simulation.aws.disruptions import SimDisruptions
from simulation.aws.executions import SimExecutions, SimNamedExecutions
from simulation.aws.fleet import SimFleet
from simulation.aws.managed import SimManagedUpdates
from simulation.aws.maxima import SimMaxima
from simulation.aws.network import KnownSimNodegroups, SimLaunchSources, SimNetwork, SimNodegroups, SimPriceList
from simulation.aws.ports import SimGroups, SimInstances
from simulation.aws.queue import Queue, Queued, SimDeadLetters, SimRedelivery
from simulation.aws.service_limits import SimServiceLimits
from simulation.aws.table import SimClaims
from simulation.aws.templates import SimTemplates
from simulation.aws.upgrade_books import UpgradeBooks
from simulation.aws.upgrades import SimUpgrades
from simulation.definitions import (
    DISRUPTION_RUN,
    MANAGED_NODE_GROUP_UPGRADE,
    NODE_GROUP_UPGRADE,
    NODE_TERMINATION,
    UPGRADES,
    definitions,
)
from simulation.faults import FaultyPort, Injector
from simulation.invocations import Ended, Invocations, SimClock
from simulation.journal import Journal
from simulation.kubernetes import SimKubernetes
from simulation.machine import Execution, StateMachine, StepFunctions
from simulation.timed_calls import TimedKubernetes
from simulation.timeline import Streams, Timeline

COLD = 0.2  # seconds from a call to the function's first line
SWEEP_IDLE, SYNC_IDLE, DECIDE_IDLE = 600.0, 3600.0, 1800.0  # in a world that lasts weeks, while nothing is under way
RECONCILE_EVERY, SYNC_EVERY, EXPIRE_EVERY, PLAN_EVERY = 60.0, 300.0, 3600.0, 300.0
ON_PURPOSE = {name for name in vars(errors) if name.endswith("Error")}  # raised by the product; others are bugs


class SimClusters:
    """`ports.kubernetes.Clusters`. `written`: the policies by cluster, which may be rewritten. Each API has a gate
    of its own, which knows how long an answer takes.
    """

    def __init__(self) -> None:
        self.written: dict[str, ClusterPolicies] = {}
        self._served: dict[str, tuple[Kubernetes, Injector]] = {}

    def serve(self, name: str, policies: ClusterPolicies, kubernetes: Kubernetes, gate: Injector) -> None:
        """Add a cluster."""
        self.written[name], self._served[name] = policies, (kubernetes, gate)

    def names(self) -> tuple[str, ...]:
        """Return the names in the order in which they were added."""
        return tuple(self._served)

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the written policies."""
        return self.written[cluster]

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return its API; each call takes as long as the gate says, and ends with the budget."""
        kubernetes, gate = self._served[cluster]
        return cast(Kubernetes, TimedKubernetes(kubernetes, gate, within))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Models that a deployment stands on."""

    fleet: SimFleet
    queue: Queue
    state_changes: Queue
    claims: SimClaims
    bus: Bus
    invocations: Invocations
    injector: Injector
    timeline: Timeline
    streams: Streams


class System:
    """Deployment of the product on the simulated AWS. `said` takes lines of the story; `machines` by name."""

    def __init__(self, parts: Parts, said: Callable[[str], None]) -> None:
        self.fleet, self.queue, self.claims, self.bus = parts.fleet, parts.queue, parts.claims, parts.bus
        self.state_changes = parts.state_changes
        self._invocations, self._injector, self._timeline = parts.invocations, parts.injector, parts.timeline
        self._said = said
        self._ids = parts.streams.stream("ids")
        self.groups = SimGroups(parts.fleet, parts.injector)
        self.changes = SimGroupChanges(parts.fleet)
        self.templates = SimTemplates((group.template for group in parts.fleet.groups.values()), parts.injector)
        self.managed_updates, self.alarms = SimManagedUpdates(parts.timeline), SimAlarms()
        books = {name: group.book for name, group in parts.fleet.groups.items()}
        self.maxima = SimMaxima()
        self.upgrades, self.service_limits = SimUpgrades(UpgradeBooks(books).wrote), SimServiceLimits()
        self.disruptions = SimDisruptions(DisruptionBooks(books).wrote)
        self.balancers = SimLoadBalancers(parts.timeline, parts.fleet.launched_by)
        self.balancers.groups.update(balanced(sorted(parts.fleet.groups), parts.streams.stream("load balancers")))
        self.states = StepFunctions()
        self.machines = {name: self._machine(name, found, parts) for name, found in definitions().items()}
        self.machine = self.machines[NODE_TERMINATION]
        self.clusters = SimClusters()
        self.each: Executor = in_turn  # of what functions do for several records, nodes or clusters at a time
        self.unexpected: list[str] = []
        self.last_ended: dict[str, float] = {}  # instance -> when the last execution about it did
        self.decides = False
        self.decided = Journal[tuple[float, float]]()  # runs of fn disruption-planner that met no error: begin and end
        self.sparse = False  # a world that lasts weeks
        self.restless: Callable[[], bool] = lambda: False  # true while something else is under way
        self._last_run: dict[str, float] = {}
        self.swept = 0.0  # when the minute reconciler began its last run
        self._running: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.throttles: Counter[str] = Counter()
        self.call_seconds = 0.0  # of a call of a state machine's function beside its waits
        self.message_seconds = 0.0  # and fn interruption for each message
        self.concurrency = dict(functions.CONCURRENCY)

    def _machine(self, name: str, definition: Mapping[str, Any], parts: Parts) -> StateMachine:
        first = name == NODE_TERMINATION
        return StateMachine(
            definition,
            parts.timeline,
            parts.streams.stream("state machine" if first else f"state machine {name}"),
            invoke=self._invoke,
            pause=self._pause,
            ended=self._ended if first else self._upgrade_ended if name in UPGRADES else self._told,
            name=f"leeward-{name}",
            account=self.states,
        )

    def _fall_behind(self) -> None:
        """Make AWS' lists of open items not quite up to date."""
        for listed in (self.claims.index, self.machine.listed):
            listed.behind(self._timeline.now, self._injector)

    def _executions(self, machine: str, name: str) -> NamedExecutions:
        return cast(NamedExecutions, FaultyPort(SimNamedExecutions(self.machines.get(machine)), name, self._injector))

    def serve(
        self, name: str, policies: ClusterPolicies, cluster: Cluster, gate: Injector | None = None
    ) -> SimKubernetes:
        """Serve a cluster and return its API. `gate`: the source of its API's faults, where that is another one."""
        gate = gate or self._injector
        true_time = SimClock(self._timeline, self._invocations)
        cluster.observe(self.balancers.watch)
        kubernetes = SimKubernetes(cluster, true_time, gate.disturb, gate.lose_answer, self._invocations.environment)
        kubernetes.admission = Webhook(cluster, gate, self._invocations.sleep)
        behind = cast(Kubernetes, FaultyPort(kubernetes, "kubernetes", self._injector))
        self.clusters.serve(name, policies, behind, gate)
        return kubernetes

    def connect(
        self, name: str, policies: ClusterPolicies, cluster: Cluster, *, decides: bool = False
    ) -> SimKubernetes:
        """Serve a cluster, build the ports, start queue and schedules, the disruption planner where it `decides`."""
        kubernetes = self.serve(name, policies, cluster)
        gate, clusters, true_time = self._injector, self.clusters, SimClock(self._timeline, self._invocations)
        local = {"names": clusters.names, "kubernetes": clusters.kubernetes, "policies": clusters.policies}
        self._fall_behind()
        described = cast(Nodegroups, FaultyPort(SimNodegroups(self.managed_updates.nodegroup), "nodegroups", gate))
        self.ports = Ports(
            clock=SimClock(self._timeline, self._invocations, gate.clock_skew),
            clusters=cast(Any, FaultyPort(clusters, "clusters", gate, local)),
            instances=cast(Instances, FaultyPort(SimInstances(self.fleet), "instances", gate)),
            network=cast(Network, FaultyPort(SimNetwork(self.fleet, gate), "network", gate)),
            price_list=cast(PriceList, FaultyPort(SimPriceList(), "price list", gate)),
            catalog=cast(Catalog, FaultyPort(SimCatalog(), "catalog", gate)),
            nodegroups=KnownSimNodegroups(
                lambda: NodegroupCache(described, true_time, chance=lambda: 0.0, say=self._said),
                self._invocations.environment,
            ),
            launches=cast(
                LaunchSources,
                FaultyPort(SimLaunchSources(self.fleet, lambda: self.templates.readable), "launches", gate),
            ),
            groups=cast(Groups, FaultyPort(self.groups, "groups", gate)),
            claims=cast(Claims, FaultyPort(self.claims, "claims", gate)),
            executions=cast(Executions, FaultyPort(SimExecutions(self.machine), "executions", gate)),
            dead_letters=cast(DeadLetters, FaultyPort(SimDeadLetters(self.queue), "dead letters", gate)),
            redelivery=cast(Redelivery, FaultyPort(self._redelivery(), "redelivery", gate)),
            load_balancers=cast(LoadBalancers, FaultyPort(self.balancers, "load balancers", gate)),
            group_changes=cast(GroupChanges, FaultyPort(self.changes, "group changes", gate)),
            templates=cast(Templates, FaultyPort(self.templates, "templates", gate)),
            managed_updates=cast(ManagedUpdates, FaultyPort(self.managed_updates, "managed updates", gate)),
            service_limits=cast(ServiceLimits, FaultyPort(self.service_limits, "service_limits", gate)),
            alarms=cast(Alarms, FaultyPort(self.alarms, "alarms", gate)),
            upgrades=cast(Upgrades, FaultyPort(self.upgrades, "upgrades", gate)),
            upgrade_executions=self._executions(NODE_GROUP_UPGRADE, "upgrade executions"),
            managed_upgrade_executions=self._executions(MANAGED_NODE_GROUP_UPGRADE, "upgrade executions"),
            maxima=cast(Maxima, FaultyPort(self.maxima, "maxima", gate)),
            disruptions=cast(Disruptions, FaultyPort(self.disruptions, "disruptions", gate)),
            disruption_executions=self._executions(DISRUPTION_RUN, "run executions"),
            deployment=events.DEPLOYMENT,
            queue_arns=frozenset({events.QUEUE_ARN}),
            origins=frozenset({(events.ACCOUNT, events.REGION)}),
        )
        for queue, arn in ((self.queue, events.QUEUE_ARN), (self.state_changes, events.STATE_CHANGES_ARN)):
            queue.consumer = partial(self._interrupted, arn)
        self._timeline.after(0, lambda: self._run("sync", lambda: functions.sync(self.ports, self.each)), "sync")
        self._timeline.every(RECONCILE_EVERY, self._sweep, "reconciler")
        self._timeline.every(EXPIRE_EVERY, self._expire, "time to live")
        self._timeline.every(SYNC_EVERY, self._sync, "sync")
        if decides:
            self.begin_deciding()
        return kubernetes

    def _interrupted(self, queue: str, batch: Sequence[Queued]) -> Sequence[str]:
        if self.message_seconds:
            self._invocations.sleep(len(batch) * self.message_seconds)
        return functions.interruption(batch, self.ports, self.unexpected, queue, self.each)

    def _redelivery(self) -> SimRedelivery:
        return SimRedelivery(self.queue, {events.STATE_CHANGES_ARN: self.state_changes})

    def _sweep(self) -> None:
        if self._is_due("reconciler", SWEEP_IDLE):
            self.swept = self._timeline.now()
            self._run("reconciler", lambda: functions.reconcile(self.ports, self.each))

    def _sync(self) -> None:
        if self._is_due("sync", SYNC_IDLE):
            self._run("sync", lambda: functions.sync(self.ports, self.each))

    def _is_due(self, name: str, idle: float) -> bool:
        """Return whether the function runs now: always in a usual world. In one that lasts weeks less often while
        nothing is under way: no message, no execution, no hook that waits and no Node that our taint is on, so that
        there is nothing to find.
        """
        now = self._timeline.now()
        if self.sparse and self._is_idle() and now - self._last_run.get(name, 0) < idle:
            return False
        self._last_run[name] = now
        return True

    def _is_idle(self) -> bool:
        open_ = any(machine.executions for machine in self.machines.values())
        return not (open_ or self.queue.depth or self.state_changes.depth or self.fleet.waiting or self.restless())

    def begin_deciding(self) -> None:
        """Run fn disruption-planner on its schedule, until `decides` is reset: a world becomes idle only without new
        runs.
        """
        self.decides = True
        self._timeline.every(PLAN_EVERY, self._decide, "disruption-planner")

    def _decide(self) -> None:
        if self.decides and self._is_due("disruption-planner", DECIDE_IDLE):
            began = self._timeline.now()
            self._run(
                "disruption-planner",
                lambda: functions.decide(self.ports, self.each),
                lambda ended: self._has_decided(began, ended),
            )

    def _has_decided(self, began: float, ended: Ended) -> None:
        if not ended.error and not (isinstance(ended.result, dict) and ended.result.get("errors")):
            self.decided.append((began, self._timeline.now()))

    def _expire(self) -> None:
        self.claims.expire(self._timeline.instant(), self._injector.expiry_lag)

    def _run(self, name: str, function: Callable[[], Any], then: Callable[[Ended], None] = lambda _: None) -> None:
        def done(ended: Ended) -> None:
            self._note(name, ended)
            then(ended)

        self._invocations.start(function, done, name=name, timeout=functions.TIMEOUTS[name])

    def _invoke(self, function: str, payload: Mapping[str, Any], done: Callable[[Ended], None]) -> None:
        """Invoke the function; beyond its reserved concurrency Lambda refuses the call."""
        cap = self.concurrency.get(function)
        if cap is not None and self._running[function] >= cap:
            self.throttles[function] += 1
            refused = Ended(error="Lambda.TooManyRequestsException", cause="Rate Exceeded.")
            self._timeline.after(0, partial(done, refused), f"{function} throttled")
            return
        self._running[function] += 1
        self.calls[f"{function} {payload['step']}"] += 1

        def finished(ended: Ended) -> None:
            self._running[function] -= 1
            run = payload.get("run") or {}
            self._note(f"{function} {payload['step']} {_about(run)}", ended)
            done(ended)

        timeout = functions.TIMEOUTS[function]
        call = partial(self._step, function, payload)
        begin = partial(self._invocations.start, call, finished, name=f"{function} {payload['step']}", timeout=timeout)
        self._timeline.after(COLD, begin, f"{function} {payload['step']}")

    def _step(self, function: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        if self.call_seconds:
            self._invocations.sleep(self.call_seconds)
        return functions.step(function, payload, self.ports)

    def _note(self, what: str, ended: Ended) -> None:
        """Record how an invocation ended. Defects count also where the product has isolated them."""
        result = ended.result if isinstance(ended.result, dict) else {}
        words = [ended.cause, *(result.get("errors") or ()), *(result.get("warnings") or ())]
        self.unexpected += [f"{what}: {word}" for word in words if functions.UNEXPECTED in word]
        if ended.error:
            self._said(f"{what}: {ended.error}: {ended.cause}")
            if not ended.killed and ended.error not in ON_PURPOSE:
                self.unexpected.append(f"{what}: {ended.error}: {ended.cause}")
        elif isinstance(ended.result, dict) and ended.result.get("why"):
            self._said(f"{what}: {ended.result['next']}: {ended.result['why']}")

    def _pause(self, arguments: Mapping[str, Any]) -> str:
        if self._injector.happens("AWS throttled", self._injector.faults.throttle_aws, "calls"):
            return "DynamoDb.ThrottlingException"
        values = arguments["ExpressionAttributeValues"]
        instance = arguments["Key"]["pk"]["S"].removeprefix("termination#")
        try:
            self.claims.hand_over_token(instance, version=int(values[":version"]["N"]), token=values[":token"]["S"])
        except RecordChangedError:
            return "DynamoDb.ConditionalCheckFailedException"
        return ""

    def _told(self, execution: Execution) -> None:
        self._said(f"execution {execution.name}: {execution.status} {execution.state} {execution.cause}".rstrip())

    def _upgrade_ended(self, execution: Execution) -> None:
        """Let a rule call fn upgrade, some moment later, for an execution that ended badly."""
        self._told(execution)
        if execution.status in ENDED_BADLY:
            detail = {"name": execution.name, "status": execution.status, "input": json.dumps(execution.input)}
            call = partial(functions.upgrade_ended, detail, self.ports)
            self._timeline.after(USUALLY, lambda: self._run("upgrade", call), "an upgrade's execution ended badly")

    def _ended(self, execution: Execution) -> None:
        """Emit the end to the rules, which listen to the ends of node-termination alone."""
        self._told(execution)
        self.last_ended[str(execution.input.get("instance"))] = self._timeline.now()
        id_ = f"{self._ids.getrandbits(128):032x}"
        self.bus.emit(events.execution_status(id_, execution.name, execution.status, self._timeline.instant()))


def _about(run: Mapping[str, Any]) -> str:
    """Return the instance, group or cluster of a run document."""
    return str(run.get("instance") or run.get("group") or run.get("cluster") or "")
