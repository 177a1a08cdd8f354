"""`leeward top` as its users run it: of a folder, of a cluster, and refreshed on a terminal."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.cli.top.command import refresh
from leeward.cli.top.screen import ENTER, LEAVE, TERMINATED, Screen, cut
from leeward.errors import AccessDeniedError, ObjectGoneError, RetryableError
from leeward.model.pause import PauseRecord
from leeward.model.termination import Cause, CauseKind
from leeward.model.well_known import DISRUPTED_TAINT
from leeward.ports.kubernetes import Listed
from tests.cli.command import NOON
from tests.cli.snapshots.disruption import a_disruption_snapshot, a_node, a_pod
from tests.cli.snapshots.placement import items
from tests.fakes.builders import a_group, a_pause, a_policy, a_subject, an_instance, policies
from tests.fakes.clock import FakeClock
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/top.json").read_text())
LIVE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def top(leeward, tmp_path):
    def run(*arguments, **files):
        folder = a_disruption_snapshot(tmp_path, **files)
        result = leeward("top", "--snapshot", folder, "--now", NOON, *arguments, "-o", "json")
        assert (result.code, result.err) == (0, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


@pytest.fixture
def system(monkeypatch):
    group = a_group("web-a", "i-n1", "i-n2")
    members = tuple(replace(one, type="m5.large") for one in group.instances)
    system = FakeSystem(
        instances=[replace(an_instance(one.id, spot=False), type="m5.large") for one in members],
        groups=[replace(group, instances=members)],
        written=policies(a_policy("web")),
    )
    system.kubernetes.raw = {
        Listed.NODES: [a_node("n1"), a_node("n2")],
        Listed.PODS: [a_pod("p1", "n1"), a_pod("p2", "n2")],
    }
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    return system


def by_name(document):
    return {one["node"]: one for one in document["nodes"]}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_node_is_shown_with_group_zone_type_price_and_use(top):
    found = top(pods=items(a_pod("p1", "n1", cpu="1500m"), a_pod("p2", "n1"), a_pod("free", "")))
    one = by_name(found)["n1"]
    assert (one["group"], one["zone"], one["instanceType"], one["capacityType"]) == (
        "web", "us-east-1a", "m5.xlarge", "on-demand",
    )  # fmt: skip
    assert one["pricePerHour"] == 0.192
    assert one["cpu"] == {"requested": 2.0, "allocatable": 3.92}
    assert one["memory"] == {"requested": 2 * 1024**3, "allocatable": 14 * 1024**3}
    assert one["pods"] == {"running": 2, "allocatable": 58}
    assert found["summary"]["pendingPods"] == 1
    assert found["summary"]["pricePerHour"] == pytest.approx(3 * 0.192)


def test_a_pod_that_has_finished_takes_nothing(top):
    done = a_pod("p1", "n1")
    done["status"]["phase"] = "Succeeded"
    one = by_name(top(pods=items(done)))["n1"]
    assert (one["cpu"]["requested"], one["pods"]["running"]) == (0, 0)


def changed(name, **fields):
    node = a_node(name)
    for path, value in fields.items():
        node[path] = {**node.get(path, {}), **value}
    return node


@pytest.mark.parametrize(
    ("node", "state"),
    [
        (a_node("n1"), "Ready"),
        (changed("n1", spec={"unschedulable": True}), "cordoned"),
        (changed("n1", status={"conditions": [{"type": "Ready", "status": "Unknown"}]}), "NotReady"),
        (changed("n1", metadata={"deletionTimestamp": "2024-05-01T11:59:00Z"}), "deleting"),
        (changed("n1", spec={"taints": [{"key": DISRUPTED_TAINT, "effect": "NoSchedule"}]}), "draining"),
    ],
)
def test_the_state_of_a_node_is_the_one_nearest_to_its_end(top, node, state):
    found = top(nodes=items(node))
    assert by_name(found)["n1"]["state"] == state
    assert found["summary"]["states"] == {state: 1}


def test_a_blocker_is_a_budget_or_an_annotation_those_of_most_pods_first(top):
    budget = {
        "metadata": {"namespace": "shop", "name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}},
        "status": {"disruptionsAllowed": 0},
    }
    asks = {"karpenter.sh/do-not-disrupt": "true"}
    held = [a_pod(name, "n1", labels={"app": "api"}) for name in ("p1", "p2")]
    pods = items(*held, a_pod("p3", "n1", annotations=asks), a_pod("p4", "n2"))
    nodes = items(a_node("n1"), a_node("n2", annotations=asks))
    found = by_name(top(pods=pods, pdbs=items(budget), nodes=nodes))
    assert found["n1"]["blockers"] == ["pdb shop/api", "pod shop/p3 (karpenter.sh/do-not-disrupt)"]
    assert found["n2"]["blockers"] == ["annotation karpenter.sh/do-not-disrupt"]


def test_only_nodes_of_a_group_or_with_a_label_are_shown(top):
    nodes = items(a_node("n1"), changed("n2", metadata={"labels": {"team": "shop"}}))
    assert set(by_name(top("-l", "team=shop", nodes=nodes))) == {"n2"}
    assert by_name(top("--group", "batch")) == {}


def test_a_live_node_that_drains_shows_what_its_drain_waits_for(leeward, system):
    system.claims.claim(a_subject("i-n1", node="n1"), Cause(id="spot#1", kind=CauseKind.MANUAL, at=NOW), NOW)
    system.claims.note_attempt("i-n1", 1, times={"draining": NOW}, blocked_by=("pdb shop/api",))
    result = leeward("top", *LIVE, "-o", "json")
    assert (result.code, result.err) == (0, "")
    jsonschema.validate(result.json, SCHEMA)
    found = by_name(result.json)
    assert (found["n1"]["state"], found["n1"]["blockers"]) == ("draining", ["pdb shop/api"])
    assert (found["n2"]["state"], found["n2"]["group"]) == ("Ready", "web-a")


@pytest.mark.parametrize("command", [("top",), ("blockers",)])
def test_a_pause_stands_above_what_is_shown(leeward, system, command):
    system.pauses.write(PauseRecord(cluster="blue", pauses=(a_pause(),)))
    first = leeward(*command, *LIVE).out.splitlines()[0]
    assert first.startswith("PAUSED: cluster blue: disruption, repair and upgrades, without an end, by ")
    assert a_pause().why in first


def test_where_nothing_is_deployed_there_are_prices_and_no_warning(leeward, system):
    gone = ObjectGoneError("ResourceNotFoundException: Requested resource not found")
    system.claims.fail("open_instances", gone)
    system.catalog.fail("read", gone)
    found = leeward("top", *LIVE, "-o", "json").json
    assert found.get("warnings", []) == []
    assert all(node["pricePerHour"] is not None for node in found["nodes"])


def test_prices_on_demand_are_kept_where_those_of_spot_are_denied(leeward, system):
    system.price_list.fail("spot", AccessDeniedError("ec2:DescribeSpotPriceHistory: not allowed"))
    found = leeward("top", *LIVE, "-o", "json").json
    assert found["warnings"] == ["spot prices cannot be read: ec2:DescribeSpotPriceHistory: not allowed"]
    assert all(node["pricePerHour"] is not None for node in found["nodes"])


def test_what_aws_does_not_answer_is_a_warning(leeward, system, monkeypatch):
    def denied(*_):
        raise AccessDeniedError("autoscaling:DescribeAutoScalingGroups: not allowed")

    monkeypatch.setattr(system.ports.groups, "of_clusters", denied)
    monkeypatch.setattr(system.ports.claims, "open_instances", denied)
    document = leeward("top", *LIVE, "-o", "json").json
    assert [one["state"] for one in document["nodes"]] == ["Ready", "Ready"]
    assert [one.split(" cannot")[0] for one in document["warnings"][:2]] == [
        "Auto Scaling groups",
        "terminations under way",
    ]


def test_a_cluster_that_does_not_answer_is_an_error(leeward, system, monkeypatch):
    def silent(*_):
        raise RetryableError("GET /api/v1/nodes: no answer in 10 s")

    monkeypatch.setattr(system.kubernetes, "read", silent)
    result = leeward("top", *LIVE)
    assert result.code == 1
    assert "no answer in 10 s" in result.err


class Watched:
    """Clock of an operator who presses Ctrl-C after so many refreshes."""

    def __init__(self, refreshes):
        self.left, self.clock = refreshes, FakeClock(NOW)
        self.now = self.clock.now

    def sleep(self, seconds):
        self.clock.sleep(seconds)
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def test_on_a_terminal_it_is_refreshed_until_ctrl_c(leeward, system, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: replace(system.ports, clock=Watched(2)))
    result = leeward("top", *LIVE)
    assert result.code == 0
    assert result.out.startswith(ENTER)
    assert result.out.endswith(LEAVE)
    assert [result.out.count(f"12:00:{second}Z   cluster blue") for second in ("00", "05", "10")] == [1, 1, 1]


def test_with_once_it_is_printed_once_on_a_terminal_too(leeward, system, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    result = leeward("top", "--once", *LIVE)
    assert ENTER not in result.out
    assert "2 nodes (2 on-demand)" in result.out


def test_a_refresh_that_fails_leaves_the_last_nodes_and_says_so(capsys):
    answers = iter([["n1 Ready"], RetryableError(f"GET /api/v1/nodes:\n {'no answer ' * 9}"), ["n1 gone"]])

    def read(now):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert refresh(read, Watched(2)) == 0
    drawn = [" ".join(one.split()) for one in capsys.readouterr().out.replace("\x1b[K", "").split("\x1b[H")[1:]]
    assert [
        ["n1 Ready" in one, f"not read since 2026-05-01T12:00:00Z: GET /api/v1/nodes: {'no answer ' * 9}n1" in one]
        for one in drawn
    ] == [
        [True, False],
        [True, True],
        [False, False],
    ]


def test_a_first_reading_that_fails_is_the_error_of_the_command():
    def read(now):
        raise AccessDeniedError("nodes: not allowed")

    with pytest.raises(AccessDeniedError):
        refresh(read, Watched(1))


@pytest.mark.parametrize("width", range(0, 12))
def test_a_line_is_cut_by_what_is_seen_of_it(width):
    expected = "draining n1" if width >= 11 else f"{'draining n1'[: max(width - 1, 0)]}{'…' if width else ''}"
    assert cut("\x1b[33mdraining\x1b[0m n1", width).replace("\x1b[33m", "").replace("\x1b[0m", "") == expected
    assert cut("\x1b[33mdraining\x1b[0m n1", width).endswith("\x1b[0m") or width > 8


def test_lines_below_the_last_row_are_counted(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "3")
    stream = io.StringIO()
    Screen(stream).draw(["a", "b", "c", "d", "e"])
    assert "and 3 lines more" in stream.getvalue()
    assert "c" not in stream.getvalue().split("and")[0].replace("\x1b", "")


def test_the_terminal_is_restored_after_sigterm():
    code = (
        "import time\nfrom leeward.cli.top.screen import Screen\n"
        "with Screen() as s:\n s.draw(['drawn'])\n time.sleep(60)"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": "functions"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, env=environment) as process:
        os.close(theirs)
        printed = b""
        while b"drawn" not in printed:
            printed += os.read(ours, 65536)
        process.send_signal(signal.SIGTERM)
        while not printed.endswith(LEAVE.encode()):
            printed += os.read(ours, 65536)
    os.close(ours)
    assert process.returncode == TERMINATED


def test_what_is_kept_is_not_read_at_each_refresh(system, monkeypatch):
    """Groups for a minute, instances for good, prices for an hour; nodes, pods and terminations each time."""
    from leeward.cli.context import ClusterContext
    from leeward.cli.top.reading import TopReader

    calls = {"groups": 0, "instances": 0, "prices": 0}

    def counted(what, call):
        def run(*arguments):
            calls[what] += 1
            return call(*arguments)

        return run

    monkeypatch.setattr(system.ports.groups, "of_clusters", counted("groups", system.ports.groups.of_clusters))
    monkeypatch.setattr(system.ports.instances, "describe", counted("instances", system.ports.instances.describe))
    monkeypatch.setattr(system.ports.price_list, "on_demand", counted("prices", system.ports.price_list.on_demand))
    reader = TopReader(ClusterContext(ports=system.ports, cluster="blue"))
    for second in range(0, 60, 5):
        reader.read(NOW + timedelta(seconds=second))
    assert (calls["groups"], calls["instances"], calls["prices"]) == (1, 1, 1)
    system.kubernetes.raw[Listed.NODES].append(a_node("n3"))
    reader.read(NOW + timedelta(seconds=60))
    assert (calls["groups"], calls["instances"]) == (2, 2)
