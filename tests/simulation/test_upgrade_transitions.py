"""Every way through the two state machines of upgrades is taken in virtual time, and each of them comes to its end.

`upgrade_ways.jsonl` names a story for each way. `make test` holds the ways of the definitions against it, and plays the
stories that the commit draws, each of which has to take the ways that it is named for; the long form plays them all.
After a change of a state machine or a story: `GOLDEN_WRITE=1 .venv/bin/python -m pytest` with this file."""

import json
import os
from functools import cache
from pathlib import Path

import pytest

from simulation.definitions import MANAGED_NODE_GROUP_UPGRADE, NODE_GROUP_UPGRADE
from tests.drawing import drawn
from tests.simulation import upgrade_story
from tests.simulation.managed_stories import MANAGED, MANAGED_ELSEWHERE, SELF_MANAGED_ELSEWHERE
from tests.simulation.upgrade_stories import SELF_MANAGED
from tests.state_machines.graph import Graph, targets

STORIES = {
    NODE_GROUP_UPGRADE: {**SELF_MANAGED, **MANAGED_ELSEWHERE},
    MANAGED_NODE_GROUP_UPGRADE: {**MANAGED, **SELF_MANAGED_ELSEWHERE},
}
EACH = [(machine, name) for machine in STORIES for name in STORIES[machine]]
WAYS = Path(__file__).with_name("upgrade_ways.jsonl")


@cache
def reported(machine, name):
    return upgrade_story.play(STORIES[machine][name])


@pytest.mark.parametrize(("machine", "name"), drawn(EACH))
def test_each_execution_ends_where_it_should_and_leaves_everything_in_order(machine, name):
    found, story = reported(machine, name), STORIES[machine][name]
    assert found.ends == story.ends
    assert found.world.at_rest(story.size, story.versions)
    assert sorted(named_for(machine, name) - taken(Graph(machine), name)) == []


def all_ways(graph):
    """(state, next state) of every state, and (state, condition) of every choice, the default's condition empty."""
    found = graph.transitions()
    for name, state in graph.of_type("Choice").items():
        found -= {(name, to) for to in targets(state)}
        found |= {(name, choice["Condition"]) for choice in state["Choices"]} | {(name, "")}
    return found


def taken(graph, name):
    """The ways that a story takes."""
    names = {state["Comment"]: choice for choice, state in graph.of_type("Choice").items()}
    return {(names.get(state, state), by) for state, by in reported(graph.name, name).ways}


def listed(machine):
    """(way, story) of the file."""
    lines = (json.loads(line) for line in WAYS.read_text().splitlines())
    return [((state, by), name) for of, state, by, name in lines if of == machine]


def named_for(machine, name):
    return {way for way, story in listed(machine) if story == name}


@pytest.mark.parametrize("machine", STORIES)
def test_every_transition_is_taken_by_one_of_these_stories(machine):
    if os.environ.get("GOLDEN_WRITE"):
        WAYS.write_text("".join(f"{json.dumps(line)}\n" for name in STORIES for line in found(name)))
    assert {way for way, _ in listed(machine)} == all_ways(Graph(machine))
    assert {name for _, name in listed(machine)} <= STORIES[machine].keys()


def found(machine):
    """Each way with the first story that takes it."""
    graph, first = Graph(machine), dict[tuple[str, str], str]()
    for name in STORIES[machine]:
        for way in taken(graph, name) & all_ways(graph):
            first.setdefault(way, name)
    return [[machine, *way, name] for way, name in sorted(first.items())]
