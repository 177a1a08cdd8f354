"""Cost of one node terminated in virtual time: a maintenance is announced for it, and its last pod is slow to stop."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bench.cost_bill import Bill
from bench.upgrade_fleet import BenchFleet, BenchGroup
from leeward.model.termination import Status, TerminationRecord
from leeward.notifications.events import events_of_change
from leeward.policy.document import ClusterPolicies, ClusterSettings, DrainPolicy, GroupSelector, NodePolicy
from simulation import fleets
from simulation.fault_rates import Faults
from simulation.invocations import Ended
from simulation.world import WARM_UP, World

GROUP = "web"
SETTLE = timedelta(seconds=60)
TIME_OUT = timedelta(minutes=30)  # longer than the longest drain that is measured
SHUTDOWN = 20.0  # seconds from shutting-down to terminated
WINDOW = 1.0  # seconds in which changes of the table are gathered for fn notifications
OF_TERMINATIONS = ("interruption", "terminate", "drain")  # functions whose work belongs to a termination
READS = frozenset({"read"})
WRITES = frozenset({"claim", "begin_attempt", "note", "plan", "failed", "saw", "close", "hand_over_token"})


@dataclass(slots=True)
class Count:
    """Usage of one world since the count was reset."""

    calls: Counter[str]
    seconds: dict[str, float]
    table: Counter[str]
    changes: list[tuple[float, int]]  # time of the write of a record, and the number of events that follow from it


def terminated(grace: int, handler_ms: Mapping[str, float]) -> Bill:
    """Return the bill of one node whose pod takes `grace` seconds. `handler_ms`: duration of a call without its
    sleeping.
    """
    world = _world(grace)
    count = _watch(world)
    found: list[Bill] = []

    def begin() -> None:
        for counter in (count.calls, count.seconds, count.table):
            counter.clear()
        count.changes.clear()
        before, messages = world.system.machine.transitions, world.queue.handled
        victim = next(iter(world.fleet.groups[GROUP].members.values()))
        world.fleet.notices.maintenance(victim, world.timeline.now() + 12 * 3600)

        def look() -> None:
            record = world.claims.records.get(victim.id)
            if record is not None and record.status is Status.CLOSED and not found:
                transitions = world.system.machine.transitions - before
                found.append(_bill(count, transitions, world.queue.handled - messages, handler_ms))
                world.timeline.stopped = True

        world.timeline.every(60.0, look, "the benchmark looks")

    world.timeline.after(WARM_UP + 1, begin, "the maintenance is announced")
    world.run(2.0, converge=0)
    if not found or world.violations:
        raise RuntimeError("\n".join(["the node was not terminated", *list(world.story)[-20:]]))
    return found[0]


def _bill(count: Count, transitions: int, messages: int, handler_ms: Mapping[str, float]) -> Bill:
    calls = Counter({name: count.calls[name] for name in OF_TERMINATIONS})
    milliseconds = Counter(
        {name: int(count.seconds.get(name, 0.0) * 1000 + calls[name] * handler_ms[name]) for name in OF_TERMINATIONS}
    )
    reported = [events for _, events in count.changes]
    calls["notifications"] = _batches([at for at, _ in count.changes])
    milliseconds["notifications"] = int(calls["notifications"] * handler_ms["notifications"])
    return Bill(
        transitions=transitions,
        calls=calls,
        milliseconds=milliseconds,
        messages=messages,
        events=sum(reported),
        reads=sum(count.table[name] for name in READS),
        writes=sum(count.table[name] for name in WRITES),
    )


def _batches(moments: list[float]) -> int:
    """Return the number of calls of fn notifications: a window begins with a change and includes all that follow within
    it.
    """
    batches, opened = 0, -WINDOW
    for at in moments:
        if at >= opened + WINDOW:
            batches, opened = batches + 1, at
    return batches


def _world(grace: int) -> World:
    policy = NodePolicy(
        name=GROUP, selector=GroupSelector(groups=(GROUP,)), drain=DrainPolicy(settle=SETTLE, timeout=TIME_OUT)
    )
    group = BenchGroup(name=GROUP, size=2, maximum=6, zones=("us-east-1a",), instance_type="m5.large", selected=True)
    fleet = BenchFleet(
        groups=(group,),
        workloads=tuple(_pods(grace)),
        policies=ClusterPolicies(settings=ClusterSettings(name=fleets.CLUSTER), policies=(policy,)),
    )
    world = World(1, fleet, Faults.none(), ())
    world.fleet.groups[GROUP].ends = (SHUTDOWN, SHUTDOWN)
    world.system.balancers.groups.clear()  # no load balancer has the node as a target
    return world


def _pods(grace: int) -> list[dict[str, Any]]:
    """Return two nodes with one slow pod each."""
    labels = {"app": "slow"}
    spread = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": grace,
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [spread]}},
            "containers": [{"name": "main", "image": "slow", "resources": {"requests": {"cpu": "50m"}}}],
        },
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "slow", "namespace": "default"}
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}]


def _watch(world: World) -> Count:
    """Count invocations with their virtual seconds, calls of the table, and the events of its changes."""
    count = Count(Counter(), {}, Counter(), [])
    _watch_functions(world, count)
    _watch_table(world, count)
    return count


def _watch_functions(world: World, count: Count) -> None:
    begin = world.invocations.start

    def start(function: Callable[[], Any], done: Callable[[Ended], None], *, name: str, timeout: float) -> None:
        began = world.timeline.now()

        def ended(end: Ended) -> None:
            kind = name.partition(" ")[0]
            count.calls[kind] += 1
            count.seconds[kind] = count.seconds.get(kind, 0.0) + world.timeline.now() - began
            done(end)

        begin(function, ended, name=name, timeout=timeout)

    world.invocations.start = start  # type: ignore[method-assign]


def _watch_table(world: World, count: Count) -> None:
    claims, put = world.claims, world.claims._put

    def written(record: TerminationRecord) -> TerminationRecord:
        before = claims.records.get(record.instance)
        news = events_of_change(before, record, world.timeline.instant())
        count.changes.append((world.timeline.now(), len(news)))
        return put(record)

    claims._put = written  # type: ignore[method-assign]
    for name in READS | WRITES:
        setattr(claims, name, _counted(getattr(claims, name), name, count.table))


def _counted(call: Callable[..., Any], name: str, table: Counter[str]) -> Callable[..., Any]:
    def counted(*arguments: Any, **more: Any) -> Any:
        table[name] += 1
        return call(*arguments, **more)

    return counted
