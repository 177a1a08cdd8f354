"""Deployment made of the models: ports behind gates, functions behind queue, schedules, machine."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from leeward import errors
from leeward.adapters.pauses import KnownPauses
from leeward.errors import RecordChangedError
from leeward.isolation import Executor, in_turn
from leeward.policy.document import ClusterPolicies
from leeward.ports.kubernetes import Kubernetes
from local.cluster.model import Cluster
from simulation import functions
from simulation.admission import Webhook
from simulation.aws import events
from simulation.aws.alarms import SimAlarms
from simulation.aws.applied_policies import SimPolicyStore
from simulation.aws.balancers import SimLoadBalancers, balanced
from simulation.aws.bus import ENDED_BADLY, USUALLY, Bus
from simulation.aws.catalog import SimCatalog
from simulation.aws.changes import SimGroupChanges
from simulation.aws.disruption_books import DisruptionBooks
from simulation.aws.disruptions import SimDisruptions
from simulation.aws.fleet import SimFleet
from simulation.aws.managed import SimManagedUpdates
from simulation.aws.maxima import SimMaxima
from simulation.aws.pauses import SimPauses
from simulation.aws.ports import SimGroups
from simulation.aws.queue import Queue, Queued
from simulation.aws.recovery import SimRecovery
from simulation.aws.service_limits import SimServiceLimits
from simulation.aws.table import SimClaims
from simulation.aws.templates import SimTemplates
from simulation.aws.upgrade_books import UpgradeBooks
from simulation.aws.upgrades import SimUpgrades
from simulation.clusters import SimClusters
from simulation.definitions import NODE_TERMINATION, UPGRADES, definitions
from simulation.endings import Ending, ending_of
from simulation.faults import FaultyPort, Injector
from simulation.gated_ports import ports_of
from simulation.invocations import Ended, Invocations, SimClock
from simulation.journal import Journal
from simulation.kubernetes import SimKubernetes
from simulation.machine import Execution, StateMachine, StepFunctions
from simulation.notified import Notified
from simulation.timeline import Streams, Timeline

COLD = 0.2  # seconds from a call to the function's first line
SWEEP_IDLE, SYNC_IDLE, DECIDE_IDLE = 600.0, 3600.0, 1800.0  # in a world that lasts weeks, while nothing is under way
RECONCILE_EVERY, SYNC_EVERY, EXPIRE_EVERY, PLAN_EVERY = 60.0, 300.0, 3600.0, 300.0
ON_PURPOSE = {name for name in vars(errors) if name.endswith("Error")}  # raised by the product; others are bugs


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
        parts.injector.caller = self.environment = parts.invocations.environment
        self._ids = parts.streams.stream("ids")
        self.groups = SimGroups(parts.fleet, parts.injector)
        self.changes = SimGroupChanges(parts.fleet)
        self.templates = SimTemplates((group.template for group in parts.fleet.groups.values()), parts.injector)
        self.managed_updates, self.alarms = SimManagedUpdates(parts.timeline), SimAlarms()
        books = {name: group.book for name, group in parts.fleet.groups.items()}
        self.maxima = SimMaxima()
        self.notified, self.service_limits = Notified(parts.timeline), SimServiceLimits()
        self.upgrades = SimUpgrades(self.notified.of_upgrades(UpgradeBooks(books).wrote))
        self.disruptions = SimDisruptions(self.notified.of_runs(DisruptionBooks(books).wrote))
        self.balancers = SimLoadBalancers(parts.timeline, parts.fleet.launched_by)
        self.balancers.groups.update(balanced(sorted(parts.fleet.groups), parts.streams.stream("load balancers")))
        self.states = StepFunctions()
        self.machines = {name: self._machine(name, found, parts) for name, found in definitions().items()}
        self.machine = self.machines[NODE_TERMINATION]
        self.pauses = SimPauses(parts.injector.table_is_away)
        self.policy_store = SimPolicyStore()
        self.recovery, self.catalog = SimRecovery(), SimCatalog()
        clock = SimClock(parts.timeline, parts.invocations)
        self.clusters = SimClusters(lambda: KnownPauses(self.pauses.read, clock), parts.invocations.environment)
        self.each: Executor = in_turn  # of what functions do for several records, nodes or clusters at a time
        self.unexpected: list[str] = []
        self.ends = Journal[Ending]()
        self.upgrade_ends = Journal[Ending]()  # those about groups, which readers read now and then
        self.last_ended: dict[str, float] = {}  # instance -> when the last execution about it did
        self.decides = False
        self.decided = Journal[tuple[float, float]]()  # runs of fn disruption-planner that met no error: begin and end
        self.sparse = False  # a world that lasts weeks
        self.restless: Callable[[], bool] = lambda: False  # true while something else is under way
        self._last_run: dict[str, float] = {}
        self.reconciled = 0.0  # when the minute reconciler began its last run
        self._running: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.throttles: Counter[str] = Counter()
        self.call_seconds = 0.0  # of a call of a state machine's function beside its waits
        self.message_seconds = 0.0  # and fn interruption for each message
        self.concurrency = dict(functions.CONCURRENCY)

    def clock(self, skew: Callable[[str], float]) -> SimClock:
        """Return a clock that is off in each execution environment by the seconds that `skew` returns for it."""
        return SimClock(self._timeline, self._invocations, skew)

    def _machine(self, name: str, definition: Mapping[str, Any], parts: Parts) -> StateMachine:
        first = name == NODE_TERMINATION
        return StateMachine(
            definition,
            parts.timeline,
            parts.streams.stream("state machine" if first else f"state machine {name}"),
            invoke=self._invoke,
            pause=self._pause,
            ended=self._ended if first else self._upgrade_ended if name in UPGRADES else self._reported,
            name=f"leeward-{name}",
            account=self.states,
        )

    def _fall_behind(self) -> None:
        """Make AWS' lists of open items not quite up to date."""
        for listed in (self.claims.index, self.machine.listed):
            listed.behind(self._timeline.now, self._injector)

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
        self._fall_behind()
        self.ports = ports_of(self, self._injector, self._invocations, self._timeline, self._said)
        for queue, arn in ((self.queue, events.QUEUE_ARN), (self.state_changes, events.STATE_CHANGES_ARN)):
            queue.consumer = partial(self._interrupted, arn)
            queue.is_away, queue.has_no_consumer = self._injector.queue_is_away, self._injector.lacks_concurrency
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

    def _sweep(self) -> None:
        if self._is_due("reconciler", SWEEP_IDLE):
            self.reconciled = self._timeline.now()
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
        if self._injector.lacks_concurrency():
            if name == "upgrade":  # Lambda tries again; a schedule comes again anyway
                self._timeline.after(60, partial(self._run, name, function, then), f"{name} throttled")
            return

        def done(ended: Ended) -> None:
            self._note(name, ended)
            then(ended)

        self._invocations.start(function, done, name=name, timeout=functions.TIMEOUTS[name])

    def _invoke(self, function: str, payload: Mapping[str, Any], done: Callable[[Ended], None]) -> None:
        """Invoke the function; beyond its reserved concurrency Lambda refuses the call."""
        cap = self.concurrency.get(function)
        if self._injector.lacks_concurrency() or (cap is not None and self._running[function] >= cap):
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
            done(ended.reported())

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
        throttled = self._injector.happens("AWS throttled", self._injector.faults.throttle_aws, "calls")
        if throttled or self._injector.table_is_away():
            return "DynamoDb.ThrottlingException"
        values = arguments["ExpressionAttributeValues"]
        instance = arguments["Key"]["pk"]["S"].removeprefix("termination#")
        try:
            self.claims.hand_over_token(instance, version=int(values[":version"]["N"]), token=values[":token"]["S"])
        except RecordChangedError:
            return "DynamoDb.ConditionalCheckFailedException"
        return ""

    def _reported(self, execution: Execution) -> None:
        ending = ending_of(execution, self._timeline.now())
        self.ends.append(ending)
        if ending.group:
            self.upgrade_ends.append(ending)
        self._said(f"execution {execution.name}: {execution.status} {execution.state} {execution.cause}".rstrip())

    def _upgrade_ended(self, execution: Execution) -> None:
        """Let a rule call fn upgrade, some moment later, for an execution that ended badly, unless the bus loses it."""
        self._reported(execution)
        if execution.status in ENDED_BADLY:
            if self._injector.happens("event of an end lost", self._injector.faults.lose_ended_event, "ends"):
                return
            detail = {"name": execution.name, "status": execution.status, "input": json.dumps(execution.input)}
            call = partial(functions.upgrade_ended, detail, self.ports)
            self._timeline.after(USUALLY, lambda: self._run("upgrade", call), "an upgrade's execution ended badly")

    def _ended(self, execution: Execution) -> None:
        """Emit the end to the rules, which listen to the ends of node-termination alone."""
        self._reported(execution)
        self.last_ended[str(execution.input.get("instance"))] = self._timeline.now()
        id_ = f"{self._ids.getrandbits(128):032x}"
        self.bus.emit(events.execution_status(id_, execution.name, execution.status, self._timeline.instant()))


def _about(run: Mapping[str, Any]) -> str:
    """Return the instance, group or cluster of a run document."""
    return str(run.get("instance") or run.get("group") or run.get("cluster") or "")
