"""The simulation's EC2 and Auto Scaling, alone: no product runs on it and nothing goes wrong by chance."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from simulation.aws.bus import let_through
from simulation.aws.changes import SimGroupChanges
from simulation.aws.compute import SimInstance
from simulation.aws.events import Event
from simulation.aws.fleet import SimFleet
from simulation.aws.listeners import Listeners
from simulation.aws.ports import SimGroups, SimInstances
from simulation.aws.templates import SimTemplates
from simulation.fault_rates import Faults
from simulation.faults import Injector
from simulation.timeline import Streams, Timeline
from tests.simulation.fleet_stand_in import GroupPlan

PATIENCE = 3600.0  # virtual seconds
STEP = 0.5
ZONES = ("us-east-1a", "us-east-1b")


class SimulatedGroups:
    """A `GroupWorld` in virtual time."""

    exact = True
    short = 30
    long = 3600

    def __init__(self) -> None:
        self._timeline = Timeline()
        self._timeline.afterwards = lambda _name: self._look()
        self._events: list[Event] = []
        self._wait_key: dict[str, list[str]] = {}

    def group(self, *, size: int = 1, maximum: int = 4, rebalance: bool = False) -> str:
        plan = GroupPlan(name="g", zones=ZONES, size=0, maximum=maximum, capacity_rebalance=rebalance)
        nothing = Injector(Faults.none(), Streams(1), self._timeline, lambda _seconds: None)
        to = Listeners(
            joined=lambda _: None,
            ended=lambda _: None,
            emit=self._events.append,
            changed=self._look,
            said=lambda _: None,
        )
        self._fleet = SimFleet([plan], "blue", self._timeline, nothing, Random(1), to)
        self.groups, self.instances = SimGroups(self._fleet, nothing), SimInstances(self._fleet)
        self.changes = SimGroupChanges(self._fleet)
        self.templates = SimTemplates([one.template for one in self._fleet.groups.values()])
        self.resize("g", size)
        self.until(lambda: self._in_service() == size, "the group at its size")
        return "g"

    def resize(self, group: str, desired: int) -> None:
        self._fleet.resize(self._fleet.groups[group], desired)

    def keep_at_least(self, group: str, minimum: int) -> None:
        self._fleet.groups[group].minimum = minimum

    def end(self, instance: str) -> None:
        self._fleet.end_instance(self._member(instance), direct=True)

    def impair(self, instance: str) -> None:
        self._member(instance).impaired = self._timeline.now()

    def call_unhealthy(self, instance: str) -> None:
        self._fleet.unhealthy(self._member(instance))

    def recommend_rebalance(self, instance: str) -> None:
        self._fleet.notices.rebalance_recommendation(self._member(instance))

    def balance(self) -> None:
        self._fleet.scaling.balance_zones()

    def journal(self, instance: str) -> Sequence[str]:
        self._look()
        return self._wait_key.get(instance, [])

    def reported(self, instance: str) -> Sequence[dict[str, Any]]:
        about = [event for event in self._events if let_through(event)]
        return [event for event in about if instance in event["detail"].values()]

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        end = self._timeline.now() + PATIENCE
        while not (value := condition()):
            assert self._timeline.now() < end, f"never came: {what}"
            self._timeline.run_until(self._timeline.now() + STEP)
        return value

    def _member(self, instance: str) -> SimInstance:
        return self._fleet.instances[instance]

    def _in_service(self) -> int:
        return sum(member.lifecycle == "InService" for member in self._fleet.instances.values())

    def _look(self) -> None:
        for member in self._fleet.instances.values():
            words = self._wait_key.setdefault(member.id, [])
            for word in (member.state, member.lifecycle or "Terminated"):
                last = next((known for known in reversed(words) if known.islower() == word.islower()), None)
                if word != last:
                    words.append(word)
