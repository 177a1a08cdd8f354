"""A broken build of the product: a sentence, what is replaced, the rules that have to notice, and the worlds for it."""

import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.outcome import Outcome
from simulation.rule import Rule

SEEDS = 200
MOST_ENTRIES = 60_000  # of one run: a sound build has some thousands
OURS = ("leeward", "simulation")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Which worlds of the generator a build is tried in. The first two are enough for most; `features` name what a
    world must have to reach a build (`simulation/features.py`).
    """

    name: str
    hours: float = 0.5
    per_hour: float = 100
    nodes: int = 9
    faults: Faults = field(default_factory=Faults.all)
    upgrades: float = 0
    disruption: bool = False
    features: tuple[Feature, ...] = ()

    def case(self, seed: int) -> Case:
        return Case(
            seed=seed,
            hours=self.hours,
            per_hour=self.per_hour,
            nodes=self.nodes,
            faults=self.faults,
            upgrades=self.upgrades,
            disruption=self.disruption,
            features=tuple(feature.value for feature in self.features),
        )


ROUGH = Scenario(name="all faults")
CALM = Scenario(name="no faults", faults=Faults.none())
_HARSH = replace(Faults.all(), kill_before=0.02, kill_after_call=0.02, lose_answer=0.03, duplicate_event=0.3)
HARSH = Scenario(name="calls fail often", faults=_HARSH)
FULL = Scenario(name="full subnets", hours=1, faults=replace(Faults.all(), subnets_full_per_hour=6))
_AWAY = replace(Faults.all(), api_outages_per_hour=6)
CROWDED = Scenario(name="crowded, the Kubernetes API often away", per_hour=240, nodes=40, faults=_AWAY)


ROLLING = Scenario(name="upgrades", per_hour=20, upgrades=12)
ROLLING_HARSH = Scenario(name="upgrades, calls fail often", per_hour=20, upgrades=12, faults=_HARSH)
DISRUPTIONS = Scenario(name="disruption runs", per_hour=20, disruption=True, hours=1)
DISRUPTIONS_HARSH = Scenario(
    name="disruption runs, calls fail often", per_hour=20, disruption=True, hours=1, faults=_HARSH
)
DISRUPTIONS_OF_ZONES = replace(
    DISRUPTIONS, name="disruption runs, budgets of zones", nodes=30, faults=Faults.none(), features=(Feature.BUDGETS,)
)


def with_features(*features: Feature, **given: Any) -> Scenario:
    """Worlds of half an hour in which these features meet, named after them; `given` as in Scenario."""
    return Scenario(name=", ".join(features), features=features, **given)


class Workshop:
    """Replaces functions of the product wherever they are known by name, until the build is taken apart again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def replace(self, path: str, broken: Any) -> None:
        """`leeward.termination.steps.finish`: also where another module has imported it, or a table holds it."""
        original = _find(path)
        for name, module in sorted(sys.modules.items()):
            if name.split(".")[0] in OURS:
                self._replace_in(module, original, broken)

    def wrap(self, path: str, around: Callable[..., Any]) -> None:
        """`around` is called with the original before the arguments."""
        self.replace(path, partial(around, _find(path)))

    def method(self, path: str, broken: Callable[..., Any]) -> None:
        """A method of one of the adapters that the simulation puts in the place of AWS's."""
        self.monkeypatch.setattr(path, broken)

    def _replace_in(self, module: ModuleType, original: Any, broken: Any) -> None:
        for name, value in list(vars(module).items()):
            if value is original:
                self.monkeypatch.setattr(module, name, broken)
            elif isinstance(value, MutableMapping) and name.isupper():
                for key in [key for key, item in value.items() if item is original]:
                    self.monkeypatch.setitem(value, key, broken)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """`story`: what a careless engineer would have done. One of `rules` notices; REST may always. `seed`: of a world
    that is known to notice, which is tried before all others.
    """

    name: str
    story: str
    breaks: Callable[[Workshop], None]
    rules: frozenset[Rule]
    scenario: Scenario = ROUGH
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Catch:
    """Where a build was caught."""

    seed: int
    rule: Rule


def caught(mutation: Mutation, seeds: int = SEEDS) -> Catch | None:
    """The first seed whose world notices, by a rule that the sound build keeps in the same world."""
    for seed in dict.fromkeys((mutation.seed, *range(1, seeds + 1))):
        case = mutation.scenario.case(seed)
        with _built(mutation):
            found = _broken(case, mutation)
        if found is not None and found not in sound(mutation.scenario.name, case):
            return Catch(seed=seed, rule=found)
    return None


@cache
def sound(_scenario: str, case: Case) -> frozenset[Rule]:
    """What the product itself breaks in this world: nothing, as other tests show; here it is looked at again."""
    outcome = case.run(limit=MOST_ENTRIES)
    return frozenset(violation.rule for violation in outcome.violations)


@contextmanager
def _built(mutation: Mutation) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        mutation.breaks(Workshop(monkeypatch))
        yield


def _broken(case: Case, mutation: Mutation) -> Rule | None:
    wanted = mutation.rules | {Rule.REST}
    outcome: Outcome = case.run(enough=lambda violation: violation.rule in wanted, limit=MOST_ENTRIES)
    return next((violation.rule for violation in outcome.violations if violation.rule in wanted), None)


def _find(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
