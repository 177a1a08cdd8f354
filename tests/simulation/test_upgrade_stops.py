"""An upgrade that is stopped in any state of its state machine, and started again, comes to its end."""

import pytest

from simulation.definitions import MANAGED_NODE_GROUP_UPGRADE, NODE_GROUP_UPGRADE
from tests.simulation.managed_stories import MANAGED, MANAGED_ELSEWHERE, SELF_MANAGED_ELSEWHERE
from tests.simulation.upgrade_stories import SELF_MANAGED
from tests.simulation.upgrade_story import stop_in
from tests.state_machines.graph import Graph

pytestmark = pytest.mark.long

GRAPHS = {name: Graph(name) for name in (NODE_GROUP_UPGRADE, MANAGED_NODE_GROUP_UPGRADE)}
STORIES = {
    NODE_GROUP_UPGRADE: {**SELF_MANAGED, **MANAGED_ELSEWHERE},
    MANAGED_NODE_GROUP_UPGRADE: {**MANAGED, **SELF_MANAGED_ELSEWHERE},
}
STATES = [(name, state) for name, graph in GRAPHS.items() for state in graph.of_type("Task", "Choice", "Wait")]
ENDED = {"Upgraded", "Aborted", "RolledBack"}
AGAIN = 700  # seconds later, when what stood in the way of some stories is mended
TARGET = {"launchTemplateVersion": "2"}  # before the first state has written it down, it has to be named again

# The story that comes through a state; every other state lies on the straight way.
STRAIGHT = {NODE_GROUP_UPGRADE: "upgraded", MANAGED_NODE_GROUP_UPGRADE: "EKS rolls it"}
COMES_THROUGH = {
    "StartManagedUpgrade": "a managed group, started as a self-managed one",
    "Paused": "paused",
    "WaitForWindow": "outside its windows",
    "Bake": "canary",
    "WaitForAlarms": "alarm",
    "WaitForScaleDown": "surplus",
    "UndoUpgrade": "aborted",
    "IsRollbackComplete": "aborted",
    "WaitForTerminations": "aborted",
    "StartRollback": "rolled back",
    "ContinueInNewExecution": "full at the gate",
    "IsContinued": "full at the gate",
    "NoteOutcome": "blocked",
    "RouteFailure": "blocked",
    "NoteFailure": "cordon fails",
}
MANAGED_COMES_THROUGH = {
    "StartSelfManagedUpgrade": "a self-managed group, started as a managed one",
    "WaitForMaintenanceWindow": "EKS may not start yet",
    "ContinueInNewExecution": "full while EKS rolls",
    "IsContinued": "full while EKS rolls",
    "NoteOutcome": "blocked before EKS is asked",
    "RouteFailure": "blocked before EKS is asked",
    "NoteFailure": "start-managed fails",
}
BY_STATE = {NODE_GROUP_UPGRADE: COMES_THROUGH, MANAGED_NODE_GROUP_UPGRADE: MANAGED_COMES_THROUGH}


@pytest.mark.parametrize(("machine", "state"), STATES)
def test_stopped_in_any_state_and_started_again_it_ends_as_it_should(machine, state, monkeypatch):
    story = STORIES[machine][BY_STATE[machine].get(state, STRAIGHT[machine])]
    world = story.plan(monkeypatch)
    asked = TARGET if state == GRAPHS[machine].definition["StartAt"] else {}
    stopped = stop_in(monkeypatch, world, state, again_after=AGAIN, **asked)
    world.run(story.hours + 0.5)
    assert stopped == [state]
    assert {world.ended(name) for name in world.everywhere} & ENDED
    assert world.record.ended is not None
    assert world.at_rest(story.size, story.versions)
