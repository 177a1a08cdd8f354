"""The eviction subresource against disruption budgets."""

import pytest

from local.cluster.deletion import DeleteOptions
from local.cluster.errors import ApiError
from tests.local.cluster.builders import Lab, a_budget, a_pod


def refusal(lab: Lab, pod: str, **options) -> ApiError:
    with pytest.raises(ApiError) as refused:
        lab.cluster.evict(pod, options=DeleteOptions(**options))
    return refused.value


def test_an_eviction_within_the_budget_starts_a_graceful_deletion_and_says_why(lab):
    first, *_ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first)
    pod = lab.pod(first)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    target = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert target["reason"] == "EvictionByEvictionAPI"


def test_an_eviction_beyond_the_budget_is_429_with_the_cause_disruption_budget(lab):
    first, second, _ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first)
    refused = refusal(lab, second)
    assert refused.code == 429
    assert refused.reason == "TooManyRequests"
    assert refused.message == "Cannot evict pod as it would violate the pod's disruption budget."
    message = "The disruption budget web needs 2 healthy pods and has 2 currently"
    assert refused.details == {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    assert "deletionTimestamp" not in lab.pod(second)["metadata"]


def test_the_budget_allows_the_next_eviction_when_the_replacement_is_ready(lab):
    first, second, _ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first)
    lab.run(0.5)
    assert refusal(lab, second).code == 429
    lab.run(1)
    lab.cluster.evict(second)
    assert lab.pod(second)["metadata"]["deletionTimestamp"]


def test_a_pod_under_two_budgets_is_500_without_a_reason_as_the_real_server_answers(lab):
    first, *_ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(name="one", maxUnavailable=1))
    lab.create("poddisruptionbudgets", a_budget(name="two", minAvailable=0))
    refused = refusal(lab, first)
    assert refused.code == 500
    assert "reason" not in refused.status()
    assert refused.message.startswith("This pod has more than one PodDisruptionBudget")


def test_a_dry_run_asks_the_budget_but_leaves_the_pod_alone(lab):
    first, second, _ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first, dry_run=True)
    assert "deletionTimestamp" not in lab.pod(first)["metadata"]
    lab.cluster.evict(first)
    with pytest.raises(ApiError) as refused:
        lab.cluster.evict(second, dry_run=True)
    assert refused.value.code == 429


def test_a_uid_precondition_that_names_another_pod_is_409(lab):
    first, *_ = lab.deployed()
    assert refusal(lab, first, uid="another").code == 409
    assert "deletionTimestamp" not in lab.pod(first)["metadata"]
    lab.cluster.evict(first, options=DeleteOptions(uid=lab.pod(first)["metadata"]["uid"]))


def test_evicting_a_pod_that_is_already_leaving_is_accepted_again(lab):
    first, *_ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first)
    lab.cluster.evict(first)
    assert lab.facts("eviction-accepted") == [f"default/{first}"]


def test_a_missing_pod_is_404(lab):
    assert refusal(lab, "absent").code == 404


def test_a_pending_pod_needs_no_budget():
    lab = Lab(nodes=0)
    lab.create("pods", a_pod("waiting"))
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=0))
    lab.run()
    lab.cluster.evict("waiting")
    assert lab.pod("waiting") is None


NEVER_READY = {"local.leeward.dev/never-ready": "true"}


def test_an_unready_pod_of_a_satisfied_budget_may_go_by_default(lab):
    lab.deployed(replicas=3)
    lab.create("pods", a_pod("sick", annotations=NEVER_READY))
    lab.create("poddisruptionbudgets", a_budget(minAvailable=3))
    lab.run(2)
    assert lab.budget()["disruptionsAllowed"] == 0
    lab.cluster.evict("sick")
    assert lab.pod("sick")["metadata"]["deletionTimestamp"]


def test_an_unready_pod_of_an_unsatisfied_budget_stays_by_default_and_goes_with_always_allow(lab):
    lab.deployed(replicas=2)
    lab.create("pods", a_pod("sick", annotations=NEVER_READY))
    lab.create("poddisruptionbudgets", a_budget(minAvailable=3))
    lab.run(2)
    assert refusal(lab, "sick").code == 429
    lab.cluster.patch("poddisruptionbudgets", "web", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}, "default")
    lab.cluster.evict("sick")
    assert lab.pod("sick")["metadata"]["deletionTimestamp"]


def test_always_allow_does_not_free_a_healthy_pod(lab):
    first, *_ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(minAvailable=3, unhealthyPodEvictionPolicy="AlwaysAllow"))
    assert refusal(lab, first).code == 429


def test_refusals_and_acceptances_are_recorded_with_the_budgets_name(lab):
    first, second, _ = lab.deployed()
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable=1))
    lab.cluster.evict(first)
    refusal(lab, second)
    accepted, refused = (fact for fact in lab.cluster.history.facts() if fact.kind.startswith("eviction"))
    assert (accepted.about, accepted.detail["pdb"]) == (f"default/{first}", "web")
    assert (refused.about, refused.detail["pdb"], refused.detail["code"]) == (f"default/{second}", "web", 429)
