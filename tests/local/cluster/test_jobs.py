"""Jobs: how often they run, what counts as a failure, when they are over."""

from itertools import pairwise

import pytest

from local.cluster.errors import ApiError
from local.cluster.objects import condition_of, phase_of
from tests.local.cluster.builders import Lab, a_budget, a_job

FORGIVING = {
    "podFailurePolicy": {
        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    }
}


def status(lab: Lab, name: str = "sums") -> dict:
    return lab.cluster.get("jobs", name)["status"]


def is_over(lab: Lab, kind: str, name: str = "sums") -> bool:
    return (condition_of(lab.cluster.get("jobs", name), kind) or {}).get("status") == "True"


def test_a_job_runs_its_pod_for_its_time_and_is_complete(lab):
    lab.create("jobs", a_job(seconds=60))
    lab.run(60.5)
    assert (status(lab)["active"], status(lab)["ready"]) == (1, 1)
    lab.run(1)
    (name,) = lab.pods("sums")
    assert phase_of(lab.pod(name)) == "Succeeded"
    assert (status(lab)["active"], status(lab)["succeeded"]) == (0, 1)
    assert is_over(lab, "Complete")
    assert lab.cluster.get("jobs", "sums")["status"]["completionTime"]


def test_so_many_completions_run_so_many_at_a_time(lab):
    lab.create("jobs", a_job(seconds=10, spec={"completions": 5, "parallelism": 2}))
    most = 0
    for _ in range(60):
        lab.run(1)
        most = max(most, status(lab)["active"])
    assert most == 2
    assert (status(lab)["succeeded"], len(lab.pods("sums"))) == (5, 5)
    assert is_over(lab, "Complete")


def test_a_work_queue_starts_no_new_pod_once_a_pod_has_succeeded(lab):
    lab.create("jobs", a_job(seconds=10, spec={"parallelism": 3}))
    lab.run(60)
    assert (status(lab)["succeeded"], len(lab.pods("sums"))) == (3, 3)
    assert is_over(lab, "Complete")


def test_an_evicted_pod_counts_as_failed_and_is_started_again_after_a_pause(lab):
    lab.create("jobs", a_job(seconds=600))
    lab.run(2)
    lab.cluster.evict(lab.pods("sums")[0])
    lab.run(9)
    assert status(lab)["failed"] == 1
    assert len(lab.pods("sums")) == 1
    lab.run(2)
    assert len(lab.pods("sums")) == 2
    lab.run(700)
    assert is_over(lab, "Complete")


def test_the_pause_doubles_with_each_failure_in_a_row(lab):
    lab.create("jobs", a_job(seconds=1, exit_code=3, spec={"backoffLimit": 3}))
    lab.run(200)
    assert is_over(lab, "Failed")
    assert status(lab)["failed"] == 4
    assert {phase_of(pod) for pod in lab.cluster.list("pods")} == {"Failed"}
    started = [fact.at for fact in lab.cluster.history.facts() if fact.kind == "pod-started"]
    assert [round(after - before) for before, after in pairwise(started)] == [12, 22, 42]


def test_too_many_failures_stop_the_other_pods(lab):
    lab.create("jobs", a_job(seconds=600, spec={"completions": 2, "parallelism": 2, "backoffLimit": 0}))
    lab.run(2)
    lab.cluster.delete("pods", lab.pods("sums")[0])
    lab.run(60)
    assert is_over(lab, "Failed")
    assert lab.pods("sums") == []


def test_a_failure_policy_spares_evicted_pods_and_waits_for_their_end(lab):
    lab.create("jobs", a_job(seconds=600, grace=30, spec={**FORGIVING, "backoffLimit": 0}))
    lab.run(2)
    lab.cluster.evict(lab.pods("sums")[0])
    lab.run(29)
    assert len(lab.pods("sums")) == 1
    lab.run(5)
    assert len(lab.pods("sums")) == 1
    assert "failed" not in status(lab)
    lab.run(700)
    assert is_over(lab, "Complete")


def test_a_lost_node_makes_the_job_start_its_pod_elsewhere(lab):
    lab.create("jobs", a_job(seconds=60))
    lab.run(2)
    (name,) = lab.pods("sums")
    home = lab.nodes_of("sums")[name]
    lab.cluster.delete("nodes", home)
    lab.run(150)
    assert is_over(lab, "Complete")
    assert [node for node in lab.nodes_of("sums").values() if node == home] == []


def test_a_pod_on_a_silent_node_ends_when_the_kubelet_is_back():
    lab = Lab(nodes=1)
    lab.create("jobs", a_job(seconds=60))
    lab.run(2)
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.run(100)
    assert status(lab).get("succeeded") is None
    lab.cluster.set_node_ready("n0", "True")
    lab.run(1)
    assert status(lab)["succeeded"] == 1


def test_a_suspended_job_has_no_pods_until_it_is_resumed(lab):
    lab.create("jobs", a_job(seconds=600))
    lab.run(2)
    lab.cluster.patch("jobs", "sums", {"spec": {"suspend": True}})
    lab.run(40)
    assert lab.pods("sums") == []
    lab.cluster.patch("jobs", "sums", {"spec": {"suspend": False}})
    lab.run(40)
    assert status(lab)["active"] == 1


def test_a_finished_job_is_removed_after_its_time_to_live(lab):
    lab.create("jobs", a_job(seconds=10, spec={"ttlSecondsAfterFinished": 100}))
    lab.run(105)
    assert is_over(lab, "Complete")
    lab.run(10)
    assert (lab.cluster.list("jobs"), lab.pods("sums")) == ([], [])


def test_a_budget_finds_no_scale_for_the_pods_of_a_job(lab):
    lab.create("jobs", a_job(seconds=600))
    lab.create("poddisruptionbudgets", a_budget("sums", maxUnavailable=1))
    lab.run(2)
    assert lab.budget("sums")["disruptionsAllowed"] == 0
    with pytest.raises(ApiError) as refused:
        lab.cluster.evict(lab.pods("sums")[0])
    assert "failed sync" in str(refused.value.details)


def test_a_finished_pod_gives_its_room_back():
    lab = Lab()
    lab.add_node("small", cpu="1")
    lab.create("jobs", a_job("first", seconds=30, cpu="800m"))
    lab.create("jobs", a_job("second", seconds=30, cpu="800m"))
    lab.run(70)
    assert is_over(lab, "Complete", "first")
    assert is_over(lab, "Complete", "second")


@pytest.mark.parametrize("policy", ["Always", None])
def test_a_job_must_say_that_its_pods_end(lab, policy):
    job = a_job()
    job["spec"]["template"]["spec"]["restartPolicy"] = policy
    if policy is None:
        del job["spec"]["template"]["spec"]["restartPolicy"]
    with pytest.raises(ApiError) as refused:
        lab.create("jobs", job)
    assert refused.value.code == 422


def test_a_jobs_template_cannot_be_changed(lab):
    lab.create("jobs", a_job())
    with pytest.raises(ApiError) as refused:
        lab.cluster.patch("jobs", "sums", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}})
    assert refused.value.code == 422
