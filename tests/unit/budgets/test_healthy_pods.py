"""Samples of PodDisruptionBudgets: which of them a step keeps, and how its output holds them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.budgets.healthy_pods import (
    MOST_SAMPLES,
    MOST_WORKLOADS,
    HealthSample,
    from_json,
    sample_of,
    samples_of,
    to_json,
)
from leeward.model.pod import Deployment, Pod, PodDisruptionBudget

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAYLOAD = 256 * 1024  # bytes of an output of Step Functions
POD = Pod(namespace="shop", name="api-1", uid="u", node="node-a", phase="Running", labels={"app": "api"})


def a_budget(name="api", *, healthy=3, minimum=2, expected=3, app="api", namespace="shop"):
    return PodDisruptionBudget(
        namespace=namespace,
        name=name,
        selector={"matchLabels": {"app": app}},
        disruptions_allowed=healthy - minimum,
        current_healthy=healthy,
        desired_healthy=minimum,
        expected_pods=expected,
    )


def a_sample(budget="shop/api", seconds=0, healthy=3):
    return HealthSample(at=NOON + timedelta(seconds=seconds), workload=budget, healthy=healthy, minimum=2, expected=3)


def test_only_budgets_of_the_pods_are_sampled():
    budgets = [a_budget(), a_budget("other", app="other"), a_budget(namespace="blog")]
    assert samples_of(budgets, [POD], NOON) == (a_sample(),)
    assert samples_of(budgets, [], NOON) == ()


def test_a_step_matches_each_pod_with_its_own_budgets_alone(monkeypatch):
    """An upgrade of a large group samples thousands of pods in each step, in clusters with hundreds of budgets."""
    budgets = [a_budget(f"b-{n}", app=f"app-{n}") for n in range(100)]
    pods = [replace(POD, name=f"pod-{n}", labels={"app": f"app-{n % 100}"}) for n in range(1000)]
    matched = []
    select = PodDisruptionBudget.selects
    monkeypatch.setattr(PodDisruptionBudget, "selects", lambda *both: matched.append(both) or select(*both))
    assert len(samples_of(budgets, pods, NOON)) == MOST_WORKLOADS
    assert len(matched) <= len(pods)


def test_a_budget_whose_status_counts_no_pods_yet_is_left_out():
    assert samples_of([a_budget(healthy=0, minimum=0, expected=0)], [POD], NOON) == ()


def test_of_many_budgets_those_with_the_least_room_are_kept_whatever_their_health():
    many = [a_budget(f"b-{n:02}", expected=9, minimum=2) for n in range(30)]
    tight = replace(a_budget("tight", minimum=9, expected=9), current_healthy=1)
    found = samples_of([*many, tight], [POD], NOON)
    assert [sample.workload for sample in found] == [
        "shop/tight",
        *(f"shop/b-{n:02}" for n in range(MOST_WORKLOADS - 1)),
    ]
    healthier = [replace(budget, current_healthy=budget.current_healthy + 1) for budget in (*many, tight)]
    assert [one.workload for one in samples_of(healthier, [POD], NOON)] == [one.workload for one in found]


def test_samples_survive_the_output_of_a_step():
    samples = [a_sample(), a_sample("shop/web"), a_sample(seconds=5, healthy=2)]
    document = json.loads(json.dumps(to_json(samples)))
    assert document["shop/api"] == [2, 3, [["2026-03-02T12:00:00Z", 3], ["2026-03-02T12:00:05Z", 2]]]
    assert sorted(from_json(document), key=lambda one: (one.at, one.workload)) == samples


def test_an_output_is_small_however_many_budgets_and_samples_there_are():
    longest = "n" * 63 + "/" + "b" * 253
    samples = [a_sample(f"{longest[:-3]}{n:03}", second) for n in range(100) for second in range(50)]
    document = to_json(samples)
    assert len(document) == MOST_WORKLOADS
    assert all(len(found) == MOST_SAMPLES for _, _, found in document.values())
    assert len(json.dumps(document)) < PAYLOAD / 8


@pytest.mark.parametrize("document", [{}, [], {"shop/api": 3}, {"shop/api": [2, 3, [["noon", 3]]]}, {"shop/api": [2]}])
def test_an_output_of_another_form_has_no_samples(document):
    assert from_json(document) == ()


def test_a_deployment_has_no_minimum():
    deployment = Deployment.from_json(
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 2},
            "status": {"availableReplicas": 1},
        }
    )
    sample = sample_of(deployment, NOON)
    assert (sample.workload, sample.healthy, sample.minimum, sample.expected) == ("deployment shop/web", 1, None, 2)
    assert from_json(json.loads(json.dumps(to_json([sample])))) == (sample,)
