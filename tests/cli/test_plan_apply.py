"""`leeward plan --apply` with fakes for AWS, Kubernetes and the table: the run that the planner would start."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from leeward.cli import plan_apply
from leeward.disruption.controller import decide_once
from leeward.disruption.record import DisruptionOutcome
from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model.pod import PodDisruptionBudget
from leeward.policy.document import Budget, GroupSelector
from leeward.ports.kubernetes import Listed
from tests.cli.snapshots.disruption import a_pod as a_raw_pod
from tests.cli.test_plan_live import system as _system
from tests.fakes.builders import a_policy, policies
from tests.fakes.disruptions import a_disruption

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCHEMA = json.loads(Path("docs/schema/plan.json").read_text())
APPLY = ("plan", "--apply", "--cluster", "blue", "--now", "2026-05-01T12:00:00Z")
BUDGET = PodDisruptionBudget(
    namespace="shop", name="api", selector={"matchLabels": {"app": "api"}}, disruptions_allowed=0
)
system = _system  # the fixture


@pytest.fixture(autouse=True)
def at_noon(system):
    system.clock.advance(seconds=(NOON - system.clock.now()).total_seconds())


def applied(leeward, *more):
    result = leeward(*APPLY, "--yes", "-o", "json", *more)
    jsonschema.validate(result.json, SCHEMA)
    return result


def refused(leeward, system, *more):
    """Exit 1 with the reason, and nothing was started."""
    result = applied(leeward, *more)
    run = result.json["run"]
    assert (result.code, run["started"], run["number"], run["execution"]) == (1, False, None, None)
    assert not system.disruption_executions.started
    return run["said"]


def test_the_run_claims_the_nodes_of_the_plan_and_starts_its_execution(leeward, system):
    result = applied(leeward)
    (nodes,) = [command["nodes"] for command in result.json["commands"]]
    assert (result.code, result.err) == (0, "")
    assert result.json["run"] == {"started": True, "number": 1, "execution": "blue-1-1", "said": "started"}
    record = system.disruptions.records["blue"]
    assert record.open
    assert list(record.nodes) == nodes
    assert system.disruption_executions.started == [("blue-1-1", {"v": 1, "cluster": "blue", "disruption": 1})]


def test_record_and_input_are_those_that_the_planner_writes(leeward, system):
    applied(leeward)
    mine, started = system.disruptions.records.pop("blue"), list(system.disruption_executions.started)
    system.disruption_executions.started.clear()
    assert decide_once(system.ports).disruptions == ["blue-1-1"]
    assert mine.requested_by == "leeward plan --apply"  # where the caller is not known
    assert system.disruptions.records["blue"] == replace(mine, requested_by="")
    assert system.disruption_executions.started == started


def test_a_repeated_call_names_the_run_that_is_under_way_and_starts_no_second(leeward, system):
    first, again = applied(leeward), applied(leeward)
    assert (again.code, again.json["run"]["execution"]) == (0, first.json["run"]["execution"])
    assert again.json["run"]["said"] == "it is under way already"
    assert len(system.disruption_executions.started) == 1


def test_a_run_whose_start_was_lost_is_started_by_the_repeated_call(leeward, system):
    system.disruption_executions.fail("start", AwsUnavailableError("states:StartExecution: 503"), times=1)
    lost = leeward(*APPLY, "--yes", "-o", "json")
    assert (lost.code, lost.out) == (1, "")
    assert "run 1 is recorded, but this call could not start its execution: states:StartExecution: 503" in lost.err
    assert applied(leeward).json["run"]["execution"] == "blue-1-1"
    assert system.disruption_executions.open == {"blue-1-1"}


def test_another_run_that_is_under_way_refuses(leeward, system):
    system.disruptions.write(a_disruption(execution="blue-3-1"))
    said = refused(leeward, system)
    assert said.startswith("run 3 (execution blue-3-1) is under way, and a cluster has one at a time: consolidation: ")


def test_a_run_that_begins_after_the_plan_was_made_refuses(leeward, system, monkeypatch):
    monkeypatch.setattr(system.disruptions, "write", lambda record: None)
    assert refused(leeward, system).startswith("another run of the cluster has begun meanwhile")


@pytest.fixture
def while_it_asks(monkeypatch):
    """Change the cluster after the plan was shown, before the answer."""

    def change(act):
        monkeypatch.setattr(plan_apply, "confirm", lambda *_: act())

    return change


def test_a_pdb_that_holds_the_pods_by_the_time_of_the_answer_refuses(leeward, system, while_it_asks):
    for pod in system.kubernetes.raw[Listed.PODS]:
        pod["metadata"]["labels"] = {"app": "api"}
    while_it_asks(lambda: system.kubernetes.budget_list.append(BUDGET))
    said = refused(leeward, system)
    assert said.startswith("the cluster has changed since the plan was shown: n")
    assert "pdb shop/api" in said
    assert said.endswith("; plan again")


def test_a_budget_that_is_used_up_by_the_time_of_the_answer_refuses(leeward, system, while_it_asks):
    policy = a_policy("web")
    none = replace(policy, disruption=replace(policy.disruption, budgets=(Budget(nodes=0, percent=False),)))
    while_it_asks(lambda: system.clusters.policies_of.update(blue=policies(none)))
    assert "the earlier command is no longer valid" in refused(leeward, system)


def test_a_node_that_is_gone_by_the_time_of_the_answer_refuses(leeward, system, while_it_asks):
    while_it_asks(lambda: system.kubernetes.raw.update({Listed.NODES: [], Listed.PODS: []}))
    assert "not there any more" in refused(leeward, system)


def test_a_run_that_the_planner_starts_before_the_answer_is_named_and_not_repeated(leeward, system, while_it_asks):
    while_it_asks(lambda: decide_once(system.ports))
    result = applied(leeward)
    assert result.json["run"] == {
        "started": True,
        "number": 1,
        "execution": "blue-1-1",
        "said": "it is under way already",
    }
    assert len(system.disruption_executions.started) == 1


def test_a_run_that_ends_before_the_answer_gives_its_cooldowns_and_number(leeward, system, while_it_asks):
    other = replace(a_disruption(groups=("web-b",)), number=7)
    while_it_asks(lambda: system.disruptions.write(other.closed(DisruptionOutcome.DONE, "done", NOON)))
    assert applied(leeward).json["run"]["number"] == 8
    assert system.disruptions.records["blue"].cooldowns.keys() == {"web-b"}


def test_a_pause_that_begins_before_the_answer_refuses(leeward, system, while_it_asks, monkeypatch):
    paused = policies(a_policy("web"), paused="voluntary")
    while_it_asks(lambda: monkeypatch.setattr(system.clusters, "policies", lambda cluster: paused))
    assert "cluster blue is paused" in refused(leeward, system)


def test_a_pod_that_fits_beside_the_others_changes_no_decision(leeward, system, while_it_asks):
    pod = a_raw_pod("p3", "n1")
    pod["status"]["startTime"] = pod["metadata"]["creationTimestamp"] = "2026-04-01T12:00:00Z"
    while_it_asks(lambda: system.kubernetes.raw[Listed.PODS].append(pod))
    assert applied(leeward).json["run"]["started"]


def test_a_paused_cluster_refuses(leeward, system, monkeypatch):
    paused = policies(a_policy("web"), paused="voluntary")
    monkeypatch.setattr(system.clusters, "policies", lambda cluster: paused)
    assert "cluster blue is paused" in refused(leeward, system)


def test_without_anything_to_do_it_refuses(leeward, system):
    record = a_disruption(groups=("web-a",), cooldowns={}).closed(DisruptionOutcome.DONE, "done", NOON)
    system.disruptions.write(record)
    assert refused(leeward, system) == "there is nothing to do"


def test_where_leeward_is_not_deployed_it_refuses_and_names_the_check(leeward, system):
    system.disruptions.fail("read", AccessDeniedError("dynamodb:GetItem on leeward: no such table"))
    result = leeward(*APPLY, "--yes")
    assert (result.code, result.out) == (1, "")
    assert "no such table" in result.err
    assert "leeward doctor checks the deployment" in result.err


def test_only_the_commands_shown_are_started(leeward, system, monkeypatch):
    other = replace(a_policy("other"), selector=GroupSelector(groups=("other",)))
    monkeypatch.setattr(system.clusters, "policies", lambda cluster: policies(a_policy("web"), other))
    assert refused(leeward, system, "-l", "team=search") == "there is nothing to do"
    assert applied(leeward, "--group", "web-a").code == 0


def test_one_method_alone_is_started(leeward, system):
    assert refused(leeward, system, "--method", "drift") == "there is nothing to do"
    assert applied(leeward, "--method", "consolidation").json["run"]["started"]


def test_an_earlier_plan_is_checked_again_and_what_still_holds_is_started(leeward, system, tmp_path):
    kept = tmp_path / "plan.json"
    kept.write_text(leeward("plan", *APPLY[2:], "-o", "json").out)
    result = applied(leeward, "--validate", str(kept))
    assert result.json["run"]["started"]
    assert list(system.disruptions.records["blue"].nodes) == result.json["commands"][0]["nodes"]


def test_the_plan_is_shown_and_a_question_asked_on_a_terminal(leeward, system, answer):
    answer("n\n")
    result = leeward(*APPLY)
    assert (result.code, system.disruptions.records) == (1, {})
    assert "after consolidation: 1 node" in result.out
    assert "delete: drain and TERMINATE 1 node (n" in result.err
    assert "Go on? [y/N]" in result.err
    answer("y\n")
    result = leeward(*APPLY)
    assert result.code == 0
    assert result.out.endswith("run 1 of blue: started (execution blue-1-1)\n")


def test_a_refusal_of_a_table_stands_on_standard_error(leeward, system):
    system.disruptions.write(a_disruption(execution="blue-3-1"))
    result = leeward(*APPLY, "--yes")
    assert (result.code, "COMMAND" in result.out) == (1, True)
    assert result.err.startswith("leeward: not started: run 3 (execution blue-3-1) is under way")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "plan --apply: found no terminal to ask on and no --yes, expected --yes where a script runs it"),
        (("--yes", "--what-if", "drift"), "plan: found --apply and --what-if drift, expected one of them"),
        (("--yes", "--method", "unhealthy"), "plan: found --apply with --method unhealthy, expected another method"),
    ],
)
def test_what_cannot_be_applied_is_bad_input_and_nothing_is_started(leeward, system, options, message):
    assert leeward.refuses(*APPLY, *options).startswith(message)
    assert system.disruptions.records == {}


def test_it_is_live_alone(leeward):
    said = leeward.refuses("plan", "--apply", "--yes", "--snapshot", "tests/cli/snapshots/small")
    assert said == "plan --apply: found --snapshot, expected --cluster NAME: it is live alone"


def test_only_a_run_can_be_followed(leeward, system):
    assert leeward.refuses("plan", "--watch", *APPLY[2:]).startswith("plan: found --watch without --apply")
