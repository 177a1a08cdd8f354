"""One world to run, small enough to write down: a seed, and the parts that were removed from its world since.

Everything else follows from these. The file that `python -m simulation --replay FILE` reads is a case as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from leeward.errors import InvalidInputError
from simulation import clock_changes, fleets
from simulation.disruption import changed, disrupting, stopped
from simulation.equipment import equip
from simulation.fault_rates import Faults
from simulation.features import SECOND_CLUSTER, Feature, with_faults, with_fleet
from simulation.fleets import Arrival, ArrivalKind
from simulation.outcome import Outcome
from simulation.rule import Violation
from simulation.second_cluster import BUSIER, elsewhere, second_fleet
from simulation.second_cluster import CLUSTER as SECOND
from simulation.timeline import START, Streams
from simulation.world import CONVERGE, MOST_ENTRIES, World

WEEKS_FROM = 100.0  # hours
HOURS_A_WEEK = 168.0
SPARSE = 20.0  # troubles by the hour are so much rarer in a world that lasts weeks


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One world to run. `hours` with arrivals and faults, `per_hour` arrivals. `nodes` None: as many as the seed says;
    `arrivals` None: all that the seed brings.
    """

    seed: int
    hours: float
    per_hour: float
    faults: Faults = field(default_factory=Faults.all)
    nodes: int | None = None
    arrivals: tuple[Arrival, ...] | None = None
    upgrades: float = 0  # an hour
    features: tuple[str, ...] = ()  # `features.Feature`: how the world differs from the usual one
    disruption: bool = False  # fn disruption-planner on its schedule, with policies that give it something to do

    def planned(self) -> tuple[Arrival, ...]:
        """Return the arrivals, in the order of time."""
        if self.arrivals is not None:
            return self.arrivals
        streams = Streams(self.seed)
        busier = BUSIER if self._features & SECOND_CLUSTER else 1
        found = fleets.arrivals(self._fleet(), streams.stream("arrivals"), self.hours, self.per_hour * busier)
        begun = fleets.upgrades(streams.stream("upgrades"), self.hours, self.upgrades * busier)
        stops = stopped(streams.stream("disruptions"), self.hours) if self.disruption else ()
        drifts = self.disruption and not self.upgrades  # upgrades bring template changes of their own
        changes = changed(streams.stream("templates"), self.hours) if drifts else ()
        return tuple(sorted((*found, *begun, *stops, *changes), key=lambda arrival: arrival.at_seconds))

    @property
    def size(self) -> int:
        """Number of nodes at the beginning."""
        return self._fleet().nodes

    def world(self) -> World:
        """Build the world; everything in it comes from the seed."""
        faults = with_faults(self.faults, self._features)
        if self.hours > WEEKS_FROM:
            faults = faults.rarer(SPARSE)
        beside = self._second_fleet() if self._features & SECOND_CLUSTER else None
        begins = clock_changes.begin_of(self.seed) if Feature.CLOCKS_CHANGE in self._features else START
        world = World(
            self.seed, self._fleet(), faults, self.planned(), disruption=self.disruption, beside=beside, begins=begins
        )
        equip(world, self._features, lasts_weeks=self.hours > WEEKS_FROM)
        if self.hours > WEEKS_FROM:
            world.last_weeks()
        return world

    def run(self, *, enough: Callable[[Violation], bool] | None = None, limit: int | None = None) -> Outcome:
        """Run to the end, or to the first violation that is `enough`, or to so many entries of the timeline, by default
        to `MOST_ENTRIES` for each week.
        """
        world = self.world()
        weeks = max(1.0, self.hours / HOURS_A_WEEK)
        world.enough, world.limit = enough or world.enough, limit or round(MOST_ENTRIES * weeks)
        return world.run(self.hours, CONVERGE)

    def to_json(self) -> str:
        """Return the case as JSON for a file."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a case. Raises InvalidInputError for anything that `to_json` has not written."""
        try:
            raw = json.loads(text)
            return cls(
                seed=int(raw["seed"]),
                hours=float(raw["hours"]),
                per_hour=float(raw["per_hour"]),
                faults=Faults(**raw["faults"]),
                nodes=raw["nodes"],
                arrivals=None if raw["arrivals"] is None else _arrivals(raw["arrivals"]),
                upgrades=float(raw.get("upgrades") or 0),
                disruption=bool(raw.get("disruption")),
                features=tuple(Feature(name).value for name in raw.get("features") or ()),
            )
        except (ValueError, KeyError, TypeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise InvalidInputError(f"found no case that the simulation has written ({what})") from error

    def _fleet(self) -> fleets.Fleet:
        streams = Streams(self.seed)
        return self._changed(fleets.generate(streams.stream("fleet plan"), nodes=self._size(streams)), streams)

    def _second_fleet(self) -> fleets.Fleet:
        streams = Streams(f"{self.seed}/{SECOND}")
        fleet = self._changed(second_fleet(streams.stream("fleet plan")), streams)
        return elsewhere(fleet) if Feature.ACCOUNTS in self._features else fleet

    def _changed(self, fleet: fleets.Fleet, streams: Streams) -> fleets.Fleet:
        fleet = disrupting(fleet, streams.stream("disruption plan")) if self.disruption else fleet
        fleet = with_fleet(fleet, self._features, streams.stream("features"))
        return clock_changes.with_clock_change(fleet, self.seed) if Feature.CLOCKS_CHANGE in self._features else fleet

    @property
    def _features(self) -> frozenset[Feature]:
        return frozenset(map(Feature, self.features))

    def _size(self, streams: Streams) -> int | None:
        tiny = self.nodes is None and Feature.TINY in self._features
        return streams.stream("tiny").randint(1, 4) if tiny else self.nodes


def _arrivals(raw: Sequence[Mapping[str, Any]]) -> tuple[Arrival, ...]:
    return tuple(
        Arrival(at_seconds=float(one["at_seconds"]), kind=ArrivalKind(one["kind"]), pick=int(one["pick"]))
        for one in raw
    )
