"""The simulation catches every broken build by an invariant, within 200 seeds."""

import pytest

from simulation.view import Rule
from tests.simulation.mutations.build import Mutation, Workshop, caught
from tests.simulation.mutations.every import EVERY, chosen

NOBODY = Mutation(name="nothing is broken", story="", breaks=lambda _: None, rules=frozenset(Rule))


@pytest.mark.parametrize("mutation", chosen(), ids=lambda mutation: mutation.name)
def test_a_choice_of_broken_builds_is_caught(mutation):
    assert caught(mutation) is not None, f"an engineer {mutation.story}, and nobody notices"


@pytest.mark.long
@pytest.mark.parametrize("mutation", EVERY, ids=lambda mutation: mutation.name)
def test_every_broken_build_is_caught(mutation):
    assert caught(mutation) is not None, f"an engineer {mutation.story}, and nobody notices"


def test_the_sound_build_is_not_caught():
    assert caught(NOBODY, seeds=2) is None


def test_what_a_build_replaces_is_replaced_wherever_it_is_known_and_comes_back(monkeypatch):
    from leeward.termination import steps
    from simulation import functions

    sound = steps.finish
    with monkeypatch.context() as patch:
        Workshop(patch).wrap("leeward.termination.steps.finish", lambda original, *arguments: "broken")
        assert steps.finish(None, {}, None) == "broken"
        assert functions.STEPS["terminate"]["finish"] is steps.finish
    assert steps.finish is functions.STEPS["terminate"]["finish"] is sound


def test_every_build_has_a_name_a_story_and_a_rule():
    assert len({mutation.name for mutation in EVERY}) == len(EVERY) >= 18
    assert all(mutation.story and mutation.rules for mutation in EVERY)


def test_another_version_tries_other_builds():
    assert chosen("1.0.0") == chosen("1.0.0")
    assert len({mutation.name for number in range(60) for mutation in chosen(f"1.{number}.0")}) == len(EVERY)
