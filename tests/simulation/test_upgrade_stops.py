"""An upgrade that is stopped in any state of node-group-upgrade, and started again, comes to its end."""

import pytest

from simulation.definitions import NODE_GROUP_UPGRADE
from tests.simulation.managed_stories import MANAGED
from tests.simulation.upgrade_stories import SELF_MANAGED
from tests.simulation.upgrade_story import stop_in
from tests.state_machines.graph import Graph

pytestmark = pytest.mark.long

GRAPH = Graph(NODE_GROUP_UPGRADE)
STORIES = {**SELF_MANAGED, **MANAGED}
ENDED = {"Upgraded", "Aborted", "RolledBack"}
AGAIN = 700  # seconds later, when what stood in the way of some stories is mended
TARGET = {"launchTemplateVersion": "2"}  # before the first state has written it down, it has to be named again

# The story that comes through a state; every other state lies on the straight way.
COMES_THROUGH = {
    "Paused": "paused",
    "WaitForWindow": "outside its windows",
    "Bake": "canary",
    "WaitForScaleDown": "surplus",
    "UndoUpgrade": "aborted",
    "IsRollbackComplete": "aborted",
    "NodesFinish": "aborted",
    "StartRollback": "rolled back",
    "ContinueInNewExecution": "full at the gate",
    "HasItGoneOn": "full at the gate",
    "NoteOutcome": "blocked",
    "RouteFailure": "blocked",
    "NoteFailure": "cordon fails",
    "StartManagedUpdate": "EKS rolls it",
    "IsEksAtWork": "EKS rolls it",
    "WaitForMaintenanceWindow": "EKS may not start yet",
    "WatchManagedUpdate": "EKS rolls it",
    "HasEksFinished": "EKS rolls it",
    "WaitForManagedUpdate": "EKS rolls it",
}


@pytest.mark.parametrize("state", GRAPH.of_type("Task", "Choice", "Wait"))
def test_stopped_in_any_state_and_started_again_it_ends_as_it_should(state, monkeypatch):
    story = STORIES[COMES_THROUGH.get(state, "upgraded")]
    world = story.plan(monkeypatch)
    asked = TARGET if state == GRAPH.definition["StartAt"] else {}
    stopped = stop_in(monkeypatch, world, state, again_after=AGAIN, **asked)
    world.run(story.hours + 0.5)
    assert stopped == [state]
    assert {world.ended(name) for name in world.executions} & ENDED
    assert world.record.ended is not None
    assert world.at_rest(story.size, story.versions)
