"""Pods that the scheduler binds to a node of a disruption run after its command was validated."""

from datetime import timedelta

import pytest

from leeward.model.well_known import DISRUPTION_WINDOW
from simulation import functions
from simulation.kubernetes import SimKubernetes
from tests.simulation.disruption_stand_in import WASTE, Disrupted, a_fleet
from tests.simulation.fleet_stand_in import budget, deployment

OPTED_OUT = {"karpenter.sh/do-not-disrupt": "true"}
CLOSED = {DISRUPTION_WINDOW: "0 12 * * */1h"}  # the runs are in the first hour of the day
ROOMY = (deployment("web", 4), budget("web"))
BEFORE = {"before the taint": ("validate", "taint"), "after the last validation": ("validate-again", "terminate")}
MOMENTS = pytest.mark.parametrize("step", [after for after, _ in BEFORE.values()], ids=list(BEFORE))


def an_empty_fleet():
    return a_fleet(workloads=(), consolidation_policy="WhenEmpty", consolidate_after=timedelta(minutes=1))


def a_job(name, node, notes):
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    meta = {"name": name, "namespace": "default", "labels": {"app": name}, "annotations": notes}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 10, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def with_late_pods(monkeypatch, fleet, step, notes):
    """Run with a pod that is bound to each node of the first run right after the step; return (world, evicted)."""
    world, real, bound, evicted = Disrupted(fleet), functions.step, [], []

    def stepped(function, call, ports):
        done = real(function, call, ports)
        if function == "disrupt" and call["step"] == step and not bound:
            for node in world.record.nodes:
                bound.append(f"default/job-{len(bound)}")
                world.world.cluster.create("pods", a_job(f"job-{len(bound) - 1}", node, notes), "default")
        return done

    def noted(self, pod, grace=None):
        evicted.append(pod.key)
        return evict(self, pod, grace)

    evict = SimKubernetes.evict
    monkeypatch.setattr(functions, "step", stepped)
    monkeypatch.setattr(SimKubernetes, "evict", noted)
    world.run(0.3)
    assert bound
    return world, [pod for pod in evicted if pod in bound]


@MOMENTS
@pytest.mark.parametrize("notes", [{}, OPTED_OUT], ids=["a pod", "opted out"])
def test_a_node_that_is_empty_no_more_is_returned_to_service(monkeypatch, step, notes):
    world, evicted = with_late_pods(monkeypatch, an_empty_fleet(), step, notes)
    assert evicted == []
    (pod,) = [pod for pod in world.world.cluster.store.each("pods") if pod["metadata"]["name"] == "job-0"]
    assert pod["spec"]["nodeName"] in {node["metadata"]["name"] for node in world.world.cluster.store.each("nodes")}
    assert world.untouched()


@MOMENTS
@pytest.mark.parametrize("notes", [OPTED_OUT, CLOSED], ids=["opted out", "window closed"])
def test_a_consolidated_node_with_a_pod_that_opts_out_is_returned_to_service(monkeypatch, step, notes):
    fleet = a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE)
    world, evicted = with_late_pods(monkeypatch, fleet, step, notes)
    assert evicted == []
    assert world.untouched()


def cancelled(world):
    events = world.world.cluster.store.each("events")
    return [event["message"] for event in events if event["reason"] == "TerminationCancelled"]


def test_no_termination_is_requested_of_a_node_whose_pod_is_seen_behind_the_taint(monkeypatch):
    world, _ = with_late_pods(monkeypatch, an_empty_fleet(), "validate", {})
    assert cancelled(world) == []
    assert world.ends[0] == "DisruptionGivenUp"


def test_a_pod_that_is_bound_after_the_last_validation_is_named_on_the_node(monkeypatch):
    world, _ = with_late_pods(monkeypatch, an_empty_fleet(), "validate-again", OPTED_OUT)
    assert cancelled(world)[0] == "pod default/job-0 opts out of disruption (karpenter.sh/do-not-disrupt)"


def test_a_consolidated_node_takes_its_late_pod_along_where_that_has_no_opt_out(monkeypatch):
    fleet = a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE)
    _, evicted = with_late_pods(monkeypatch, fleet, "validate-again", {})
    assert evicted == ["default/job-0"]
