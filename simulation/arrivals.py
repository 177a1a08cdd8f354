"""Arrivals from outside of a fleet: AWS takes instances, operators and other controllers intervene, and troubles begin.

Each arrival chooses among what exists at its moment, so that every plan fits every fleet."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

from simulation.disruption import change_template, stop_disruption
from simulation.faults import Crowd
from simulation.interruptions import Interruptions
from simulation.operators import Operators
from simulation.owners import set_desired, terminate
from simulation.plans import ArrivalPlan
from simulation.scene import Scene, subject
from simulation.upgrades import Upgraders

NONSENSE = (
    "no JSON at all",
    '{"source": "aws.ec2"}',
    "[1, 2]",
    '{"source": "acme", "detail-type": "Hello", "detail": {}}',
)
ZONE_BALANCE_EVERY = 600.0
AWAY = (60.0, 480.0)  # seconds for which a service of AWS is away
SCALER = "a scaling policy"


class Arrivals:
    """Player of a plan. `over` ends it; `counts` by kind."""

    def __init__(self, scene: Scene, plan: Sequence[ArrivalPlan]) -> None:
        self._scene, self._plan = scene, plan
        self.over = False
        self.counts: Counter[str] = Counter()
        self._aws, self._operators, self._upgraders = Interruptions(scene), Operators(scene), Upgraders(scene)
        self._kinds: Mapping[str, Callable[[int], None]] = {
            "spot_warning": self._aws.spot_warning,
            "spot_storm": self._aws.spot_storm,
            "rebalance": self._aws.rebalance,
            "rebalance_then_warning": self._aws.rebalance_then_warning,
            "maintenance": self._aws.maintenance,
            "maintenance_moved": self._aws.maintenance_moved,
            "unhealthy": self._aws.unhealthy,
            "zone_outage": self._aws.zone_outage,
            "operator_cordon": self._operators.cordon,
            "operator_delete_node": self._operators.delete_node,
            "operator_drain": self._operators.drain,
            "operator_resize": self._operators.resize,
            "operator_detach": self._operators.detach,
            "operator_start_execution": self._operators.start_execution,
            "operator_stop_execution": self._operators.stop_execution,
            "foreign_terminate": self._operators.terminate,
            "scale_in": self._scale_in,
            "scale_out": self._scale_out,
            "collision": self._collision,
            "nonsense": self._nonsense,
            "upgrade": self._upgraders.start,
            "upgrade_controlled": self._upgraders.control,
            "upgrade_stopped": self._upgraders.stop,
            "disruption_stopped": lambda pick: stop_disruption(scene, pick),
            "template_changed": lambda pick: change_template(scene, pick),
            "alarm_rings": self._alarm_rings,
            "alarms_quiet": self._alarms_quiet,
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

    def _scale_in(self, pick: int) -> None:
        """Terminate one instance and shrink the group by it."""
        if (member := subject(self._scene, pick)) and self._scene.fleet.groups[member.group].desired > 1:
            terminate(self._scene, member, SCALER, decrement=True)

    def _scale_out(self, pick: int) -> None:
        groups = list(self._scene.fleet.groups.values())
        group = groups[pick % len(groups)]
        set_desired(self._scene, group, group.desired + 1, SCALER)

    def _collision(self, pick: int) -> None:
        """Cause a warning, a scale-in and an operator's drain of one instance at the same time, in any order."""
        member = subject(self._scene, pick, spot=True) or subject(self._scene, pick)
        if member is None:
            return
        self._scene.say(f"several want {member.id} at once")
        warn, end = self._scene.fleet.notices.spot_warning, self._scene.fleet.end_instance
        causes: list[Callable[[], object]] = [
            lambda: warn(member) if member.spot else end(member, direct=True),
            lambda: terminate(self._scene, member, SCALER, decrement=bool(pick >> 6 & 1)),
            lambda: self._operators.drain_node(member, pick),
        ]
        Random(pick).shuffle(causes)
        for cause in causes:
            cause()

    def _alarm_rings(self, pick: int) -> None:
        """Put one of the existing alarms into ALARM; upgrades and disruption runs that name it hold."""
        alarms = self._scene.system.alarms
        if names := sorted(alarms.known):
            self._scene.say(f"alarm {names[pick % len(names)]} rings")
            alarms.ring(names[pick % len(names)], self._scene.timeline.now())

    def _alarms_quiet(self, _pick: int) -> None:
        self._scene.system.alarms.rings.clear()

    def _nonsense(self, pick: int) -> None:
        self._scene.queue.send(NONSENSE[pick % len(NONSENSE)])


class Troubles:
    """Faults that come by the hour: API outages, zones without capacity or addresses, operators who stop executions.
    `of_api_alone`: the others are another's. Injectors stop them, so `over` changes nothing.
    """

    def __init__(self, scene: Scene, *, of_api_alone: bool = False) -> None:
        self._scene, self._of_api_alone = scene, of_api_alone
        self.over = False

    def begin(self) -> None:
        """Draw faults each minute; zones balance every ten."""
        self._scene.timeline.every(60, self._minute, "troubles")
        if not self._of_api_alone:
            self._scene.timeline.every(ZONE_BALANCE_EVERY, self._scene.fleet.scaling.balance_zones, "zones balance")

    def _minute(self) -> None:
        injector, now = self._scene.injector, self._scene.timeline.now()
        faults, random = injector.faults, injector.random
        if injector.happens("Kubernetes API gone", faults.api_outages_per_hour / 60, "troubles"):
            injector.api_down_until = now + random("outages").uniform(30, 300)
            self._scene.say("the Kubernetes API does not answer")
        if injector.happens("Kubernetes API hangs", faults.api_hangs_per_hour / 60, "troubles"):
            dice = random("hangs")
            injector.api_hangs_until, injector.lists_work = now + dice.uniform(60, 400), dice.random() < 0.5
            self._scene.say(f"the Kubernetes API {'writes nothing' if injector.lists_work else 'hangs'}")
        if injector.happens("Kubernetes API slow", faults.api_slow_per_hour / 60, "troubles"):
            injector.api_slow_until = now + random("slowness").uniform(60, 600)
            self._scene.say("the Kubernetes API is slow")
        self._services_away()
        if injector.happens("webhook", faults.webhooks_per_hour / 60, "troubles"):
            workload = _any(self._workloads(), random("webhooks"))
            injector.refused[workload] = now + random("webhooks").uniform(300, 3600)
            self._scene.say(f"a webhook fails every eviction of {workload}")
        if injector.happens("zone without capacity", faults.zone_outages_per_hour / 60, "troubles"):
            zone = _any(self._zones(), random("zones"))
            injector.zones_down[zone] = now + random("zones").uniform(300, 1800)
            self._scene.say(f"no capacity in {zone}")
        if injector.happens("subnet full", faults.subnets_full_per_hour / 60, "troubles"):
            dice = random("subnets")
            zone = _any(self._zones(), dice)
            left = dice.randrange(16)
            injector.crowded[zone] = Crowd(since=now, until=now + dice.uniform(1800, 5400), left=left)
            self._scene.say(f"others leave {left} addresses in {zone}")
        if injector.happens("execution stopped", faults.stops_per_hour / 60, "troubles"):
            stop_one(self._scene, random("stops").randrange(1000))

    def _services_away(self) -> None:
        injector, now = self._scene.injector, self._scene.timeline.now()
        faults, dice = injector.faults, injector.random("services away")
        if injector.happens("table goes away", faults.table_outages_per_hour / 60, "troubles"):
            injector.table_away_until = now + dice.uniform(*AWAY)
            self._scene.say("the table refuses every request")
        if injector.happens("queue goes away", faults.queue_outages_per_hour / 60, "troubles"):
            injector.queue_away_until = now + dice.uniform(*AWAY)
            self._scene.say("the queue delivers nothing")
        if injector.happens("concurrency goes away", faults.concurrency_outages_per_hour / 60, "troubles"):
            injector.concurrency_away_until = now + dice.uniform(*AWAY)
            self._scene.say("the account has no concurrency left: Lambda starts no function")

    def _workloads(self) -> list[str]:
        pods = self._scene.cluster.store.each("pods")
        return sorted({str(pod["metadata"].get("labels", {}).get("app", "")) for pod in pods} - {""}) or [""]

    def _zones(self) -> list[str]:
        return sorted({zone for group in self._scene.fleet.groups.values() for zone in group.plan.zones})


def stop_one(scene: Scene, pick: int) -> None:
    """Stop one of the open executions, as an operator does."""
    names = sorted(scene.system.machine.executions)
    if names:
        scene.say(f"an operator stops {names[pick % len(names)]}")
        scene.system.machine.stop(names[pick % len(names)])


def _any(names: Sequence[str], random: Random) -> str:
    return names[random.randrange(len(names))]
