"""Every way through node-group-upgrade is taken by an upgrade in virtual time, and each of them comes to its end."""

from functools import cache

import pytest

from simulation.definitions import NODE_GROUP_UPGRADE
from tests.simulation import upgrade_story
from tests.simulation.managed_stories import MANAGED
from tests.simulation.upgrade_stories import SELF_MANAGED
from tests.state_machines.graph import Graph, targets

GRAPH = Graph(NODE_GROUP_UPGRADE)
STORIES = {**SELF_MANAGED, **MANAGED}


@cache
def told(name):
    return upgrade_story.tell(STORIES[name])


@pytest.mark.parametrize("name", STORIES)
def test_each_execution_ends_where_it_should_and_leaves_everything_in_order(name):
    found, story = told(name), STORIES[name]
    assert found.ends == story.ends
    assert found.world.at_rest(story.size, story.versions)


def all_ways():
    """(state, next state) of every state, and (state, condition) of every choice, the default's condition empty."""
    found = GRAPH.transitions()
    for name, state in GRAPH.of_type("Choice").items():
        found -= {(name, to) for to in targets(state)}
        found |= {(name, choice["Condition"]) for choice in state["Choices"]} | {(name, "")}
    return found


def taken():
    names = {state["Comment"]: name for name, state in GRAPH.of_type("Choice").items()}
    ways = {way for name in STORIES for way in told(name).ways}
    return {(names.get(state, state), by) for state, by in ways}


def test_every_transition_is_taken_by_one_of_these_stories():
    assert sorted(all_ways() - taken()) == []
