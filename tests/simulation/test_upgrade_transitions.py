"""Every way through the two state machines of upgrades is taken in virtual time, and each of them comes to its end."""

from functools import cache

import pytest

from simulation.definitions import MANAGED_NODE_GROUP_UPGRADE, NODE_GROUP_UPGRADE
from tests.simulation import upgrade_story
from tests.simulation.managed_stories import MANAGED, MANAGED_ELSEWHERE, SELF_MANAGED_ELSEWHERE
from tests.simulation.upgrade_stories import SELF_MANAGED
from tests.state_machines.graph import Graph, targets

STORIES = {
    NODE_GROUP_UPGRADE: {**SELF_MANAGED, **MANAGED_ELSEWHERE},
    MANAGED_NODE_GROUP_UPGRADE: {**MANAGED, **SELF_MANAGED_ELSEWHERE},
}


@cache
def reported(machine, name):
    return upgrade_story.play(STORIES[machine][name])


@pytest.mark.parametrize(("machine", "name"), [(machine, name) for machine in STORIES for name in STORIES[machine]])
def test_each_execution_ends_where_it_should_and_leaves_everything_in_order(machine, name):
    found, story = reported(machine, name), STORIES[machine][name]
    assert found.ends == story.ends
    assert found.world.at_rest(story.size, story.versions)


def all_ways(graph):
    """(state, next state) of every state, and (state, condition) of every choice, the default's condition empty."""
    found = graph.transitions()
    for name, state in graph.of_type("Choice").items():
        found -= {(name, to) for to in targets(state)}
        found |= {(name, choice["Condition"]) for choice in state["Choices"]} | {(name, "")}
    return found


def taken(graph):
    names = {state["Comment"]: name for name, state in graph.of_type("Choice").items()}
    ways = {way for name in STORIES[graph.name] for way in reported(graph.name, name).ways}
    return {(names.get(state, state), by) for state, by in ways}


@pytest.mark.parametrize("machine", STORIES)
def test_every_transition_is_taken_by_one_of_these_stories(machine):
    assert sorted(all_ways(Graph(machine)) - taken(Graph(machine))) == []
