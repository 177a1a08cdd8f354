"""What happens to a fleet from outside: AWS takes instances, people and other controllers meddle, and troubles begin.

Each arrival chooses among what is there at its moment, so that every plan fits every fleet."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Protocol

from local.cluster.model import Cluster
from local.cluster.objects import name_of
from simulation.aws import events
from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.aws.fleet import SimFleet
from simulation.aws.queue import Queue
from simulation.convergence import is_marked
from simulation.faults import Injector
from simulation.plans import ArrivalPlan
from simulation.system import System
from simulation.timeline import Timeline

NONSENSE = (
    "no JSON at all",
    '{"source": "aws.ec2"}',
    "[1, 2]",
    '{"source": "acme", "detail-type": "Hello", "detail": {}}',
)
KUBELET_RESTARTS = 600.0  # a node that somebody deleted registers again
UNCORDONED_AFTER = 1200.0
ZONE_BALANCE_EVERY = 600.0


class Scene(Protocol):
    """What an arrival may touch."""

    timeline: Timeline
    cluster: Cluster
    fleet: SimFleet
    queue: Queue
    system: System
    injector: Injector

    def say(self, line: str) -> None: ...
    def rejoin(self, member: SimInstance) -> None: ...


class Arrivals:
    """Plays a plan. `over` ends it; `counts` by kind."""

    def __init__(self, scene: Scene, plan: Sequence[ArrivalPlan]) -> None:
        self._scene, self._plan = scene, plan
        self.over = False
        self.counts: Counter[str] = Counter()
        self._kinds: Mapping[str, Callable[[int], None]] = {
            "spot_warning": self._spot_warning,
            "rebalance": self._rebalance,
            "maintenance": self._maintenance,
            "scale_in": self._scale_in,
            "scale_out": self._scale_out,
            "operator_cordon": self._cordon,
            "operator_delete_node": self._delete_node,
            "operator_stop_execution": self._stop_execution,
            "nonsense": self._nonsense,
            "foreign_terminate": self._foreign_terminate,
            "unhealthy": self._unhealthy,
        }

    def begin(self) -> None:
        """Put the whole plan into the timeline, counted from now."""
        for arrival in self._plan:
            self._scene.timeline.after(arrival.at_seconds, self._player(arrival), f"arrival {arrival.kind}")

    def _player(self, arrival: ArrivalPlan) -> Callable[[], None]:
        def play() -> None:
            if not self.over:
                self.counts[arrival.kind] += 1
                self._kinds[arrival.kind](arrival.pick)

        return play

    def _pick(self, pick: int, *, spot: bool = False) -> SimInstance | None:
        members = [m for m in self._scene.fleet.instances.values() if m.lifecycle == IN_SERVICE and not m.gone]
        wanted = [m for m in members if m.spot] if spot else members
        return wanted[pick % len(wanted)] if wanted else None

    def _spot_warning(self, pick: int) -> None:
        if member := self._pick(pick, spot=True):
            self._scene.fleet.spot_warning(member)

    def _rebalance(self, pick: int) -> None:
        if member := self._pick(pick, spot=True):
            self._scene.fleet.rebalance_recommendation(member)

    def _maintenance(self, pick: int) -> None:
        """In one to forty hours; AWS ends the instance then if it is still there."""
        if member := self._pick(pick):
            now, ahead = self._scene.timeline.instant(), timedelta(hours=1 + pick % 40)
            id_ = self._scene.fleet.emit_id()
            self._scene.say(f"maintenance of {member.id} in {ahead}")
            self._scene.system.bus.emit(events.maintenance(id_, member.id, now, now + ahead))
            end = ahead.total_seconds()
            self._scene.timeline.after(end, lambda: self._scene.fleet.end_instance(member, direct=True), "retirement")

    def _scale_in(self, pick: int) -> None:
        """As Cluster Autoscaler does it: terminate one with decrement."""
        if (member := self._pick(pick)) and self._scene.fleet.groups[member.group].desired > 1:
            self._scene.say(f"{member.id} is scaled in")
            self._scene.fleet.groups[member.group].desired -= 1
            self._scene.fleet.begin_terminating(member)

    def _scale_out(self, pick: int) -> None:
        groups = list(self._scene.fleet.groups.values())
        group = groups[pick % len(groups)]
        if group.desired < group.plan.maximum:
            self._scene.say(f"{group.name} is scaled out")
            group.desired += 1
            self._scene.fleet.reconcile_soon(group)

    def _cordon(self, pick: int) -> None:
        if member := self._pick(pick):
            self._set_unschedulable(member, unschedulable=True)
            later = self._scene.timeline.after
            later(UNCORDONED_AFTER, lambda: self._set_unschedulable(member, unschedulable=False), "operator uncordons")

    def _set_unschedulable(self, member: SimInstance, *, unschedulable: bool) -> None:
        """An operator lifts only the cordon of a node that nobody has marked meanwhile."""
        node = self._scene.cluster.store.find("nodes", member.node)
        if node is not None and (unschedulable or not is_marked(node)):
            self._scene.say(f"an operator {'cordons' if unschedulable else 'uncordons'} {name_of(node)}")
            self._scene.cluster.patch("nodes", member.node, {"spec": {"unschedulable": unschedulable}})

    def _delete_node(self, pick: int) -> None:
        member = self._pick(pick)
        if member is not None and self._scene.cluster.store.find("nodes", member.node) is not None:
            self._scene.say(f"an operator deletes {member.node}")
            self._scene.cluster.delete("nodes", member.node)
            again = member
            self._scene.timeline.after(KUBELET_RESTARTS, lambda: self._scene.rejoin(again), "kubelet restarts")

    def _stop_execution(self, pick: int) -> None:
        stop_one(self._scene, pick)

    def _nonsense(self, pick: int) -> None:
        self._scene.queue.send(NONSENSE[pick % len(NONSENSE)])

    def _foreign_terminate(self, pick: int) -> None:
        if member := self._pick(pick):
            self._scene.say(f"somebody terminates {member.id} at EC2")
            self._scene.fleet.end_instance(member, direct=True)

    def _unhealthy(self, pick: int) -> None:
        if member := self._pick(pick):
            self._scene.say(f"{member.id} is unhealthy: its group ends it")
            self._scene.fleet.begin_terminating(member)


class Troubles:
    """Faults that come by the hour: API outages, zones without capacity, operators who stop executions."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def begin(self) -> None:
        """Throw the dice each minute; zones balance every ten."""
        self._scene.timeline.every(60, self._minute, "troubles")
        self._scene.timeline.every(ZONE_BALANCE_EVERY, self._scene.fleet.balance_zones, "zones balance")

    def _minute(self) -> None:
        injector, now = self._scene.injector, self._scene.timeline.now()
        faults, random = injector.faults, injector.random("troubles")
        if injector.happens("Kubernetes API gone", faults.api_outages_per_hour / 60, "troubles"):
            injector.api_down_until = now + random.uniform(30, 300)
            self._scene.say("the Kubernetes API does not answer")
        if injector.happens("zone without capacity", faults.zone_outages_per_hour / 60, "troubles"):
            zone = _any(sorted({z for group in self._scene.fleet.groups.values() for z in group.plan.zones}), random)
            injector.zones_down[zone] = now + random.uniform(300, 1800)
            self._scene.say(f"no capacity in {zone}")
        if injector.happens("execution stopped", faults.stops_per_hour / 60, "troubles"):
            stop_one(self._scene, random.randrange(1000))


def stop_one(scene: Scene, pick: int) -> None:
    """An operator stops one of the open executions."""
    names = sorted(scene.system.machine.executions)
    if names:
        scene.say(f"an operator stops {names[pick % len(names)]}")
        scene.system.machine.stop(names[pick % len(names)])


def _any(names: Sequence[str], random: Random) -> str:
    return names[random.randrange(len(names))]
