"""Every broken build is caught: by an invariant of the simulation within 200 seeds, or by the tests that it names."""

import pytest

from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, Workshop, caught
from tests.simulation.mutations.editing import apply_all, edit
from tests.simulation.mutations.every import EVERY, chosen, chosen_planted
from tests.simulation.mutations.plant import caught_by
from tests.simulation.mutations.planted import PLANTED

UNBROKEN = Mutation(name="nothing is broken", story="", breaks=lambda _: None, rules=frozenset(Rule))


@pytest.mark.parametrize("mutation", chosen(), ids=lambda mutation: mutation.name)
def test_a_choice_of_broken_builds_is_caught(mutation):
    assert caught(mutation) is not None, f"an engineer {mutation.story}, and no rule notices"


@pytest.mark.long
@pytest.mark.parametrize("mutation", EVERY, ids=lambda mutation: mutation.name)
def test_every_broken_build_is_caught(mutation):
    assert caught(mutation) is not None, f"an engineer {mutation.story}, and no rule notices"


@pytest.mark.parametrize("build", chosen_planted(), ids=lambda build: build.name)
def test_a_choice_of_planted_builds_fails_the_tests_that_it_names(build):
    assert caught_by(build), f"an engineer {build.story}, and no test of {', '.join(build.tests)} fails"


@pytest.mark.long
@pytest.mark.parametrize("build", PLANTED, ids=lambda build: build.name)
def test_every_planted_build_fails_the_tests_that_it_names(build):
    assert caught_by(build), f"an engineer {build.story}, and no test of {', '.join(build.tests)} fails"


def test_every_broken_build_fits_the_source(monkeypatch):
    for mutation in EVERY:
        with monkeypatch.context() as patch:
            mutation.breaks(Workshop(patch))


def test_every_planted_build_fits_the_source(monkeypatch):
    for build in PLANTED:
        with monkeypatch.context() as patch:
            apply_all(build.edits, patch)


def test_an_edit_that_fits_the_source_no_longer_is_an_error(monkeypatch):
    stale = edit("leeward.upgrade.gate.evaluate_gate", "words that are not there", "")
    with pytest.raises(LookupError, match="expected it once"):
        apply_all([stale], monkeypatch)


def test_an_edit_that_names_what_the_module_does_not_know_is_an_error(monkeypatch):
    stale = edit("leeward.upgrade.surge.sizes.next_increment", "return min(zones, most)", "return minimum(zones, most)")
    with pytest.raises(LookupError, match="the edit names minimum, which its module does not know"):
        apply_all([stale], monkeypatch)


def test_an_edited_function_is_other_code_wherever_it_is_known_and_comes_back(monkeypatch):
    from leeward.upgrade.surge.sizes import next_increment

    assert next_increment(0, 3, 3) == 3
    with monkeypatch.context() as patch:
        apply_all([edit("leeward.upgrade.surge.sizes.next_increment", "return min(zones, most)", "return 7")], patch)
        assert next_increment(0, 3, 3) == 7
    assert next_increment(0, 3, 3) == 3


def test_the_sound_build_is_not_caught():
    assert caught(UNBROKEN, seeds=2) is None


def test_what_a_build_replaces_is_replaced_wherever_it_is_known_and_comes_back(monkeypatch):
    from leeward.termination import steps
    from simulation import functions

    sound = steps.finish
    with monkeypatch.context() as patch:
        Workshop(patch).wrap("leeward.termination.steps.finish", lambda original, *arguments: "broken")
        assert steps.finish(None, {}, None) == "broken"
        assert functions.STEPS["terminate"]["finish"] is steps.finish
    assert steps.finish is functions.STEPS["terminate"]["finish"] is sound


def test_every_build_has_a_name_a_story_and_what_notices_it():
    names = [build.name for build in (*EVERY, *PLANTED)]
    assert len(set(names)) == len(names) >= 60
    assert all(mutation.story and mutation.rules for mutation in EVERY)
    assert all(build.story and build.edits and build.tests for build in PLANTED)


def test_another_version_tries_other_builds():
    assert chosen("1.0.0") == chosen("1.0.0")
    assert len({mutation.name for number in range(200) for mutation in chosen(f"1.{number}.0")}) == len(EVERY)
