"""`leeward plan --apply --watch` on a simulated cluster: the deployed state machine carries out what was shown."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.observation import observe
from leeward.disruption.outlook import until_done
from leeward.disruption.record import DisruptionOutcome
from leeward.policy.document import Budget, DisruptionPolicy
from recordings.scenes import Recording
from recordings.stage import CLUSTER, StageClock, ports_with, shop
from simulation.definitions import DISRUPTION_RUN

TWO = (Budget(nodes=2, percent=False),)


def disrupting(stage, **rules):
    """The stage with such a policy; the planner does not run by itself."""
    rules = DisruptionPolicy(**{"consolidate_after": timedelta(0), "budgets": TWO, "drift": False, **rules})
    policies = tuple(replace(one, disruption=rules) for one in stage.policies.policies)
    stage.policies = stage.system.clusters.written[CLUSTER] = replace(stage.policies, policies=policies)
    return stage


@pytest.fixture
def stage():
    """Ten nodes with room to spare."""
    return disrupting(shop(web=4))


def applied(stage, *more):
    recording = Recording(stage=stage, columns=150)
    code = recording.run("plan", "--apply", "--yes", "--watch", *more)
    return code, ["".join(run.text for run in row) for frame in recording.frames for row in frame.rows]


def nodes(stage):
    return {node.name for node in stage.kubernetes.nodes()}


def test_the_nodes_that_were_shown_are_drained_and_gone_and_no_others(stage):
    before = nodes(stage)
    desired = sum(group.desired for group in stage.fleet.groups.values())
    code, lines = applied(stage)
    record = stage.system.disruptions.read(CLUSTER)
    assert code == 0
    assert record.outcome is DisruptionOutcome.DONE
    assert before - nodes(stage) == set(record.nodes)
    assert 1 <= len(record.nodes) <= 2
    assert sum(group.desired for group in stage.fleet.groups.values()) == desired - len(record.nodes)
    assert stage.violations == []
    for name in record.nodes:
        assert any(re.search(rf"\d {name.partition('.')[0]}: gone, \d+ pods? evicted", line) for line in lines)
    assert any("run 1: done: " in line for line in lines)


def test_the_planner_finds_the_run_of_the_command_and_starts_no_other(stage):
    stage.system.begin_deciding()
    assert applied(stage)[0] == 0
    assert stage.system.disruptions.read(CLUSTER).number == 1


def full(workers, nodes):
    """Five nodes without room for the pods of two; the three of a group have drifted. `nodes`: of the budget."""
    budgets = (Budget(nodes=nodes, percent=False),)
    stage = shop(web=3, spot=0, workers=workers)
    disrupting(stage, drift=True, consolidation_policy="Never", cooldown=timedelta(0), budgets=budgets)
    group = stage.fleet.groups["web"]
    group.point_at(group.template.add("ami-0123456789abcdef0"))
    return stage


def test_a_drifted_node_is_removed_after_its_replacement_has_joined():
    """The first run takes the node that can be spared, the second one has to launch."""
    stage = full(workers=4, nodes=1)
    assert applied(stage)[0] == 0
    code, lines = applied(stage)
    record = stage.system.disruptions.read(CLUSTER)
    assert (code, record.number, record.outcome) == (0, 2, DisruptionOutcome.DONE)
    assert not set(record.nodes) & nodes(stage)
    assert len(stage.members("web")) == stage.fleet.groups["web"].desired == 2
    assert stage.violations == []
    launched = next(place for place, line in enumerate(lines) if "launching: 1 of 1" in line)
    assert launched < next(place for place, line in enumerate(lines) if "terminating: 0 of" in line)


def test_a_command_that_the_run_drops_is_said_with_its_reason_and_exit_1():
    """A pod that was pending takes the place on the new node."""
    stage = full(workers=5, nodes=2)
    code, lines = applied(stage)
    assert (code, stage.system.disruptions.read(CLUSTER).outcome) == (1, DisruptionOutcome.DONE)
    assert any(re.match(r"run 1: command 2 was dropped: .* no longer valid: pod shop/", line) for line in lines)


def test_a_run_that_is_stopped_in_the_middle_is_followed_to_the_end_of_its_successor(stage):
    """An operator stops the execution; the minute reconciler starts the next, under the following name."""
    machine = stage.system.machines[DISRUPTION_RUN]
    stage.timeline.after(30, lambda: machine.stop(f"{CLUSTER}-1-1"), "operator")
    code, _ = applied(stage)
    record = stage.system.disruptions.read(CLUSTER)
    assert (code, record.outcome, record.attempt) == (0, DisruptionOutcome.DONE, 2)


def test_the_runs_that_until_done_plans_are_those_that_follow(stage):
    """Each is applied, drained and ended by the deployed state machine; the planner's clock goes on in between."""
    ports = ports_with(stage, StageClock(stage, lambda: None, 3600.0))
    outlook = until_done(observe(CLUSTER, ports, None))
    sizes = [len(run.after.nodes) for run in outlook.runs]
    assert (outlook.finished, sizes) == (True, [8, 6, 4])
    real = []
    while applied(stage)[0] == 0:
        real.append(len(nodes(stage)))
        stage.timeline.run_until(stage.timeline.now() + 900)
    assert real == sizes
