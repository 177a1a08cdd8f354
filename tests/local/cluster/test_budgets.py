"""The numbers in a budget's status, and the record of budgets that were broken."""

import pytest

from tests.local.cluster.builders import a_budget, a_daemonset, a_pod, a_workload


@pytest.mark.parametrize(
    ("spec", "replicas", "desired", "allowed"),
    [
        ({"maxUnavailable": 1}, 3, 2, 1),
        ({"maxUnavailable": 0}, 3, 3, 0),
        ({"maxUnavailable": 5}, 3, 0, 3),
        ({"maxUnavailable": "30%"}, 7, 4, 3),  # 2.1 rounds up to 3
        ({"maxUnavailable": "100%"}, 3, 0, 3),
        ({"minAvailable": 2}, 3, 2, 1),
        ({"minAvailable": "50%"}, 7, 4, 3),  # 3.5 rounds up to 4
        ({"minAvailable": "100%"}, 3, 3, 0),
        ({"minAvailable": 5}, 3, 5, 0),
    ],
)
def test_desired_and_allowed_follow_the_disruption_controllers_rounding(lab, spec, replicas, desired, allowed):
    lab.deployed(replicas=replicas)
    lab.create("poddisruptionbudgets", a_budget(**spec))
    status = lab.budget()
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)
    assert status["currentHealthy"] == status["expectedPods"] == replicas
    assert status["observedGeneration"] == 1


def test_max_unavailable_counts_what_the_deployment_wants_not_the_pods_that_are_there(lab):
    lab.deployed(replicas=4)
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.patch("deployments", "web", {"spec": {"replicas": 6}}, "default")
    status = lab.budget()
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (6, 5, 0)


def test_min_available_as_a_number_counts_pods_without_owners_too(lab):
    lab.create("pods", a_pod("one"))
    lab.create("pods", a_pod("two"))
    lab.create("poddisruptionbudgets", a_budget(minAvailable=1))
    lab.run(2)
    assert lab.budget()["disruptionsAllowed"] == 1


def test_percentages_of_pods_without_owners_expect_nothing_and_allow_nothing(lab):
    lab.create("pods", a_pod("one"))
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable="50%"))
    lab.run(2)
    status = lab.budget()
    assert (status["expectedPods"], status["disruptionsAllowed"]) == (0, 0)


def test_max_unavailable_over_daemon_pods_fails_its_sync_and_allows_nothing(lab):
    lab.create("daemonsets", a_daemonset())
    lab.run(2)
    lab.create("poddisruptionbudgets", a_budget("agent", maxUnavailable=1))
    status = lab.budget("agent")
    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "SyncFailed"


def test_two_owners_behind_one_budget_add_up(lab):
    for name in ("a", "b"):
        workload = a_workload("web", 2)
        workload["metadata"]["name"] = name
        workload["spec"]["selector"]["matchLabels"]["part"] = name
        workload["spec"]["template"]["metadata"]["labels"]["part"] = name
        lab.create("replicasets", workload)
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.run(2)
    status = lab.budget()
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (4, 3, 1)


def test_a_deleting_pod_and_an_unready_pod_are_not_healthy(lab):
    first, *_ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(minAvailable=1))
    lab.cluster.delete("pods", first)
    assert lab.budget()["currentHealthy"] == 2


def test_a_budget_without_pods_allows_nothing(lab):
    lab.create("poddisruptionbudgets", a_budget(minAvailable=0))
    assert lab.budget()["disruptionsAllowed"] == 0


def test_a_null_selector_selects_nothing_and_an_empty_one_everything(lab):
    lab.deployed()
    lab.create("poddisruptionbudgets", {"metadata": {"name": "null"}, "spec": {"minAvailable": 1}})
    lab.create("poddisruptionbudgets", {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}})
    assert lab.budget("null")["expectedPods"] == 0
    assert lab.budget("all")["expectedPods"] == 3


def test_relabelling_a_pod_moves_it_from_one_budget_to_the_other(lab):
    lab.create("pods", a_pod("one"))
    lab.create("poddisruptionbudgets", a_budget(minAvailable=0))
    lab.create("poddisruptionbudgets", a_budget("other", minAvailable=0))
    lab.run(2)
    lab.cluster.patch("pods", "one", {"metadata": {"labels": {"app": "other"}}})
    assert (lab.budget("web")["expectedPods"], lab.budget("other")["expectedPods"]) == (0, 1)


def test_deletes_that_break_a_satisfied_budget_are_violations_once(lab):
    first, second, third = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    for pod in (first, second, third):
        lab.cluster.delete("pods", pod)
    (violation,) = lab.cluster.history.violations()
    assert (violation.pod, violation.cause, violation.healthy, violation.desired) == (
        f"default/{second}",
        "delete",
        1,
        2,
    )


def test_evictions_within_budgets_scaling_and_rollouts_are_no_violations(lab):
    first, *_ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first)
    lab.run(60)
    lab.cluster.patch("deployments", "web", {"spec": {"replicas": 0}})
    lab.run(60)
    assert lab.cluster.history.violations(node_loss=True) == []


def test_a_dying_node_that_breaks_a_budget_is_distinguished(lab):
    lab.deployed(replicas=3)
    lab.create("poddisruptionbudgets", a_budget(minAvailable=3))
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.run()
    assert lab.cluster.history.violations() == []
    (violation,) = lab.cluster.history.violations(node_loss=True)
    assert violation.cause == "node-loss"
