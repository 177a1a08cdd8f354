"""What an upgrade asks of Step Functions: events of history and bytes of state, counted on runs of several sizes.

Limits: 25,000 events an execution and 256 KiB a state (Step Functions developer guide, "Quotas")."""

import json
from dataclasses import dataclass

import pytest

from leeward.upgrade.run import MOST_PAUSES
from simulation.definitions import NODE_GROUP_UPGRADE
from simulation.machine import walk
from simulation.machine.execution import DATA, HISTORY
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import Upgraded, a_fleet
from tests.state_machines.graph import Graph

TENTH = {"max_unavailable": None, "max_unavailable_percentage": 10}
ROOMY = 65531  # addresses of a subnet: a /20 has too few for a thousand nodes
OWN_STATE = 4096  # bytes, of which a termination's record is most: plans and verdicts do not travel between the steps


@dataclass(frozen=True, kw_only=True)
class Counted:
    """`events` of the longest history, `runs` of that execution, `state` in bytes, `child`: of one node's end."""

    events: int
    pauses: int
    state: int
    child: int


def _without_samples(value):
    """Without the samples of ready pods, which tests/state_machines/test_healthy_samples.py bounds."""
    if isinstance(value, dict):
        return {key: _without_samples(part) for key, part in value.items() if key != "healthy"}
    return [_without_samples(part) for part in value] if isinstance(value, list) else value


def counted(size, monkeypatch, hours=1.0, **update):
    """Of a group with two pods a node, each workload under a budget of one."""
    biggest, children = [0], [0]
    real = walk.within_limit

    def within_limit(value, what):
        biggest.append(len(json.dumps(_without_samples(value), separators=(",", ":"))))
        return real(value, what)

    monkeypatch.setattr(walk, "within_limit", within_limit)
    names = [f"web-{number}" for number in range(size // 5)]
    workloads = tuple(made for name in names for made in (deployment(name, 10), budget(name)))
    world = Upgraded(a_fleet(size, maximum=size, workloads=workloads, **update)).start(launchTemplateVersion="2")
    world.world.fleet.subnet_size = ROOMY
    ends = world.world.system.machine.executions
    world.watch(lambda: children.extend(len(execution.history) for execution in ends.values()))
    world.run(hours)
    assert {world.ended(name) for name in world.executions} <= {"Continued", "Upgraded"}
    assert world.at_rest(size)
    longest = max(world.executions.values(), key=lambda execution: len(execution.history))
    pauses = sum(event.type == "WaitStateEntered" for event in longest.history)
    return Counted(events=len(longest.history), pauses=pauses, state=max(biggest), child=max(children))


def test_history_grows_by_pauses_and_not_by_nodes_and_state_does_not_grow_at_all(monkeypatch):
    small, large = counted(20, monkeypatch, **TENTH), counted(60, monkeypatch, **TENTH)
    for found in (small, large):
        assert found.events / found.pauses < 13
        assert found.state < OWN_STATE
        assert found.child < 250
    assert large.pauses < 3 * small.pauses
    assert large.state <= small.state + 64


def test_a_full_execution_has_room_for_as_many_retries_again():
    """A run is a task, a choice and a pause: nine events. Each of them may be tried twice more on the average."""
    graph = Graph(NODE_GROUP_UPGRADE)
    a_disruption = {"Task": 5, "Choice": 2, "Wait": 2}
    before = sum(a_disruption[state["Type"]] for state in graph.of_type(*a_disruption).values())
    assert before + MOST_PAUSES * sum(a_disruption.values()) <= 0.6 * HISTORY


@pytest.mark.long
def test_a_thousand_nodes_stay_far_below_the_limits(monkeypatch):
    found = counted(1000, monkeypatch, hours=2.0, **TENTH)
    assert found.events < HISTORY / 2
    assert found.state < DATA / 100
