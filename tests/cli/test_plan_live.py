"""`leeward plan`, `budget` and `drift` against a cluster, with fakes for AWS and Kubernetes."""

import json
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.disruption.record import DisruptionOutcome
from leeward.errors import AccessDeniedError
from leeward.model.instance_status import Impairment
from leeward.model.launch import LaunchSettings
from tests.cli.live_answers import disruptable
from tests.fakes.disruptions import a_disruption

LIVE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z", "-o", "json")


def valid(result, name):
    assert (result.code, result.err) == (0, "")
    jsonschema.validate(result.json, json.loads(Path(f"docs/schema/{name}.json").read_text()))
    return result.json


@pytest.fixture
def system(monkeypatch):
    system = disruptable()
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    return system


def test_a_live_plan_is_made_from_the_cluster_and_aws(leeward, system):
    found = valid(leeward("plan", *LIVE), "plan")
    assert (found["method"], len(found["commands"][0]["nodes"])) == ("consolidation", 1)


def test_a_live_plan_for_unhealthy_nodes_asks_ec2_for_failing_checks(leeward, system):
    since = datetime(2026, 5, 1, 11, tzinfo=UTC)
    system.instances.failing["i-n2"] = Impairment(instance="i-n2", checks=("system",), since=since)
    found = valid(leeward("plan", "--method", "unhealthy", *LIVE), "plan")
    assert [command["nodes"] for command in found["commands"]] == [["n2"]]


def test_live_budgets_count_live_nodes(leeward, system):
    rows = valid(leeward("inspect", "budget", *LIVE), "budget")["budgets"]
    assert {(one["allowed"], one["total"]) for one in rows if one["reason"] == "Empty"} == {(1, 2)}


def test_live_drift_compares_with_the_launch_template_of_now(leeward, system):
    system.launches.by_group["web-a"] = LaunchSettings(image="ami-2", instance_type="m5.large")
    nodes = valid(leeward("drift", *LIVE), "drift")["nodes"]
    assert [one["reasons"][0]["field"] for one in nodes] == ["ami", "ami"]


def test_a_node_whose_termination_is_under_way_is_left_alone(leeward, system, monkeypatch):
    monkeypatch.setattr(system.ports.claims, "open_instances", lambda: ["i-n1"])
    verdicts = {one["node"]: one["verdicts"][3]["reason"] for one in valid(leeward("plan", *LIVE), "plan")["nodes"]}
    assert verdicts["n1"] == "a termination of it is under way"


def test_without_the_table_and_without_prices_there_is_a_plan_all_the_same(leeward, system, monkeypatch):
    def denied(*_):
        raise AccessDeniedError("dynamodb:Query: not allowed")

    monkeypatch.setattr(system.ports.claims, "open_instances", denied)
    monkeypatch.setattr(system.ports.catalog, "read", denied)
    monkeypatch.setattr(system.ports.price_list, "on_demand", denied)
    (command,) = valid(leeward("plan", *LIVE), "plan")["commands"]
    assert command["savingsPerHour"] is None
    reported = leeward("plan", "--cluster", "blue", "--now", "2026-05-01T12:00:00Z").out
    assert "prices cannot be read: dynamodb:Query: not allowed" in reported


def test_a_live_plan_names_the_round_that_is_under_way(leeward, system):
    system.disruptions.write(a_disruption(execution="blue-3-1", requested=True))
    said = leeward("plan", *LIVE[:-1], "table").out
    assert "run 3 is under way (execution blue-3-1): consolidation: replace node-a, node-b" in " ".join(said.split())


def test_a_live_plan_leaves_groups_alone_that_rest_after_a_round(leeward, system):
    now = datetime(2026, 5, 1, 11, 55, tzinfo=UTC)
    system.disruptions.write(a_disruption(groups=("web-a",)).closed(DisruptionOutcome.DONE, "done", now))
    found = valid(leeward("plan", *LIVE), "plan")
    assert found["commands"] == []
    assert "is in cooldown after the last run" in found["nodes"][0]["verdicts"][0]["reason"]


def test_where_leeward_is_not_installed_a_live_plan_is_made_all_the_same(leeward, system):
    system.disruptions.fail("read", AccessDeniedError("dynamodb:GetItem on leeward: no such table"))
    found = valid(leeward("plan", *LIVE), "plan")
    assert found["method"] == "consolidation"
    assert "cannot be read" in leeward("plan", *LIVE[:-1], "table").out
