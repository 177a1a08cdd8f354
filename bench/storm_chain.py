"""Storm through the whole chain in virtual time: every spot instance of a group is warned in the same second.

The product's functions and state machine on the simulated AWS, with its invariants. The rougher variants must reach the
same end as the smooth one: each message comes three times, and a fifth of all requests to AWS is throttled, with three
attempts of the SDK for each call; or, harsher, a fifth of all calls fails although the SDK has tried them three times.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import count as counting

from bench.upgrade_fleet import BenchFleet, BenchGroup
from leeward.adapters.aws.clients import ATTEMPTS
from leeward.model import well_known
from leeward.model.termination import Status
from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy
from local.cluster.objects import name_of
from local.cluster.store import Change
from simulation import fleets
from simulation.aws.compute import IN_SERVICE
from simulation.fault_rates import Faults
from simulation.rule import Violation
from simulation.view import WorldView
from simulation.world import WARM_UP, World

GROUP = "web"
HOURS, REST = 0.1, 1800.0
DELIVERIES = 3
THROTTLED = 0.2
# nodes; with more, the invariants, which examine every node, are checked after each so-many-th event
ALWAYS_CHECKED = 100


class Way(StrEnum):
    """Ways in which a storm is made worse."""

    SMOOTH = "every call answered"
    ROUGH = "each message three times, a fifth of the requests to AWS throttled"
    HARSH = "each message three times, a fifth of the calls to AWS throttled for longer than the SDK tries"


# Shares of the calls that fail. The SDK tries the termination of an instance only once; that is not distinguished here.
CALLS_THROTTLED = {Way.SMOOTH: 0.0, Way.ROUGH: THROTTLED**ATTEMPTS, Way.HARSH: THROTTLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """State of the world after a storm: the same for every variant. `outcomes` of the warned instances."""

    outcomes: Mapping[str, int]
    desired: int
    in_service: int
    left_tainted: int
    waiting: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Result of one chain. `tainted` and `gone`: seconds from the warnings until the last node was tainted and the last
    record closed. `throttled`: calls to AWS; `violations`: invariants that were broken, in words.
    """

    end: End
    tainted: float
    gone: float
    executions: int
    throttled: int
    violations: tuple[str, ...]
    cpu: float


def storm(count: int, way: Way = Way.SMOOTH) -> Chain:
    """Warn all of them and wait until no work is left."""
    began = time.process_time()
    world = _world(count, Faults(throttle_aws=CALLS_THROTTLED[way]))
    if way is not Way.SMOOTH:
        _deliver_often(world)
    if count > ALWAYS_CHECKED:
        check_now_and_then(world, count // ALWAYS_CHECKED)
    at, warned, first = list[float](), set[str](), first_taints(world)

    def begin() -> None:
        at.append(world.timeline.now())
        warned.update(node.name for node in world.kubernetes.nodes())
        for member in list(world.fleet.groups[GROUP].members.values()):
            world.fleet.notices.spot_warning(member)

    world.timeline.after(WARM_UP + 1, begin, "the storm begins")
    outcome = world.run(HOURS, converge=REST)
    times = [record.times for record in world.claims.records.values() if record.subject.group == GROUP]
    return Chain(
        end=_end(world, count),
        tainted=max(when for node, when in first.items() if node in warned) - at[0],
        gone=max(one["closed"].timestamp() for one in times if "closed" in one) - at[0],
        executions=outcome.executions,
        throttled=world.injector.counts["AWS throttled"],
        violations=(*map(str, outcome.violations), *map(str, outcome.unexpected)),
        cpu=time.process_time() - began,
    )


def first_taints(world: World) -> dict[str, float]:
    """Return when each node first got our taint."""
    found: dict[str, float] = {}

    def see(change: Change) -> None:
        if change.resource == "nodes":
            taints = change.obj["spec"].get("taints") or ()
            if any(taint["key"] == well_known.DISRUPTED_TAINT for taint in taints):
                found.setdefault(name_of(change.obj), world.timeline.now())

    world.cluster.observe(see)
    return found


def _deliver_often(world: World) -> None:
    def deliver(send: Callable[[str], None], body: str) -> None:
        for _ in range(DELIVERIES):
            send(body)

    world.bus.send = partial(deliver, world.bus.send)
    world.bus.send_state_change = partial(deliver, world.bus.send_state_change)


def check_now_and_then(world: World, every: int) -> None:
    """Check the invariants after each `every`-th event, and all of them at the end."""
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
        left_tainted=sum(node.tainted for node in world.kubernetes.nodes()),
        waiting=world.queue.depth + world.state_changes.depth,
        lost=len(world.queue.dead_letters) + len(world.queue.redriven) + count - len(warned),
    )


def _world(count: int, faults: Faults) -> World:
    policy = NodePolicy(name=GROUP, selector=GroupSelector(groups=(GROUP,)))
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
    return World(1, fleet, faults, ())
