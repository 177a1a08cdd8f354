"""Whole worlds: the product at work on the models, the same history from the same seed, killed anywhere."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from leeward.model import well_known
from leeward.model.termination import Outcome as End
from leeward.model.termination import Status
from simulation import __main__ as command
from simulation.aws.compute import IN_SERVICE
from simulation.fault_rates import Faults
from simulation.world import World
from tests.drawing import chosen, commit
from tests.simulation.fleet_stand_in import SMALL, Arrival, Fleet, GroupPlan, budget, deployment

KINDS = (
    "spot_warning",
    "rebalance",
    "maintenance",
    "scale_in",
    "scale_out",
    "operator_cordon",
    "operator_delete_node",
    "operator_stop_execution",
    "nonsense",
    "foreign_terminate",
    "unhealthy",
)
FIRST = "i-00000000000000001"
HOUR = 3600.0
NONE = Faults.none()
EVERYTHING = tuple(
    Arrival(at_seconds=60.0 + 45 * number, kind=KINDS[number % len(KINDS)], pick=number * 7919) for number in range(60)
)
WIDE = Fleet(
    groups=(
        GroupPlan(name="spot", size=6, maximum=12),
        GroupPlan(name="shared", size=4, foreign_hook=True),
        GroupPlan(name="rebalanced", size=3, capacity_rebalance=True),
        GroupPlan(name="steady", spot=False, size=4),
    ),
    workloads=(deployment("web", 8), budget("web"), deployment("api", 12), budget("api", 3)),
)


def a_world(kind="spot_warning", fleet=SMALL, faults=NONE, seed=1):
    return World(seed, fleet, faults, (Arrival(at_seconds=60, kind=kind),))


def in_service(world, group="spot"):
    return [member.id for member in world.fleet.groups[group].members.values() if member.lifecycle == IN_SERVICE]


def test_a_spot_warning_is_brought_to_its_end_before_ec2_takes_the_instance():
    world = a_world()
    outcome = world.run(1, converge=HOUR)
    record = world.records[FIRST]
    assert (outcome.violations, outcome.unexpected, outcome.hooks_timed_out) == ((), (), 0)
    assert (record.status, record.outcome) == (Status.CLOSED, End.TERMINATED)
    assert (record.times["terminated"] - record.times["claimed"]).total_seconds() < 120
    assert record.replacement.launched == ("i-00000000000000004",)
    assert world.groups["spot"].desired == len(in_service(world)) == 3
    assert world.cluster.store.find("nodes", f"node-{FIRST}") is None
    its_own = [hook for hook in world.completed_hooks if hook[2] == FIRST]
    assert its_own == [("spot", well_known.TERMINATE_HOOK, FIRST, True)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_arrival_ends_in_a_quiet_world(kind):
    world = a_world(kind)
    outcome = world.run(0.5)
    assert (outcome.violations, outcome.unexpected, outcome.arrivals) == ((), (), {kind: 1})
    assert not world.open_executions
    assert world.queue.depth == 0


def test_another_teams_hook_is_left_to_the_other_team():
    fleet = replace(SMALL, groups=(GroupPlan(foreign_hook=True),))
    world = a_world(fleet=fleet)
    assert world.run(0.5, converge=HOUR).violations == ()
    assert {hook for _, hook, _, _ in world.completed_hooks} == {well_known.TERMINATE_HOOK}
    assert world.records[FIRST].outcome is End.TERMINATED


def test_a_lost_lifecycle_event_is_mended_by_the_sweep():
    world = a_world("unhealthy", faults=Faults(lose_lifecycle_event=1))
    outcome = world.run(0.5, converge=HOUR)
    assert outcome.faults["lifecycle event lost"] >= 1
    assert world.records[FIRST].causes[0].id.startswith("orphan#")
    assert world.records[FIRST].outcome is End.TERMINATED


def test_a_stopped_execution_is_started_again():
    world = World(1, SMALL, Faults.none(), (Arrival(at_seconds=60, kind="spot_warning"), _stop_at(66)))
    assert world.run(0.5, converge=HOUR).violations == ()
    assert world.records[FIRST].attempt == 2
    assert world.records[FIRST].outcome is End.TERMINATED


def _stop_at(seconds):
    return Arrival(at_seconds=seconds, kind="operator_stop_execution")


def test_the_same_seed_gives_the_same_history_and_another_seed_another():
    def history(seed):
        outcome = World(seed, WIDE, Faults.all(), EVERYTHING).run(1, converge=HOUR)
        return outcome.digest, outcome.story

    first, again, other = history(3), history(3), history(4)
    assert first == again
    assert first[0] != other[0]


def test_the_history_does_not_hang_on_how_python_hashes_strings():
    code = (
        "from tests.simulation.test_world import *\n"
        "print(World(3, WIDE, Faults.all(), EVERYTHING).run(1, converge=HOUR).digest)"
    )
    path = os.pathsep.join((".", "functions"))
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def calls_of_a_drain():
    """The numbers of the port calls from the warning to the end, as a run without faults makes them."""
    world, marks = a_world(), []
    world.system.bus.emit = _then(world.system.bus.emit, lambda: marks.append(world.injector.calls))
    world.run(0.2, converge=600)
    return range(marks[0] + 1, marks[-1] + 1)


def _then(function, more):
    def both(*arguments):
        more()
        return function(*arguments)

    return both


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_port_call_the_termination_still_ends_right(after):
    """Before or after every fourth call, from one on that the commit draws; the long form at each, and for longer."""
    (begins,) = chosen(range(4), 4, f"{commit()} {after}")
    ends_right_when_killed(calls_of_a_drain()[begins::4], after, converge=900)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_before_and_after_each_port_call_the_termination_still_ends_right(after):
    ends_right_when_killed(calls_of_a_drain(), after, converge=HOUR)


def ends_right_when_killed(calls, after, converge):
    assert len(calls) > 15
    launched = 0  # a batch killed before its claim comes back after the two minutes: then the group replaces
    for number in calls:
        world = a_world(faults=Faults(kill_call=number, kill_after=after))
        outcome = world.run(0.2, converge=converge)
        assert outcome.faults.get(f"killed {'after' if after else 'before'} a call") == 1
        assert (number, outcome.violations, outcome.unexpected) == (number, (), ())
        assert world.records[FIRST].outcome is End.TERMINATED, number
        assert {token.startswith(f"leeward-{FIRST}-") for token, _ in world.launches} <= {True}, number
        assert len(world.launches) <= 1, number
        launched += len(world.launches)
        assert world.groups["spot"].desired == len(in_service(world)) == 3, number
    assert launched > len(calls) / 2


def test_under_all_faults_every_kind_of_them_happens():
    outcome = World(5, WIDE, Faults.all(), EVERYTHING * 4).run(3, converge=HOUR)
    assert {"AWS throttled", "answer lost", "killed after a call", "Kubernetes 429", "slow call"} <= set(outcome.faults)
    assert outcome.unexpected == ()
    assert outcome.events > 3000
    assert outcome.checks >= outcome.events


def test_a_broken_rule_is_reported_with_the_seed_and_the_command_that_repeats_it(monkeypatch, capsys):
    monkeypatch.setattr("leeward.termination.hook_completion._complete", lambda *_: True)  # hooks are never completed
    small = ["--hours", "0.1", "--nodes", "6", "--no-faults", "--no-shorten", "--features", ""]
    assert command.main(["--seeds", "1", "--first-seed", "3", "--per-hour", "10", *small]) == 1  # one spot warning
    said = capsys.readouterr().out
    assert "replay: python -m simulation --seeds 1 --first-seed 3 --hours 0.1" in said
    assert "violations: 0" not in said


def test_the_command_prints_what_was_run_and_how_fast(capsys):
    command.main(["--seeds", "2", "--hours", "0.5", "--no-faults"])
    said = capsys.readouterr().out
    for line in ("seeds: 2, ", "virtual days: ", " times as fast as the wall clock", "invariant checks: ", "faults: 0"):
        assert line in said
