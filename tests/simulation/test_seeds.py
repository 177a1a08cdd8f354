"""Random fleets under all faults: no invariant is broken."""

import os

import pytest

from simulation.__main__ import run
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.fleets import ArrivalKind
from tests.drawing import drawn

SEEDS = int(os.environ.get("SEEDS", "4"))  # make test-long asks for more
HOURS, PER_HOUR = 1.0, 30.0


@pytest.mark.parametrize("seed", drawn(range(1, SEEDS + 1), 2))
def test_whatever_goes_wrong_everything_comes_to_rest_and_no_invariant_is_broken(seed):
    outcome = run(seed, HOURS, PER_HOUR, Faults.all())
    assert [str(violation) for violation in outcome.violations] == []
    assert outcome.unexpected == ()
    assert outcome.events > 1000


@pytest.mark.parametrize("seed", drawn(range(1, 4)))
def test_without_faults_no_hook_of_ours_ever_times_out(seed):
    outcome = run(seed, HOURS, PER_HOUR, Faults.none())
    assert outcome.terminated > 0
    assert outcome.hooks_timed_out == 0
    assert [str(violation) for violation in outcome.violations] == []


@pytest.mark.parametrize("seed", drawn(range(300, 300 + SEEDS), 2))
def test_groups_are_upgraded_paused_stopped_aborted_and_rolled_back_while_everything_else_goes_on(seed):
    outcome = Case(seed=seed, hours=HOURS, per_hour=12.0, upgrades=4.0).run()
    assert [str(violation) for violation in outcome.violations] == []
    assert outcome.unexpected == ()


@pytest.mark.parametrize("seed", range(700, 700 + max(SEEDS // 3, 1)))
def test_rounds_of_disruption_run_between_interruptions_and_upgrades(seed):
    outcome = Case(seed=seed, hours=HOURS, per_hour=12.0, upgrades=2.0, disruption=True).run()
    assert [str(violation) for violation in outcome.violations] == []
    assert outcome.unexpected == ()


@pytest.mark.parametrize("seed", range(800, 800 + max(SEEDS // 3, 1)))
def test_disruption_runs_occur_where_owners_let_their_nodes_drift_without_an_upgrade(seed):
    outcome = Case(seed=seed, hours=HOURS, per_hour=12.0, disruption=True).run()
    assert [str(violation) for violation in outcome.violations] == []
    assert outcome.unexpected == ()


def test_templates_change_in_most_seeds_with_rounds_and_in_none_with_upgrades():
    def drifting(**given):
        cases = [Case(seed=seed, hours=HOURS, per_hour=12.0, **given) for seed in range(20)]
        return sum(any(one.kind is ArrivalKind.TEMPLATE_CHANGED for one in case.planned()) for case in cases)

    assert drifting(disruption=True) > 10
    assert (drifting(), drifting(disruption=True, upgrades=2.0)) == (0, 0)
