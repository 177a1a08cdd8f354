"""Shortening: what is not needed for the same rule to break goes, and what is left can be run again from a file."""

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace

import pytest

from leeward.errors import InvalidInputError
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.fleets import Arrival, ArrivalKind
from simulation.rule import Rule, Violation
from simulation.shortening import shorten

ARRIVALS = tuple(
    Arrival(at_seconds=60.0 * number, kind=ArrivalKind.SPOT_WARNING, pick=number * 7919) for number in range(23)
)
EVERYTHING = Faults.all()
FIRST, SECOND = ARRIVALS[3], ARRIVALS[17]


def silent(_line):
    pass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Breaks a rule with two arrivals, throttled calls, ten nodes and a quarter of an hour; counts its runs."""

    arrivals: tuple = ARRIVALS
    faults: Faults = EVERYTHING
    hours: float = 4.0
    nodes: int | None = None
    features: tuple = ()
    ran: list

    @property
    def size(self):
        return self.nodes or 80

    def planned(self):
        return self.arrivals

    def run(self, **_options):
        self.ran.append(1)
        needed = {FIRST, SECOND} <= set(self.arrivals) and self.size >= 10 and self.hours >= 0.25
        rule = Rule.HOOK if needed and self.faults.throttle_aws else Rule.DEBT
        return SimpleNamespace(violations=(Violation(seed=1, at=0, rule=rule, text="x"),), events=100)


def test_only_what_the_rule_needs_is_left():
    recipe = Recipe(ran=[])
    found = shorten(recipe, recipe.run(), silent)
    assert found.rule is Rule.HOOK
    assert found.case.arrivals == (FIRST, SECOND)
    kept = [field.name for field in fields(Faults) if getattr(found.case.faults, field.name) != field.default]
    assert kept == ["throttle_aws"]
    assert (found.case.hours, found.case.size) == (0.25, 10)


def test_it_tries_no_more_worlds_than_it_may():
    recipe = Recipe(ran=[])
    failed = recipe.run()
    found = shorten(recipe, failed, silent, most_runs=12)
    assert found.runs == 12
    assert len(recipe.ran) == 1 + 12 + 1  # the failing run, the search, the story
    assert {FIRST, SECOND} <= set(found.case.arrivals)


def test_the_same_case_is_shortened_in_the_same_way():
    def lines():
        said, recipe = [], Recipe(ran=[])
        shorten(recipe, recipe.run(), said.append)
        return said

    assert lines() == lines()
    assert lines()[-1] == "10 nodes are enough"


def test_what_broke_no_rule_or_does_not_break_it_again_is_not_shortened():
    recipe = Recipe(ran=[])
    assert shorten(recipe, SimpleNamespace(violations=(), events=1), silent) is None
    assert shorten(replace(recipe, hours=0.1), recipe.run(), silent) is None


@pytest.mark.long
def test_a_broken_build_needs_few_arrivals_and_its_file_gives_the_same_world(monkeypatch):
    """`test_command.py::test_the_first_failing_seed_is_shortened_and_can_be_replayed` is the quick form."""
    monkeypatch.setattr("leeward.interruption.batch._dead_letter", lambda *_: {})  # malformed messages are dropped
    case = Case(seed=2, hours=0.2, per_hour=100, faults=Faults.none(), nodes=5)
    found = shorten(case, case.run(), silent, most_runs=40)
    assert found.rule is Rule.MALFORMED
    assert [arrival.kind for arrival in found.case.arrivals] == [ArrivalKind.NONSENSE]
    again = Case.from_json(found.case.to_json())
    assert again == found.case
    assert again.run().violations == found.case.run().violations != ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seed": "x"}', '{"seed": 1, "hours": 1, "per_hour": 1}'])
def test_a_file_that_holds_no_case_is_refused_in_a_sentence(text):
    with pytest.raises(InvalidInputError, match="found no case"):
        Case.from_json(text)


def test_a_world_that_does_not_come_to_rest_is_ended_and_reported():
    outcome = Case(seed=1, hours=0.2, per_hour=100, nodes=5).run(limit=200)
    assert [violation.rule for violation in outcome.violations] == [Rule.REST]
    assert outcome.events == 200


def test_a_run_may_end_with_the_first_violation(monkeypatch):
    monkeypatch.setattr("leeward.termination.hook_completion._complete", lambda *_: True)  # hooks are never completed
    case = Case(seed=1, hours=0.2, per_hour=100, faults=Faults.none(), nodes=5, arrivals=ARRIVALS[1:4])
    assert len(case.run(enough=lambda _: True).violations) == 1 < len(case.run().violations)
