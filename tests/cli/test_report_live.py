"""`leeward report EXECUTION --to FILE.html --cluster NAME`, with a deployment in memory."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.cli.report import live
from leeward.errors import AccessDeniedError, ThrottledError
from leeward.model.execution import ExecutionStatus, Machine
from leeward.model.group import ScalingActivity
from leeward.model.termination import Cause, CauseKind, Outcome, execution_name
from leeward.model.times import format_instant
from leeward.ports.kubernetes import Listed
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_subject, an_instance
from tests.fakes.disruptions import a_disruption
from tests.fakes.past import FakePast
from tests.fakes.system import FakeSystem
from tests.unit.cli.report.execution import BLOCKED, NEW, OLD, TEN, a_step, a_story, an_execution, an_upgrade, at

SCHEMA = json.loads(Path("docs/schema/run-record.json").read_text())
ARN = "arn:aws:states:eu-west-1:111122223333:execution:"
NOW = "2026-03-02T10:30:00Z"
SECRET = "correct-horse-battery-staple"


@pytest.fixture
def system(monkeypatch):
    """One group with an old node that has gone and a new one; Step Functions remembers nothing yet."""
    found = FakeSystem(instances=[an_instance(NEW)], groups=[a_group(GROUP, NEW)])
    found.past, found.asked_for = FakePast(), []

    def ports(cluster, region=None, account=None):
        found.asked_for.append((cluster, region, account))
        return found.ports, found.past

    monkeypatch.setattr(wiring, "command_line_past", ports)
    return found


@pytest.fixture
def report(leeward, system, tmp_path):
    """Draws it, and answers the record that was written beside the page."""

    def run(name, *options):
        page, kept = tmp_path / "page.html", tmp_path / "record.json"
        arguments = ("report", name, "--to", page, "--record", kept, "--cluster", CLUSTER, "--now", NOW, *options)
        result = leeward(*arguments)
        assert result.code == 0, result.err
        document = json.loads(kept.read_text())
        jsonschema.validate(document, SCHEMA)
        assert page.read_text().startswith("<!DOCTYPE html>")
        return document

    return run


@pytest.fixture
def refused(leeward, system, tmp_path):
    def run(name, *options):
        page = tmp_path / "page.html"
        said = leeward.refuses("report", name, "--to", page, "--cluster", CLUSTER, "--now", NOW, *options)
        assert not page.exists()
        return said

    return run


def terminate(system, instance=OLD, cause=None, begin=0, **more):
    """It is written down as the steps do, and closed; Step Functions remembers its execution."""
    cause = cause or Cause(id="manual#1", kind=CauseKind.MANUAL, at=at(begin - 1), reason="leeward drain")
    subject = replace(a_subject(instance, node=f"node-{instance}"), **more)
    record = system.claims.claim(subject, cause, at(begin))
    times = {"tainted": 5.5, "draining": 6, "until": 606, "drained": 40, "terminating": 62, "terminated": 80}
    system.claims.note(instance, times={name: at(begin + seconds) for name, seconds in times.items()})
    system.claims.close(instance, version=record.version, outcome=Outcome.TERMINATED, now=at(begin + 91))
    execution = an_execution(name=execution_name(instance, 1), given={"instance": instance, "attempt": 1})
    system.past.put(execution, *a_story(begin=begin))


def phases(document, instance):
    (lane,) = [lane for lane in document["nodes"] if lane["instance"] == instance]
    return {span["phase"]: span["from"] for span in lane["spans"]}


class TestATermination:
    @pytest.mark.parametrize(
        "name", [f"{OLD}-1", OLD, f"{ARN}leeward-node-termination:{OLD}-1"], ids=["name", "instance", "arn"]
    )
    def test_it_is_found_by_its_name_its_arn_or_its_instance(self, report, system, name):
        terminate(system)
        document = report(name)
        assert document["about"] == f"{OLD}-1 of leeward-node-termination: succeeded with Terminated"
        assert phases(document, OLD) == {
            "ready": document["start"],
            "cordoned": "2026-03-02T10:00:05.500Z",
            "draining": "2026-03-02T10:00:06Z",
            "settling": "2026-03-02T10:00:40Z",
            "terminated": "2026-03-02T10:01:20Z",
        }
        assert any("default/web-1 does not leave" in mark["text"] for mark in document["marks"])

    def test_an_arn_says_where_and_whose(self, report, system):
        terminate(system)
        report(f"{ARN}leeward-node-termination:{OLD}-1")
        assert system.asked_for == [(CLUSTER, "eu-west-1", "111122223333")]

    def test_json_names_page_and_record(self, leeward, system, tmp_path):
        terminate(system)
        page, kept = tmp_path / "p.html", tmp_path / "r.json"
        arguments = ("report", f"{OLD}-1", "--to", page, "--record", kept, "--cluster", CLUSTER, "--now", NOW)
        found = leeward(*arguments, "-o", "json").json
        jsonschema.validate(found, json.loads(Path("docs/schema/report.json").read_text()))
        assert found == {"report": str(page), "record": str(kept), "nodes": 1, "workloads": 0, "marks": 6}

    def test_what_was_written_is_drawn_again_to_the_same_page(self, report, system, leeward, tmp_path):
        terminate(system)
        report(f"{OLD}-1")
        assert leeward("report", tmp_path / "record.json", "--to", tmp_path / "again.html").code == 0
        assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()

    def test_a_secret_in_what_steps_pass_on_is_on_no_page_and_in_no_record(self, report, system, tmp_path):
        """Whatever input a person has started it with, and whatever a record carries from step to step."""
        terminate(system)
        container = {"name": "main", "env": [{"name": "TOKEN", "value": SECRET}], "args": [f"--password={SECRET}"]}
        pod = {"metadata": {"name": "web-1", "annotations": {"note": SECRET}}, "spec": {"containers": [container]}}
        carried = {"instance": OLD, "attempt": 1, "record": {"pods": [pod]}, "webhook": {"secret": SECRET}}
        execution = replace(an_execution(), given=carried)
        system.past.put(execution, *(replace(step, output={**carried, **step.output}) for step in a_story()))
        document = report(f"{OLD}-1")
        assert any("default/web-1 does not leave" in mark["text"] for mark in document["marks"])
        assert [path.name for path in tmp_path.iterdir() if SECRET in path.read_text()] == []

    def test_a_running_one_is_drawn_up_to_now(self, report, system):
        subject = a_subject(OLD, node=f"node-{OLD}")
        cause = Cause(id="manual#1", kind=CauseKind.MANUAL, at=TEN)
        system.claims.claim(subject, cause, TEN)
        steps = [a_step("Drain", 5, 10, next="wait", why=BLOCKED), a_step("WaitForPods", 10)]
        system.past.put(an_execution(stopped=None), *steps)
        document = report(f"{OLD}-1")
        assert document["end"] == NOW
        assert "still running, drawn up to 2026-03-02T10:30:00Z, in WaitForPods" in document["about"]

    def test_without_its_record_its_history_is_drawn_and_that_is_said(self, report, system):
        system.past.put(an_execution(), *a_story())
        document = report(f"{OLD}-1")
        assert phases(document, OLD)["draining"] == "2026-03-02T10:00:05Z"
        assert document["notes"][0].startswith(f"{OLD} has no termination record")

    def test_an_earlier_attempt_is_drawn_by_its_own_history(self, report, system):
        terminate(system)
        system.claims.claim(a_subject(OLD), Cause(id="later", kind=CauseKind.MANUAL, at=at(900)), at(900))
        document = report(f"{OLD}-1")
        assert phases(document, OLD)["draining"] == "2026-03-02T10:00:05Z"
        assert "is of attempt 2 by now" in document["notes"][0]

    def test_a_node_launched_just_before_it_was_in_service_from_its_own_ready_event(self, report, system):
        """Addresses are given out again, and with them the names of nodes: an Event may be of an earlier one."""
        terminate(system)
        system.instances.known[OLD] = replace(an_instance(OLD), launched=at(-2))
        system.kubernetes.raw_events = [
            {
                "metadata": {"name": f"e{seconds}", "creationTimestamp": format_instant(at(seconds))},
                "involvedObject": {"kind": "Node", "name": f"node-{OLD}"},
                "reason": "NodeReady",
                "source": {"component": "kubelet"},
            }
            for seconds in (-900, 1)
        ]
        drawn = phases(report(f"{OLD}-1"), OLD)
        assert (drawn["launching"], drawn["ready"]) == ("2026-03-02T09:59:58Z", "2026-03-02T10:00:01Z")

    def test_a_launch_just_before_it_is_found_in_the_groups_history(self, report, system):
        terminate(system, group=GROUP)
        system.groups.history.append((GROUP, ScalingActivity(at=at(-2), cause="", enters=OLD, ended=at(2))))
        document = report(f"{OLD}-1")
        drawn = phases(document, OLD)
        assert (drawn["launching"], drawn["ready"]) == ("2026-03-02T09:59:58Z", "2026-03-02T10:00:02Z")
        assert document["notes"][0].startswith(f"When node-{OLD} became Ready is no longer recorded")


class TestWhatCannotBeDrawn:
    def test_an_execution_that_is_not_there_or_not_any_more(self, refused):
        said = refused("i-0123456789abcdef0-1")
        assert said.startswith("found neither a file nor an execution 'i-0123456789abcdef0-1' of leeward-node-term")
        assert "in the last 90 days" in said

    @pytest.mark.parametrize("arn", [f"{ARN}billing:x", "arn:aws:s3:::bucket", f"{ARN}leeward-node-termination"])
    def test_an_arn_of_something_else(self, refused, system, arn):
        assert "expected the ARN of an execution of leeward-node-termination, leeward-node-group" in refused(arn)
        assert system.asked_for == []

    def test_a_name_of_two_state_machines(self, refused, system):
        system.past.put(an_execution(Machine.UPGRADE, "blue-3-1"))
        system.past.put(an_execution(Machine.DISRUPTION, "blue-3-1"))
        said = refused("blue-3-1")
        assert said == (
            "found 'blue-3-1' to be an execution of leeward-node-group-upgrade and of leeward-disruption, "
            "expected the ARN of one of them"
        )

    def test_one_of_another_cluster(self, refused, system):
        terminate(system, cluster="green")
        assert refused(f"{OLD}-1") == f"--cluster: found 'blue', expected 'green', the cluster of execution {OLD}-1"

    def test_another_region_than_the_arns(self, refused):
        said = refused(f"{ARN}leeward-node-termination:{OLD}-1", "--region", "us-east-1")
        assert said == "--region: found us-east-1, expected eu-west-1 as in the ARN, or none"

    def test_without_a_cluster(self, leeward, system, tmp_path):
        said = leeward.refuses("report", f"{OLD}-1", "--to", tmp_path / "x.html")
        assert said == (
            f"report: found no file '{OLD}-1' and no --cluster, expected the file of a run record, or an execution "
            "with --cluster NAME"
        )

    def test_a_denied_history_is_one_sentence_with_what_is_needed(self, leeward, system, tmp_path):
        terminate(system)
        system.past.fail("steps", AccessDeniedError("states:GetExecutionHistory on x: AccessDeniedException: no"))
        result = leeward("report", f"{OLD}-1", "--to", tmp_path / "x.html", "--cluster", CLUSTER)
        assert (result.code, result.out) == (1, "")
        assert result.err == (
            "leeward: states:GetExecutionHistory on x: AccessDeniedException: no; a report needs "
            "states:DescribeExecution and states:GetExecutionHistory on Leeward's state machines\n"
        )

    def test_anything_else_that_is_denied_makes_the_page_poorer_and_is_reported_there(self, report, system):
        terminate(system)
        system.claims.fail("read_all", AccessDeniedError("dynamodb:BatchGetItem on leeward: no"))
        system.instances.fail("describe", ThrottledError("ec2:DescribeInstances: slow down"))
        system.kubernetes.down = True
        document = report(f"{OLD}-1")
        assert phases(document, OLD)["draining"] == "2026-03-02T10:00:05Z"
        notes = " ".join(document["notes"])
        for said in (
            "the termination record (dynamodb:BatchGetItem",
            "EC2 instances (ec2:DescribeInstances",
            "Nodes of the cluster (the fake API is down)",
            "Events of the cluster (the fake API is down)",
        ):
            assert f"could not be read: {said}" in notes


def upgrade(system, **more):
    """Started at ten, ended after five minutes: OLD left, NEW came ahead of it."""
    cause = Cause(id=f"upgrade#{GROUP}#20260302T100000.1", kind=CauseKind.UPGRADE, at=at(50))
    terminate(system, cause=cause, begin=50)
    system.groups.history += [
        (GROUP, ScalingActivity(at=at(3), cause="", enters=NEW, ended=at(24))),
        (GROUP, ScalingActivity(at=at(112), cause="", leaves=OLD, ended=at(140))),
    ]
    system.instances.known[NEW] = replace(system.instances.known[NEW], launched=at(4))
    system.upgrades.records[GROUP] = an_upgrade(**{"ended": at(300), **more})
    steps = [
        a_step("LaunchSurge", 2, 5, next="wait", why=f"new nodes ahead of the drains: {NEW}", attempt=1),
        a_step("CordonOldNodes", 27, 30, next="cordoned", why="cordoned 1 nodes", attempt=1),
    ]
    system.past.put(an_execution(Machine.UPGRADE, f"{GROUP}-1", stopped=300), *steps)


class TestAnUpgrade:
    def test_its_old_and_its_new_nodes_are_drawn(self, report, system):
        upgrade(system)
        system.kubernetes.raw_events = [
            {
                "metadata": {"name": "e", "creationTimestamp": "2026-03-02T10:00:21Z"},
                "involvedObject": {"kind": "Node", "name": f"node-{NEW}"},
                "reason": reason,
                "source": {"component": "kubelet"},
            }
            for reason in ("NodeReady", "Starting")
        ]
        system.kubernetes.raw[Listed.NODES] = [
            {
                "metadata": {"name": f"node-{NEW}", "creationTimestamp": "2026-03-02T10:00:19Z"},
                "spec": {"providerID": f"aws:///us-east-1a/{NEW}"},
            }
        ]
        document = report(f"{GROUP}-1")
        assert phases(document, OLD) == {
            "ready": document["start"],
            "cordoned": "2026-03-02T10:00:30Z",
            "draining": "2026-03-02T10:00:56Z",
            "settling": "2026-03-02T10:01:30Z",
            "terminated": "2026-03-02T10:02:10Z",
        }
        assert phases(document, NEW) == {"launching": "2026-03-02T10:00:03Z", "ready": "2026-03-02T10:00:21Z"}
        assert any("does not leave" in mark["text"] and mark["node"] == f"node-{OLD}" for mark in document["marks"])

    def test_a_later_upgrade_of_the_group_has_taken_its_record(self, report, system):
        upgrade(system, began=at(9000), ended=None)
        document = report(f"{GROUP}-1")
        assert {lane["instance"] for lane in document["nodes"]} == {OLD, NEW}
        assert (
            document["notes"][0]
            == f"The record of {GROUP} is of another upgrade: its nodes are those of the group's history."
        )

    def test_nodes_that_came_after_its_end_are_not_drawn(self, report, system):
        upgrade(system)
        system.instances.known[NEW] = replace(system.instances.known[NEW], launched=at(4000))
        system.groups.history[0] = (GROUP, ScalingActivity(at=at(3999), cause="", enters=NEW))
        assert {lane["instance"] for lane in report(f"{GROUP}-1")["nodes"]} == {OLD}

    def test_a_week_later_its_groups_history_is_all_there_is(self, report, system):
        upgrade(system)
        system.claims.records.clear()
        system.past.histories.pop((Machine.TERMINATION, f"{OLD}-1"))
        document = report(f"{GROUP}-1")
        assert phases(document, OLD) == {"terminated": "2026-03-02T10:02:20Z"}
        assert document["notes"][0].startswith("Of the nodes that left 1 have no termination record")

    def test_of_very_many_terminations_not_every_history_is_read(self, report, system, monkeypatch):
        monkeypatch.setattr(live, "MOST_HISTORIES", 0)
        upgrade(system)
        assert "Blocking pods and budgets are drawn for 0 of 1 node." in report(f"{GROUP}-1")["notes"]


class TestARound:
    def test_its_nodes_are_those_of_its_record(self, report, system):
        record = replace(a_disruption(), cluster=CLUSTER)
        system.disruptions.records[CLUSTER] = record
        name = f"{CLUSTER}-{record.number}-1"
        given = {"cluster": CLUSTER, "disruption": record.number}
        steps = [a_step("TaintNodes", 1, 2, next="launch", why="tainted 3 nodes")]
        system.past.put(an_execution(Machine.DISRUPTION, name, given=given), *steps)
        document = report(name)
        assert [lane["instance"] for lane in document["nodes"]] == [*record.nodes.values(), *record.launched]

    def test_when_a_later_round_has_its_record_its_nodes_are_found_by_their_terminations(self, report, system):
        system.disruptions.records[CLUSTER] = replace(a_disruption(), cluster=CLUSTER, number=9)
        cause = Cause(id=f"disruption#{CLUSTER}#7#{OLD}", kind=CauseKind.EMPTY, at=at(2))
        terminate(system, cause=cause)
        system.groups.history += [
            (GROUP, ScalingActivity(at=at(62), cause="", leaves=OLD, ended=at(80))),
            (GROUP, ScalingActivity(at=at(63), cause="", leaves="i-0stranger0", ended=at(80))),
        ]
        given = {"cluster": CLUSTER, "disruption": 7}
        system.past.put(
            an_execution(Machine.DISRUPTION, f"{CLUSTER}-7-1", given=given, status=ExecutionStatus.SUCCEEDED)
        )
        document = report(f"{CLUSTER}-7-1")
        assert [lane["instance"] for lane in document["nodes"]] == [OLD]
        assert "has made way for that of a later one" in document["notes"][0]
