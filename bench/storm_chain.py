"""A storm through the whole chain in virtual time: every spot instance of a group warned in the same second.

The product's functions and state machine on the simulated AWS, with its invariants. With `rough`: each message
comes three times and a fifth of all calls to AWS is throttled (each of them one that the SDK has tried three times);
where that ends must be where the smooth one ends."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count as counting

from bench.upgrade_fleet import BenchFleet, BenchGroup
from leeward.model.termination import Status
from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy, Selector
from simulation import fleets
from simulation.aws.compute import IN_SERVICE
from simulation.faults import Faults
from simulation.view import Violation, WorldView
from simulation.world import WARM_UP, World

GROUP = "web"
HOURS, REST = 0.1, 1800.0
DELIVERIES = 3
THROTTLED = 0.2
ALWAYS_CHECKED = (
    100  # nodes; with more the invariants, which look at every node, are checked after each so-many-th event
)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where a storm has left the world: the same for every way there. `outcomes` of the warned instances."""

    outcomes: Mapping[str, int]
    desired: int
    in_service: int
    marked: int
    waiting: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """`tainted` and `gone`: seconds from the warnings until the last node was tainted and the last record closed."""

    end: End
    tainted: float
    gone: float
    executions: int
    violations: int
    cpu: float


def storm(count: int, *, rough: bool = False) -> Chain:
    """Warn all of them and wait until everything has come to rest."""
    began = time.process_time()
    world = _world(count, Faults(throttle_aws=THROTTLED) if rough else Faults.none())
    if rough:
        _deliver_often(world)
    if count > ALWAYS_CHECKED:
        _check_now_and_then(world, count // ALWAYS_CHECKED)
    at: list[float] = []

    def begin() -> None:
        at.append(world.timeline.now())
        for member in list(world.fleet.groups[GROUP].members.values()):
            world.fleet.spot_warning(member)

    world.timeline.after(WARM_UP + 1, begin, "the storm begins")
    outcome = world.run(HOURS, converge=REST)
    times = [record.times for record in world.claims.records.values() if record.subject.group == GROUP]
    return Chain(
        end=_end(world, count),
        tainted=max(one["tainted"].timestamp() for one in times if "tainted" in one) - at[0],
        gone=max(one["closed"].timestamp() for one in times if "closed" in one) - at[0],
        executions=outcome.executions,
        violations=len(outcome.violations) + len(outcome.unexpected),
        cpu=time.process_time() - began,
    )


def _deliver_often(world: World) -> None:
    send = world.queue.send

    def deliver(body: str) -> None:
        for _ in range(DELIVERIES):
            send(body)

    world.bus._send = deliver


def _check_now_and_then(world: World, every: int) -> None:
    """All of them at the end, whatever was the last time."""
    check, end, seen = world.checker.after_event, world.checker.at_the_end, counting(1)

    def now_and_then(view: WorldView) -> list[Violation]:
        return check(view) if next(seen) % every == 0 else []

    def at_the_end(view: WorldView) -> list[Violation]:
        world.checker.after_event = check  # type: ignore[method-assign]
        return end(view)

    world.checker.after_event = now_and_then  # type: ignore[method-assign]
    world.checker.at_the_end = at_the_end  # type: ignore[method-assign]


def _end(world: World, count: int) -> End:
    warned = {instance for instance, _ in world.warned}
    records = world.claims.records
    outcomes = Counter(
        str(records[name].outcome) if name in records and records[name].status is Status.CLOSED else "open"
        for name in warned
    )
    group = world.fleet.groups[GROUP]
    return End(
        outcomes=dict(outcomes),
        desired=group.desired,
        in_service=sum(member.lifecycle == IN_SERVICE for member in group.members.values()),
        marked=sum(node.marked for node in world.kubernetes.nodes()),
        waiting=world.queue.depth,
        lost=len(world.queue.dead_letters) + len(world.queue.redriven) + count - len(warned),
    )


def _world(count: int, faults: Faults) -> World:
    policy = NodePolicy(name=GROUP, selector=Selector(groups=(GROUP,)))
    group = BenchGroup(
        name=GROUP,
        size=count,
        maximum=3 * count,
        zones=("us-east-1a", "us-east-1b", "us-east-1c"),
        instance_type="m5.large",
        selected=True,
        spot=True,
    )
    fleet = BenchFleet(
        groups=(group,),
        workloads=(),
        policies=ClusterPolicies(settings=ClusterSettings(name=fleets.CLUSTER), policies=(policy,)),
    )
    return World(1, fleet, replace(faults), ())
