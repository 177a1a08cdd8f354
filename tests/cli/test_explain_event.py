"""`leeward inspect explain-event` as its users run it: real parsing, real files, JSON held against its schema."""

import io
import json
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.main import main
from leeward.errors import ThrottledError
from leeward.interruption.decision import NodeAction, RecordOutcome
from leeward.model.message import MessageKind
from leeward.model.termination import Cause, CauseKind
from tests.events import FOLDER, NAMES, event
from tests.fakes.builders import GROUP, a_group, a_node, a_subject, an_instance, our_hook
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/explain-event.json").read_text())
KEYS = ["kind", "instances", "action", "at", "deadline", "hook", "unavailable", "execution", "outcome", "reason"]
NOW = "2026-03-02T10:05:00Z"
POLICY = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web}
spec:
  selector: {groups: ["web-*"]}
  interruption: {hooks: [wait-for-node]}
"""


@pytest.fixture
def explain(tmp_path, capsys):
    """`explain(body, …, "--flag")`: bodies go into files; answers with the JSON."""

    def run(*bodies, options=()):
        files = []
        for number, body in enumerate(bodies):
            files.append(tmp_path / f"body-{number}.json")
            files[-1].write_text(body)
        code = main(["inspect", "explain-event", *map(str, files), "-o", "json", "--now", NOW, *options])
        assert code == 0
        document = json.loads(capsys.readouterr().out)
        jsonschema.validate(document, SCHEMA)
        return document

    return run


@pytest.fixture
def snapshot(tmp_path):
    """A folder of raw tool output; `snapshot(nodes=…)` replaces a file's content, None leaves it out."""

    def write(**changes):
        files = {
            "nodes": {"items": [raw_node()]},
            "instances": {"Reservations": [{"Instances": [raw_instance()]}]},
            "auto-scaling-groups": {"AutoScalingGroups": [raw_group()]},
            "lifecycle-hooks": {"LifecycleHooks": [raw_hook(), raw_hook("wait-for-node", "LAUNCHING", 600)]},
        }
        files.update({name.replace("_", "-"): content for name, content in changes.items() if name != "policy"})
        folder = tmp_path / "snapshot"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            if content is not None:
                (folder / f"{name}.json").write_text(json.dumps(content))
        (folder / "policy.yaml").write_text(changes.get("policy", POLICY))
        return ["--snapshot", str(folder)]

    return write


def raw_node(ready="True"):
    return {
        "metadata": {"name": "ip-10-0-1-7.ec2.internal", "uid": "u1"},
        "spec": {"providerID": "aws:///us-east-1a/i-0abc"},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def raw_instance(state="running"):
    return {
        "InstanceId": "i-0abc",
        "InstanceType": "m5.large",
        "State": {"Name": state},
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "InstanceLifecycle": "spot",
        "Tags": [{"Key": "aws:autoscaling:groupName", "Value": "web-a"}],
        "LaunchTime": "2026-03-01T08:00:00+00:00",
    }


def raw_group(**changes):
    return {"AutoScalingGroupName": "web-a", "MinSize": 0, "MaxSize": 5, "DesiredCapacity": 1, "Tags": [], **changes}


def raw_hook(name="leeward-terminate", transition="TERMINATING", timeout=300):
    return {
        "LifecycleHookName": name,
        "AutoScalingGroupName": "web-a",
        "LifecycleTransition": f"autoscaling:EC2_INSTANCE_{transition}",
        "HeartbeatTimeout": timeout,
        "NotificationMetadata": "leeward.dev/v1" if name == "leeward-terminate" else None,
    }


def test_a_spot_warning_with_a_snapshot(explain, snapshot):
    assert explain(event("spot_interruption"), options=snapshot()) == {
        "kind": "spot_interruption",
        "instances": ["i-0abc"],
        "action": "drain",
        "at": "2026-03-02T10:00:00Z",
        "deadline": "2026-03-02T10:02:00Z",
        "hook": None,
        "unavailable": {"instanceType": "m5.large", "zone": "us-east-1a", "capacityType": "spot"},
        "execution": {"i-0abc": "i-0abc-1"},
        "outcome": "done",
        "reason": "i-0abc: EC2 takes the spot instance two minutes after the warning",
    }


def test_a_terminate_hook_with_a_snapshot(explain, snapshot):
    document = explain(event("asg_terminate"), options=snapshot())
    assert document["deadline"] == "2026-03-02T10:05:00Z"
    assert document["hook"] == {
        "AutoScalingGroupName": "web-a",
        "LifecycleHookName": "leeward-terminate",
        "LifecycleActionToken": "87654321-4321-4321-4321-210987654321",
        "InstanceId": "i-0abc",
        "LifecycleActionResult": "CONTINUE",
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("looked_up", [True, False])
def test_every_golden_event_gives_every_key_in_order(explain, snapshot, name, looked_up):
    document = explain(event(name), options=snapshot() if looked_up else ())
    assert list(document) == KEYS
    assert document["outcome"] == "done"


@pytest.mark.parametrize(
    ("ready", "instances", "result"),
    [
        ("True", [raw_instance()], "CONTINUE"),
        ("False", [raw_instance()], None),
        ("True", [raw_instance("terminated")], "ABANDON"),
    ],
)
def test_a_launch_hook_waits_for_the_node(explain, snapshot, ready, instances, result):
    options = snapshot(nodes={"items": [raw_node(ready)]}, instances={"Reservations": [{"Instances": instances}]})
    document = explain(event("asg_launch"), options=options)
    assert (document["action"], document["outcome"], document["deadline"]) == ("none", "done", None)
    assert (document["hook"] or {}).get("LifecycleActionResult") == result


def test_an_unknown_instance_of_a_selected_group_has_its_hook_answered(explain, snapshot):
    document = explain(event("asg_terminate"), options=snapshot(instances=None, nodes=None))
    assert (document["action"], document["outcome"], document["execution"]) == ("none", "done", {})
    assert document["hook"]["LifecycleActionResult"] == "CONTINUE"


def test_a_group_of_no_policy_keeps_its_hook_unless_it_reported_us_directly(explain, snapshot):
    options = snapshot(policy=POLICY.replace("web-*", "batch-*"))
    through_events, directly = explain(event("asg_terminate"), event("asg_terminate_direct"), options=options)
    assert (through_events["action"], through_events["hook"]) == ("none", None)
    assert "no policy selects" in through_events["reason"]
    assert directly["hook"]["LifecycleActionResult"] == "CONTINUE"


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({}, "replace"),
        ({"auto_scaling_groups": {"AutoScalingGroups": [raw_group(CapacityRebalance=True)]}}, "none"),
        ({"policy": POLICY.replace("{hooks", "{rebalanceRecommendation: cordon, hooks")}, "cordon"),
        ({"policy": POLICY.replace("{hooks", "{rebalanceRecommendation: ignore, hooks")}, "none"),
    ],
)
def test_the_policy_decides_about_a_rebalance_recommendation(explain, snapshot, changes, action):
    document = explain(event("rebalance_recommendation"), options=snapshot(**changes))
    assert document["action"] == action
    assert document["execution"] == ({"i-0abc": "i-0abc-1"} if action == "replace" else {})


def test_without_a_snapshot_it_says_what_it_assumes(explain):
    document = explain(event("asg_terminate"))
    assert (document["action"], document["deadline"], document["unavailable"]) == ("drain", None, None)
    assert document["hook"]["LifecycleActionResult"] == "CONTINUE"
    assert "no snapshot" in document["reason"]


@pytest.mark.parametrize("options", [["--account", "999900001111"], ["--region", "eu-west-1"]])
def test_another_account_or_region_is_none_of_ours(explain, options):
    document = explain(event("asg_terminate"), options=options)
    assert (document["kind"], document["action"], document["hook"]) == ("asg_terminate", "none", None)
    assert document["outcome"] == "done"


def test_our_own_account_and_region_are(explain):
    options = ["--account", "111122223333", "--region", "us-east-1"]
    assert explain(event("scheduled_change"), options=options)["action"] == "drain"


@pytest.mark.parametrize("body", ["", "nonsense", "[1]", event("spot_interruption", detail={}), "\ufeff", "\ufffd"])
def test_a_malformed_body_is_an_answer_too(explain, body):
    document = explain(body)
    assert (document["kind"], document["instances"], document["action"]) == (None, [], "none")
    assert (document["outcome"], document["at"], document["execution"]) == ("malformed", NOW, {})


def test_a_byte_order_mark_is_not_malformed(explain):
    assert explain("\ufeff" + event("spot_interruption"))["kind"] == "spot_interruption"


def test_several_files_give_an_array_in_order(explain):
    documents = explain(event("asg_launch"), "nonsense", event("spot_interruption"))
    assert [document["kind"] for document in documents] == ["asg_launch", None, "spot_interruption"]


def test_the_time_is_now_where_the_event_has_none(explain):
    document = explain(event("spot_interruption", time="whenever"))
    assert (document["at"], document["deadline"]) == (NOW, "2026-03-02T10:07:00Z")


def test_a_zonal_shift_drains_nothing_and_reads_the_shifts_of_the_clusters(explain):
    document = explain(event("zonal_shift"))
    assert (document["kind"], document["action"], document["instances"]) == ("zonal_shift", "none", [])
    assert document["outcome"] == "done"
    assert document["reason"].startswith("zonal shift away from use1-az1 (autoshift) is in effect")


def test_a_capacity_reservation_that_is_taken_back_drains_within_two_minutes(explain):
    document = explain(event("capacity_reservation"))
    assert (document["kind"], document["action"]) == ("capacity_reservation", "drain")
    assert document["deadline"] == "2026-03-02T10:02:00Z"
    assert document["execution"] == {"i-0abc": "i-0abc-1"}


def test_the_instances_of_a_capacity_block_that_ends_are_not_known_without_a_snapshot(explain):
    document = explain(event("capacity_block"))
    assert (document["kind"], document["instances"], document["action"]) == ("capacity_block", [], "drain")
    assert document["deadline"] == "2026-03-02T10:10:00Z"
    assert "which they are is not known" in document["reason"]


def test_a_capacity_block_that_ends_drains_the_instances_that_the_folder_shows_in_it(explain, snapshot):
    reserved = {"Reservations": [{"Instances": [{**raw_instance(), "CapacityReservationId": "cr-0abc"}]}]}
    document = explain(event("capacity_block"), options=snapshot(instances=reserved))
    assert (document["instances"], document["action"]) == (["i-0abc"], "drain")
    assert document["execution"] == {"i-0abc": "i-0abc-1"}
    assert document["reason"] == "i-0abc: its Capacity Block cr-0abc ends at 2026-03-02T10:40:00Z"


def test_an_ended_execution_has_a_kind_of_its_own(explain):
    document = explain(event("execution_aborted"))
    assert (document["kind"], document["action"], document["outcome"]) == ("execution_ended", "none", "done")


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(event("state_change").encode())))
    assert main(["inspect", "explain-event", "-", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "state_change"


def test_a_missing_file_is_bad_input_in_one_message(capsys):
    assert main(["inspect", "explain-event", "no/such/file.json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "no/such/file.json: found no readable file" in captured.err


def test_bytes_that_are_no_text_are_malformed(tmp_path, capsys):
    file = tmp_path / "bytes"
    file.write_bytes(b"\xff\xfe\x00")
    assert main(["inspect", "explain-event", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "malformed"


@pytest.mark.parametrize("output", ["table", "yaml"])
def test_people_and_yaml_get_the_same_verdict(capsys, output):
    assert (
        main(
            ["inspect", "explain-event", str(FOLDER / "asg_terminate.json"), str(FOLDER / "unknown.json"), "-o", output]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "asg_terminate" in printed
    assert "noop" in printed


class TestLive:
    @pytest.fixture
    def system(self, monkeypatch):
        made = FakeSystem(
            instances=[an_instance()], groups=[a_group(GROUP, "i-0abc")], hooks=[our_hook()], nodes=[a_node()]
        )
        monkeypatch.setattr("leeward.adapters.wiring.command_line_ports", lambda *_: made.ports)
        return made

    def test_the_world_is_looked_up_and_nothing_is_done(self, explain, system):
        system.groups.begin_terminating(GROUP, "i-0abc")
        document = explain(event("asg_terminate"), options=["--cluster", "blue"])
        assert (document["action"], document["deadline"]) == ("drain", "2026-03-02T10:05:00Z")
        assert system.claims.records == {}
        assert not system.kubernetes.by_name["node-i-0abc"].tainted

    def test_the_execution_is_the_attempt_that_the_table_holds(self, explain, system):
        options = ["--cluster", "blue"]
        explain(event("spot_interruption"), options=options)
        manual = Cause(id="manual", kind=CauseKind.MANUAL, at=system.clock.now())
        system.claims.claim(a_subject(), manual, system.clock.now())
        system.claims.begin_attempt("i-0abc", 1)
        assert explain(event("spot_interruption"), options=options)["execution"] == {"i-0abc": "i-0abc-2"}

    def test_the_account_is_checked_where_it_is_given(self, explain, system):
        options = ["--cluster", "blue", "--account", "999900001111"]
        assert explain(event("spot_interruption"), options=options)["action"] == "none"
        assert system.instances.asked["describe"] == 0

    def test_a_lookup_that_fails_is_a_retry(self, explain, system):
        system.instances.fail("describe", ThrottledError("slow down"))
        document = explain(event("rebalance_recommendation"), options=["--cluster", "blue"])
        assert (document["kind"], document["outcome"], document["action"]) == (
            "rebalance_recommendation",
            "retry",
            "none",
        )


def test_the_schema_lists_the_closed_sets_of_the_code():
    properties = SCHEMA["$defs"]["explanation"]["properties"]
    assert set(properties["kind"]["enum"]) == {*(kind.value for kind in MessageKind), None}
    assert set(properties["action"]["enum"]) == {action.value for action in NodeAction}
    assert set(properties["outcome"]["enum"]) == {outcome.value for outcome in RecordOutcome}
    assert list(properties) == [*KEYS, "warnings"]
    assert SCHEMA["$defs"]["explanation"]["required"] == KEYS
