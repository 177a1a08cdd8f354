"""How the demo's run record follows from the table, the cluster's history and its Events."""

from datetime import UTC, datetime, timedelta

from leeward.cli.report.record import Phase, RunRecord
from leeward.model.times import format_instant
from local.demo import ledger
from local.demo.record import Sources, build

PLAYED = datetime(2024, 5, 1, 12, tzinfo=UTC)
NODE, INSTANCE, LAUNCHED = "ip-10-40-0-4.ec2.internal", "i-0123456789abcdef0", "i-0fedcba9876543210"


def at(seconds):
    return PLAYED + timedelta(seconds=seconds)


def a_fact(seconds, kind, about=NODE, **detail):
    return {"at": format_instant(at(seconds)), "kind": kind, "object": about, **detail}


def a_pod_fact(seconds, kind, uid):
    return a_fact(seconds, kind, f"default/web-{uid}", owner="ReplicaSet/web-x", uid=uid)


def a_termination(times, launched=(LAUNCHED,)):
    return ledger.Termination(
        instance=INSTANCE,
        node=NODE,
        causes=("spot_interruption",),
        status="closed",
        outcome="terminated",
        evicted=1,
        launched=launched,
        replacement="" if launched else "the group itself is ending the instance",
        hooks=(),
        blocked_by=(),
        began=at(0),
        times={name: at(seconds) for name, seconds in times.items()},
    )


def a_deployment(replicas=2):
    return {
        "metadata": {"name": "web", "uid": "d-1"},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "web"}}}},
    }


def a_budget(desired, app="web"):
    return {"spec": {"selector": {"matchLabels": {"app": app}}}, "status": {"desiredHealthy": desired}}


def sources(history=(), terminations=(), events=(), deployments=(), budgets=()):
    replica_set = {"metadata": {"name": "web-x", "ownerReferences": [{"uid": "d-1"}]}}
    return Sources(
        history=history,
        terminations=terminations,
        members={INSTANCE: ("web-spot", "spot")},
        events=events,
        deployments=deployments,
        replica_sets=[replica_set],
        budgets=budgets,
        played=PLAYED,
    )


BIRTH = (
    a_fact(-9, "node-created", providerID=f"aws:///us-east-1a/{INSTANCE}"),
    a_fact(-8, "node-ready"),
)


def spans(node):
    return [
        (span.phase, (span.begin - PLAYED).total_seconds(), (span.end - PLAYED).total_seconds()) for span in node.spans
    ]


def test_a_node_that_went_has_each_phase_until_the_next():
    history = [*BIRTH, a_fact(1, "node-cordoned"), a_fact(9.1, "node-deleted")]
    times = {"replacement": 2, "draining": 3, "drained": 5, "terminating": 2.5, "terminated": 9, "closed": 10}
    (node,) = build(sources(history, [a_termination(times)])).nodes
    assert (node.name, node.instance, node.zone) == (NODE, INSTANCE, "us-east-1a")
    assert (node.group, node.capacity_type) == ("web-spot", "spot")
    assert spans(node) == [
        (Phase.LAUNCHING, -9, -8),
        (Phase.READY, -8, 1),
        (Phase.CORDONED, 1, 3),
        (Phase.DRAINING, 3, 5),
        (Phase.SETTLING, 5, 9),
        (Phase.TERMINATED, 9, 10),
    ]


def test_a_replacement_is_launching_from_when_it_was_asked_for():
    born = a_fact(5, "node-created", "new", providerID=f"aws:///us-east-1b/{LAUNCHED}")
    history = [*BIRTH, born, a_fact(6, "node-ready", "new"), a_fact(20, "node-cordoned", "else")]
    _, node = build(sources(history, [a_termination({"replacement": 2})])).nodes
    assert spans(node) == [(Phase.LAUNCHING, 2, 6), (Phase.READY, 6, 20)]


def test_a_workload_counts_ready_pods_and_none_that_is_being_deleted():
    history = [
        a_pod_fact(-3, "pod-ready", "a"),
        a_pod_fact(-2, "pod-ready", "b"),
        a_pod_fact(1, "pod-deletion-started", "a"),
        a_pod_fact(2, "pod-notready", "a"),
        a_pod_fact(3, "pod-deleted", "a"),
        a_pod_fact(4, "pod-ready", "c"),
        a_fact(5, "pod-ready", "default/other", owner="ReplicaSet/other", uid="z"),
    ]
    budgets = [a_budget(1), a_budget(9, app="other")]
    (workload,) = build(sources(history, deployments=[a_deployment()], budgets=budgets)).workloads
    assert (workload.name, workload.desired, workload.minimum) == ("web", 2, 1)
    assert [((s.at - PLAYED).total_seconds(), s.ready) for s in workload.samples] == [(-3, 1), (-2, 2), (1, 1), (4, 2)]


def test_a_workload_without_a_budget_has_no_minimum():
    (workload,) = build(sources(deployments=[a_deployment()])).workloads
    assert workload.minimum is None


def test_refusals_of_one_pod_are_one_mark_with_their_number():
    refusals = [
        a_fact(seconds, "eviction-refused", "default/web-a", node=NODE, pdb="web", code=429) for seconds in (1, 2, 3)
    ]
    marks = build(sources([*BIRTH, *refusals])).marks
    (blocked,) = [mark for mark in marks if mark.kind == "blocked"]
    assert (blocked.at, blocked.node) == (at(1), NODE)
    assert blocked.text == "PodDisruptionBudget web refused to let default/web-a go (3 times)"


def test_a_refusal_says_until_when_the_drain_waits_for_the_pod():
    refusal = a_fact(1, "eviction-refused", "default/web-a", node=NODE, pdb="web", code=429)
    marks = build(sources([*BIRTH, refusal], [a_termination({"draining": 0, "until": 90})])).marks
    (blocked,) = [mark for mark in marks if mark.kind == "blocked"]
    assert blocked.text.endswith(
        f"refused to let default/web-a go, waited for until {format_instant(at(90))} at the latest"
    )


def test_events_of_leeward_are_marks_and_none_comes_before_the_messages():
    def event(component, reason, seconds):
        about = {"name": NODE}
        stamp = format_instant(at(seconds))
        return {
            "source": {"component": component},
            "reason": reason,
            "message": "m",
            "involvedObject": about,
            "firstTimestamp": stamp,
        }

    events = [event("leeward", "SpotInterruption", -1), event("kubelet", "Started", 1), event("leeward", "Gone", 2)]
    marks = build(sources(BIRTH, events=events)).marks
    assert [(mark.at, mark.text.split(":")[0]) for mark in marks] == [
        (PLAYED, "played"),
        (PLAYED, "SpotInterruption"),
        (at(2), "Gone"),
    ]


def test_the_decision_about_a_replacement_is_reported():
    for launched, text in (
        ((LAUNCHED,), f"replacement asked for: {LAUNCHED}"),
        ((), "no replacement: the group itself is ending the instance"),
    ):
        record = build(sources(BIRTH, [a_termination({"replacement": 2}, launched)]))
        assert [mark.text for mark in record.marks if mark.kind == "decision"] == [text]


def test_what_is_built_is_a_record():
    history = [*BIRTH, a_pod_fact(1, "pod-ready", "a")]
    record = build(sources(history, [a_termination({"replacement": 2, "terminated": 9})], deployments=[a_deployment()]))
    assert RunRecord.from_json(record.to_json()) == record


def test_what_ec2_and_the_group_announce_after_leeward_requested_the_end_is_internal():
    def told(seconds, reason):
        source = {"component": "leeward"}
        return {
            "reason": reason,
            "message": "it ends",
            "source": source,
            "involvedObject": {"name": NODE},
            "firstTimestamp": format_instant(at(seconds)),
        }

    events = [told(1, "GroupTerminating"), told(5, "GroupTerminating"), told(6, "SpotInterruption")]
    marks = build(sources(BIRTH, [a_termination({"terminating": 5.5})], events)).marks
    found = [(mark.text.partition(":")[0], mark.internal) for mark in marks if mark.node == NODE]
    assert found[:1] + found[-2:] == [
        ("GroupTerminating", False),
        ("GroupTerminating", True),
        ("SpotInterruption", False),
    ]
