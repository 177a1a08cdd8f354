"""`leeward drain` of several nodes, of a node that drains already, and its undoing by --cancel."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from leeward.adapters import wiring
from leeward.errors import ThrottledError
from leeward.model import well_known
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from leeward.model.times import format_instant
from tests.fakes.builders import a_group, a_node, a_policy, a_subject, an_instance, policies
from tests.fakes.system import FakeSystem
from tests.state_machines.walker import Walker

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIVE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z", "-o", "json", "--yes")
LATER = ("--cluster", "blue", "--now", "2026-05-01T12:01:00Z", "-o", "json", "--yes")
SPOT = Cause(id="e", kind=CauseKind.SPOT_INTERRUPTION, at=NOW, deadline=NOW + timedelta(minutes=2))
SCHEMA = Draft202012Validator(json.loads(Path("docs/schema/drain.json").read_text()))


@pytest.fixture
def system(monkeypatch):
    nodes = [a_node(f"i-0{letter}") for letter in "abc"]
    nodes[1] = replace(nodes[1], labels={**nodes[1].labels, "team": "shop"})
    system = FakeSystem(
        instances=[an_instance(f"i-0{letter}") for letter in "abc"],
        groups=[a_group("web-a", "i-0a", "i-0b", "i-0c")],
        nodes=nodes,
        written=policies(a_policy()),
    )
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    return system


def drained(leeward, *arguments):
    result = leeward("drain", *arguments)
    SCHEMA.validate(result.json)
    return result


# several nodes


def test_nodes_that_are_named_are_drained_once_each_in_their_order(leeward, system):
    result = drained(leeward, "node-i-0c", "i-0a", "node/node-i-0c", *LIVE)
    assert (result.code, [one["execution"] for one in result.json]) == (0, ["i-0c-1", "i-0a-1"])


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ("team=shop", ["i-0b"]),
        ("team!=shop", ["i-0a", "i-0c"]),
        ("team in (shop, api)", ["i-0b"]),
        ("!team", ["i-0a", "i-0c"]),
    ],
)
def test_labels_choose_nodes_as_kubectl_reads_them(leeward, system, labels, nodes):
    result = drained(leeward, "-l", labels, *LIVE)
    assert [one["execution"] for one in result.json] == [f"{node}-1" for node in nodes]


def test_labels_that_no_node_has_are_bad_input(leeward, system):
    said = leeward.refuses("drain", "-l", "team=none", *LIVE)
    assert said == "drain -l: found no node with these labels among the 3 nodes of the cluster, expected one at least"
    said = leeward.refuses("drain", "-l", "team=none", "--group", "web-a", *LIVE)
    assert "among the 3 nodes of group web-a" in said
    assert "expected a label selector" in leeward.refuses("drain", "-l", "", *LIVE)


def test_the_question_counts_the_nodes_of_the_cluster(leeward, system, monkeypatch):
    monkeypatch.setattr("leeward.cli.confirmation._on_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin.readline", lambda: "n")
    assert (
        "2 of 3 nodes of the cluster, 0 pods in all, drained at the same time"
        in leeward("drain", "-l", "!team", *LIVE[:-1]).err
    )
    refused = leeward("drain", "-l", "topology.kubernetes.io/zone", *LIVE[:-1])
    assert (refused.code, refused.err.splitlines()[0]) == (
        1,
        "all 3 nodes of the cluster, 0 pods in all, drained at the same time",
    )
    assert system.executions.started == []


def test_an_unknown_node_among_several_starts_nothing(leeward, system):
    assert "found no node 'x'" in leeward.refuses("drain", "node-i-0a", "x", *LIVE)
    assert system.executions.started == []


def test_a_node_that_cannot_be_started_is_said_beside_the_others_with_exit_1(leeward, system):
    system.claims.fail("claim", ThrottledError("claims.claim: rate exceeded"), times=1)
    result = drained(leeward, "node-i-0a", "node-i-0b", *LIVE)
    assert result.code == 1
    assert [(one["execution"], one["said"]) for one in result.json] == [
        (None, "not started: claims.claim: rate exceeded"),
        ("i-0b-1", "started"),
    ]


# a node that drains already


def test_a_second_drain_says_since_when_and_where_the_first_stands_and_changes_nothing(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    system.claims.note_attempt("i-0a", 1, times={"draining": NOW}, blocked_by=["shop/web: pdb shop/web"], evicted=2)
    before = system.claims.read("i-0a")
    again = drained(leeward, "node-i-0a", *LATER)
    assert (again.code, again.json["execution"]) == (0, "i-0a-1")
    assert again.json["said"] == (
        "runs already since 2026-05-01T12:00:00Z (manual drain): "
        "draining, 2 pods evicted, waits for shop/web: pdb shop/web"
    )
    assert (system.claims.read("i-0a"), system.executions.started) == (before, ["i-0a-1"])


def test_a_second_drain_asks_nothing_and_names_how_to_follow_and_to_take_back(leeward, system, monkeypatch):
    monkeypatch.setattr("leeward.cli.confirmation._on_terminal", lambda: True)
    drained(leeward, "node-i-0a", *LIVE)
    again = leeward("drain", "node-i-0a", "--cluster", "blue", "--wait=false")
    assert (again.code, again.err) == (0, "")
    assert "node-i-0a: runs already since " in again.out
    assert "  leeward drain node-i-0a --cluster blue --watch\n" in again.out
    assert "  leeward drain node-i-0a --cluster blue --cancel\n" in again.out


def test_a_second_drain_with_a_deadline_joins_the_first_and_there_is_one_execution(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    again = drained(leeward, "node-i-0a", "--deadline", "2026-05-01T12:30:00Z", *LATER)
    assert again.json["said"].startswith("joined the termination in progress since 2026-05-01T12:00:00Z (manual drain)")
    assert len(system.claims.read("i-0a").causes) == 2
    assert system.executions.open == {"i-0a-1"}


def test_a_drain_joins_a_termination_for_another_cause(leeward, system):
    system.claims.claim(a_subject("i-0a"), SPOT, NOW)
    result = drained(leeward, "node-i-0a", *LIVE)
    assert "joined the termination in progress" in result.json["said"]
    assert "(spot interruption)" in result.json["said"]
    assert len(system.claims.read("i-0a").causes) == 2


def test_a_drain_whose_execution_has_ended_is_started_again_without_another_cause(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    system.executions.end("i-0a", 1)
    assert drained(leeward, "node-i-0a", *LATER).json["execution"] == "i-0a-2"
    assert len(system.claims.read("i-0a").causes) == 1


# --cancel


def blocked(system, node="node-i-0a"):
    """A pod that its budget does not let go."""
    pod = Pod(namespace="shop", name="web", uid="web", node=node, phase="Running", labels={"app": "web"})
    system.kubernetes.by_key[pod.key] = pod
    selector = {"matchLabels": {"app": "web"}}
    system.kubernetes.budget_list = [
        PodDisruptionBudget(namespace="shop", name="web", selector=selector, disruptions_allowed=0)
    ]


def test_a_drain_that_a_budget_holds_is_called_off_and_its_node_returns_to_service(leeward, system):
    """The state machine itself: the pause is woken, nothing is evicted, taint, cordon and label go."""
    blocked(system)
    drained(leeward, "node-i-0a", *LIVE)
    results = []

    def called_off(state, _):
        record = system.claims.read("i-0a")
        if state == "(a second of a pause)" and not results and record.blocked_by:
            node = system.kubernetes.node("node-i-0a")
            assert (node.tainted, node.unschedulable) == (True, True)
            results.append(drained(leeward, "node-i-0a", "--cancel", *LATER))

    began = system.clock.now()
    walk = Walker(system, before=called_off).run("i-0a")
    (result,) = results
    assert (result.code, result.json["cancelled"], result.json["execution"]) == (0, True, "i-0a-1")
    assert result.json["said"] == "drain cancelled, no pod had left"
    assert walk.ended == "Cancelled"
    assert system.executions.woken
    assert system.clock.now() - began < timedelta(minutes=2)
    node = system.kubernetes.node("node-i-0a")
    assert (node.taken_out, node.unschedulable, well_known.EXCLUDE_LABEL in node.labels) == (False, False, False)
    record = system.claims.read("i-0a")
    assert (record.status, record.outcome) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    assert "leeward drain --cancel has taken the drain back" in system.kubernetes.events[-1].message
    again = drained(leeward, "node-i-0a", "--cancel", *LATER)
    closed = format_instant(record.times["closed"])
    assert (again.code, again.json["said"]) == (0, f"cancelled already, in service again at {closed}")


def test_a_cordon_of_another_owner_stays_after_a_drain_that_was_called_off(leeward, system):
    nodes = system.kubernetes.by_name
    nodes["node-i-0a"] = replace(nodes["node-i-0a"], unschedulable=True)
    drained(leeward, "node-i-0a", *LIVE)
    assert drained(leeward, "node-i-0a", "--cancel", *LATER).code == 0
    assert Walker(system).run("i-0a").ended == "Cancelled"
    node = system.kubernetes.node("node-i-0a")
    assert (node.tainted, node.unschedulable) == (False, True)


def test_pods_that_have_left_are_said_not_to_come_back(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    system.claims.note_attempt("i-0a", 1, times={"draining": NOW}, evicted=2)
    result = drained(leeward, "node-i-0a", "--cancel", *LATER)
    assert result.json["said"] == "drain cancelled, 2 pods have left and are not moved back"


def test_a_drain_whose_execution_has_ended_is_called_off_by_the_next_one(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    system.executions.end("i-0a", 1)
    assert drained(leeward, "node-i-0a", "--cancel", *LATER).json["execution"] == "i-0a-2"
    assert Walker(system).run("i-0a", 2).ended == "Cancelled"


def test_a_termination_that_was_requested_cannot_be_undone(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    system.claims.note("i-0a", times={"terminating": NOW})
    result = drained(leeward, "node-i-0a", "--cancel", *LATER)
    assert (result.code, result.json["cancelled"], result.json["execution"]) == (1, False, None)
    assert result.json["said"] == (
        "TERMINATE of instance i-0a was requested at 2026-05-01T12:00:00Z, which cannot be undone"
    )
    assert len(system.claims.read("i-0a").causes) == 1


def test_a_termination_that_is_requested_at_the_same_moment_goes_on(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    withdraw = system.claims.withdraw

    def slower(*arguments):
        system.claims.note("i-0a", times={"terminating": NOW})
        return withdraw(*arguments)

    system.claims.withdraw = slower
    result = drained(leeward, "node-i-0a", "--cancel", *LATER)
    assert result.code == 1
    assert result.json["said"].startswith("came too late: TERMINATE of instance i-0a was requested at ")
    assert len(system.claims.read("i-0a").causes) == 1


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        (CauseKind.SPOT_INTERRUPTION, "(spot interruption), and --cancel ends nothing else"),
        (CauseKind.UPGRADE, "; leeward upgrade abort web-a --cluster blue ends the upgrade"),
        (CauseKind.EVACUATION, "; leeward zone return us-east-1a --cluster blue ends the evacuation"),
    ],
)
def test_a_drain_that_something_else_requests_too_goes_on(leeward, system, kind, ends):
    drained(leeward, "node-i-0a", *LIVE)
    system.claims.claim(a_subject("i-0a"), replace(SPOT, kind=kind, deadline=None), NOW)
    before = system.claims.read("i-0a")
    result = drained(leeward, "node-i-0a", "--cancel", *LATER)
    assert (result.code, result.json["said"].endswith(ends)) == (1, True)
    assert system.claims.read("i-0a") == before


def test_each_node_has_its_own_line_and_one_that_goes_on_is_exit_1(leeward, system):
    drained(leeward, "node-i-0a", "node-i-0b", *LIVE)
    system.claims.note("i-0b", times={"terminating": NOW})
    result = leeward("drain", "--group", "web-a", "--cancel", "--wait=false", "--cluster", "blue")
    assert result.code == 1
    assert result.out.splitlines() == [
        "node-i-0a: drain cancelled, no pod had left",
        "node-i-0b: TERMINATE of instance i-0b was requested at 2026-05-01T12:00:00Z, which cannot be undone",
        "node-i-0c: no drain of it is in progress",
    ]


def test_a_node_that_was_kept_is_returned_by_its_operators_own_command(leeward, system):
    drained(leeward, "node-i-0a", "--keep", *LIVE)
    assert Walker(system).run("i-0a").ended == "Kept"
    result = leeward("drain", "node-i-0a", "--cancel", "--cluster", "blue")
    assert result.code == 1
    assert "its instance is kept, cordoned; the command below puts the node back into service" in result.out
    assert "  kubectl uncordon node-i-0a\n" in result.out


def test_a_cancellation_is_followed_until_the_node_is_in_service(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    steps = [lambda: system.claims.close("i-0a", version=2, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)]
    system.clock.sleep = lambda _: steps.pop()()
    result = leeward("drain", "node-i-0a", "--cancel", "--cluster", "blue")
    assert result.code == 0
    said = [line.partition("node-i-0a: ")[2] for line in result.err.splitlines()]
    assert said[0] == "returning to service, 0 pods evicted"
    assert said[1].startswith("in service again: leeward drain --cancel has taken the drain back")


def test_a_cancellation_that_the_group_was_faster_than_is_exit_1(leeward, system):
    drained(leeward, "node-i-0a", *LIVE)
    steps = [lambda: system.claims.close("i-0a", version=2, outcome=Outcome.TERMINATED, now=NOW)]
    system.clock.sleep = lambda _: steps.pop()()
    result = leeward("drain", "node-i-0a", "--cancel", "--cluster", "blue")
    assert (result.code, result.err.splitlines()[-1].endswith("the cancellation came too late")) == (1, True)


def test_cancel_is_live_alone_and_takes_no_flag_of_a_drain(leeward, system):
    assert "found --snapshot, expected --cluster" in leeward.refuses("drain", "n", "--cancel", "--snapshot", "x")
    for flag in ("--keep", "--dry-run", "--force", "--grace-period=5"):
        assert "found --cancel with flags of a drain" in leeward.refuses("drain", "n", "--cancel", flag, *LATER)


def test_ctrl_c_names_the_command_that_takes_the_drain_back(leeward, system):
    def ctrl_c(_):
        raise KeyboardInterrupt

    system.clock.sleep = ctrl_c
    result = leeward("drain", "node-i-0a", "--cluster", "blue", "--yes")
    assert result.code == 130
    assert result.err.endswith("to take it back: leeward drain node-i-0a --cluster blue --cancel\n")
