"""Facts for reports in the outputs of steps: what a drain and an upgrade have read of PodDisruptionBudgets, and how
many pods were deleted instead of evicted."""

from dataclasses import replace
from datetime import timedelta

from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from leeward.termination.run import Run
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from leeward.upgrade.steps import STEPS as UPGRADE_STEPS
from tests.fakes.builders import GROUP
from tests.state_machines.test_leaving import SOLO, a_surging_system
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim
from tests.state_machines.walker import Walker
from tests.unit.upgrade.test_waits import RUN, a_rolling_group, draining


def counted(allowed, **more):
    return replace(a_budget(allowed), current_healthy=2, desired_healthy=2, expected_pods=3, **more)


def walked(system):
    """The input of every state of a manual drain."""
    inputs = []
    claim(system, CauseKind.MANUAL)
    Walker(system, before=lambda state, data: inputs.append((state, data))).run(I)
    return inputs


def test_a_drain_that_a_budget_blocks_passes_on_what_it_read_of_the_budget():
    system = a_system(pods=[a_pod()], budgets=[counted(0)])
    inputs = walked(system)
    asked = system.kubernetes.asked["budgets"]
    healthy = [data["healthy"] for state, data in inputs if state == "DrainedYet" and "healthy" in data]
    assert healthy
    assert {tuple(one["shop/web"][:2]) for one in healthy} == {(2, 3)}
    assert {ready for one in healthy for _, ready in one["shop/web"][2]} == {2}
    assert asked >= sum(len(one["shop/web"][2]) for one in healthy)  # no sample without a list made for the eviction


def test_a_drain_that_nothing_blocks_reads_no_budget_and_has_no_sample():
    system = a_system(pods=[a_pod()], budgets=[counted(9)])
    assert not any("healthy" in data for _, data in walked(system))
    assert system.kubernetes.asked["budgets"] == 0


def test_a_drain_that_considers_second_replicas_passes_on_the_deployments_that_it_read():
    system = a_surging_system(deployment=replace(SOLO, replicas=3, available=2))
    healthy = [data["healthy"] for state, data in walked(system) if state == "DrainedYet" and "healthy" in data]
    (minimum, expected, samples) = healthy[0]["deployment shop/web"]
    assert (minimum, expected, [ready for _, ready in samples]) == (None, 3, [2])


def test_pods_that_are_deleted_instead_of_evicted_are_counted_in_the_step_that_did_it():
    forced = DrainPolicy(timeout=timedelta(minutes=1), force=True)
    system = a_system(pods=[a_pod(), a_pod("other", labels={"app": "other"})], budgets=[counted(0)], drain=forced)
    counts = [data["deleted"] for state, data in walked(system) if state == "DrainedYet" and "deleted" in data]
    assert sum(counts) == 1
    assert system.claims.records[I].pods_evicted == 2


def test_samples_belong_to_one_step():
    system = a_system(pods=[a_pod()], budgets=[counted(0)])
    document = next(data for _, data in walked(system) if "healthy" in data)
    assert "healthy" not in Run.from_json(document).to_json()
    given = {"group": GROUP, "next": "wait", "healthy": document["healthy"]}
    assert "healthy" not in UpgradeRun.from_json(given).to_json()


def test_an_upgrade_samples_the_budgets_of_its_nodes_at_each_look_without_another_list():
    system = a_rolling_group()
    draining(system)
    (budget,) = system.kubernetes.budget_list
    elsewhere = replace(budget, name="elsewhere", selector={"matchLabels": {"app": "elsewhere"}}, expected_pods=3)
    system.kubernetes.budget_list = [
        replace(budget, current_healthy=2, desired_healthy=1, expected_pods=3),
        elsewhere,
    ]
    run = UPGRADE_STEPS["drain"](RUN, {}, system.ports)
    assert run.next is UpgradeNext.WAIT
    ((name, found),) = run.to_json()["healthy"].items()
    assert (name, found[:2], [ready for _, ready in found[2]]) == ("shop/web", [1, 3], [2])
    assert system.kubernetes.asked["budgets"] == 1
