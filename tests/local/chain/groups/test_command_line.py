"""The `leeward` command, live against the deployed local stack, with the caller's own credentials."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from leeward.model.times import format_instant
from local import fleet
from local.demo import ledger, scenario

pytestmark = pytest.mark.local
LOOKING = ("plan", "plan --method consolidation", "drift", "inspect budget", "blockers", "inspect zones")

SCHEMA = Draft202012Validator(json.loads(Path("docs/schema/run-record.json").read_text()))
CAUSE = "leeward-node-termination: succeeded with Terminated"


def test_a_drain_is_planned_live_then_done_and_then_drawn(stack, crew, leeward, tmp_path):
    team = crew(1)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("by-command", 2, grace=1), instance=victim)
    node = team.node_name(victim)
    code, out, err = leeward("drain", node, "--dry-run")
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert plan["then"] == "terminate"
    assert [pod["how"] for pod in plan["evict"]] == ["evict", "evict"]
    assert team.record(victim) is None

    code, out, _ = leeward("drain", node, "--yes")
    assert code == 0
    assert json.loads(out)["execution"] == f"{victim}-1"
    record = team.closed(victim)
    assert record.causes[0] == "manual"  # that its instance shuts down may still join
    assert record.evicted == 2

    page, kept = tmp_path / "page.html", tmp_path / "record.json"
    code, out, err = leeward("report", f"{victim}-1", "--to", str(page), "--record", str(kept))
    assert (code, err) == (0, "")
    document = json.loads(kept.read_text())
    SCHEMA.validate(document)
    (lane,) = document["nodes"]
    assert (lane["name"], lane["group"], document["about"]) == (node, team.group, f"{victim}-1 of {CAUSE}")
    begins = {span["phase"]: span["from"] for span in lane["spans"]}
    of_phase = {"cordoned": "tainted", "draining": "draining", "settling": "drained", "terminated": "terminated"}
    reported = {phase: format_instant(record.times[name]) for phase, name in of_phase.items()}
    # the mark comes after the first moment of draining, which then holds
    assert {phase: begins[phase] for phase in reported if phase in begins} == {
        phase: at for phase, at in reported.items() if phase in begins
    }
    assert {"ready", "draining", "settling", "terminated"} <= begins.keys()
    assert document["end"] >= lane["spans"][-1]["from"]
    assert any(mark["text"].startswith("manual: leeward drain") for mark in document["marks"])
    assert node in page.read_text()
    again = tmp_path / "again.html"
    assert leeward("report", str(kept), "--to", str(again))[0] == 0
    assert again.read_bytes() == page.read_bytes()
    assert document["headline"].startswith(f"{node} was drained on an operator's request. 2 pods moved in ")
    assert document["headline"].endswith("; none was killed.")


def test_a_node_drained_with_keep_stays_in_service_cordoned_and_without_pods(stack, crew, leeward):
    team = crew(1)
    kept = team.instances[0]
    node = team.node_name(kept)
    team.run_pods(fleet.deployment("moves", 1, grace=1), instance=kept)
    code, _, err = leeward("drain", node, "--keep", "--yes", "--wait=false")
    assert code == 0, err
    assert team.closed(kept).outcome == "kept"
    (group,) = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[team.group])[
        "AutoScalingGroups"
    ]
    assert [(one["InstanceId"], one["LifecycleState"]) for one in group["Instances"]] == [(kept, "InService")]
    spec = ledger.nodes(stack)[kept]["spec"]
    assert spec["unschedulable"]
    assert "leeward.dev/disrupted" not in {taint["key"] for taint in spec.get("taints") or ()}
    assert team.pods_on(node) == []
    stack.kubectl("uncordon", node)


def test_a_group_is_drained_past_its_budget_with_kubectls_flags_and_followed_to_the_end(stack, crew, leeward):
    """`--disable-eviction` reaches every step of every node's execution; without it nothing would leave. A drain
    without it is taken back before.
    """
    team = crew(2)
    first = team.instances[0]
    team.run_pods(fleet.deployment("by-group", 2, grace=30), fleet.budget("by-group", maxUnavailable=0), instance=first)
    code, out, err = leeward("blockers", team.node_name(first))
    (blocker, *_) = json.loads(out)["blockers"]
    assert (code, err, blocker["kind"], blocker["owner"]) == (0, "", "pdb-never", "Deployment/by-group")
    called_off(stack, leeward, team.node_name(first), first)
    flags = ("--disable-eviction", "--grace-period=1", "--wait", "--yes")
    code, out, err = leeward("drain", "--group", team.group, *flags)
    assert code == 0, err
    attempts = {name: 2 if name == first else 1 for name in team.instances}
    assert {plan["execution"] for plan in json.loads(out)} == {f"{name}-{number}" for name, number in attempts.items()}
    assert {how["how"] for plan in json.loads(out) for how in plan["evict"]} == {"delete"}
    assert sum(": gone, " in line for line in err.splitlines()) == 2
    for victim in team.instances:
        assert team.closed(victim).outcome == "terminated"
    stack.kubectl("delete", "pdb", "by-group")


def called_off(stack, leeward, node, instance):
    """A drain that a budget holds is started once, then taken back: the node is in service as it was before."""
    assert leeward("drain", node, "--yes", "--wait=false")[0] == 0
    code, out, err = leeward("drain", node, "--yes", "--wait=false")
    said = json.loads(out)
    assert (code, err, said["execution"]) == (0, "", f"{instance}-1")
    assert said["said"].startswith("runs already since ")
    code, out, err = leeward("drain", node, "--cancel", "--wait")
    assert (code, json.loads(out)["said"]) == (0, "drain cancelled, no pod had left"), err
    assert "in service again: leeward drain --cancel has taken the drain back" in err
    spec = ledger.nodes(stack)[instance]["spec"]
    assert "leeward.dev/disrupted" not in {taint["key"] for taint in spec.get("taints") or ()}
    assert not spec.get("unschedulable")
    assert ledger.executions(stack)[f"{instance}-1"] == "SUCCEEDED"
    code, out, _ = leeward("drain", node, "--cancel")
    assert (code, json.loads(out)["cancelled"]) == (0, True)


def test_a_message_is_explained_live(stack, crew, leeward):
    team = crew(1, spot=True)
    message = json.dumps(scenario.spot_warning(stack, team.instances[0]))
    code, out, err = leeward("inspect", "explain-event", "-", stdin=message)
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["action"], document["execution"]) == ("drain", {team.instances[0]: f"{team.instances[0]}-1"})
    assert document["unavailable"]["capacityType"] == "spot"


def test_a_user_without_access_gets_one_sentence(stack, crew, leeward):
    team = crew(1)
    arn = stack.client("sts").get_caller_identity()["Arn"]
    stack.client("eks").delete_access_entry(clusterName=stack.cluster, principalArn=arn)
    stack.take_over_access_entries()
    code, out, err = leeward("drain", team.node_name(team.instances[0]), "--dry-run")
    assert code == 1  # refused
    assert out == ""
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_what_an_uninstall_would_take_off_is_reported_and_a_cluster_that_is_not_paused_is_left(stack, crew, leeward):
    team = crew(1, name="kept", hook=True)
    node = team.node_name(team.instances[0])
    team.reconcile()
    for options in (("--dry-run",), ("--yes",)):
        code, out, err = leeward("uninstall", *options)
        assert (code, err) == (1, "")
        reported = json.loads(out)
        assert reported["done"] is False
        (removed,) = [one["removed"] for one in reported["nodes"] if one["node"] == node]
        assert "finalizer leeward.dev/termination" in removed
        assert {"group": team.group, "hook": "leeward-terminate"} in reported["hooks"]
        assert "paused" in reported["left"][0]["why"]
    assert "leeward.dev/termination" in stack.kubectl("get", "node", node, "-o", "jsonpath={.metadata.finalizers}")


def reported_of_the_cluster(text):
    """Without what live commands alone know: when fn sync wrote down what was used, quotas; and of zones without the
    sentence about addresses, which the CNI counts by its defaults offline, and not at all where it is not there live.
    """
    document = json.loads(text)
    zones = [{key: value for key, value in one.items() if key != "why"} for one in document.pop("zones", ())]
    findings = [one["code"] for one in document.pop("findings", ()) if one["severity"] == "blocker"]
    document.pop("facts", None)
    return document, zones, findings


def test_a_snapshot_answers_offline_what_the_cluster_answers_live(stack, crew, leeward, tmp_path):
    """One node is behind its group's image, one pod's budget allows no eviction, and its password is redacted."""
    team = crew(2, hook=True)
    workload = fleet.deployment("written", 2, grace=1)
    workload["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "not-for-files"}]
    team.run_pods(workload, fleet.budget("written", maxUnavailable=0), instance=team.instances[0])
    ec2 = stack.client("ec2")
    other = ec2.describe_images()["Images"][-1]["ImageId"]
    ec2.create_launch_template_version(
        LaunchTemplateName=team.group, SourceVersion="1", LaunchTemplateData={"ImageId": other}
    )
    team.until(lambda: "RUNNING" not in ledger.executions(stack).values(), "the end of what other tests began")
    folder = tmp_path / "cluster"
    code, out, err = leeward("snapshot", "--to", str(folder))
    assert code == 0, err
    written = json.loads(out)
    reported = {line.removeprefix("leeward: ").rpartition(": ")[0] for line in err.splitlines()}
    assert reported <= set(written["files"])  # progress, on a machine so busy that it takes seconds; no warning
    assert (set(written["files"]), written["missing"]) == ({path.name for path in folder.iterdir()}, [])
    assert not [path.name for path in folder.iterdir() if "not-for-files" in path.read_text()]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    answers = {}
    for verb in (*LOOKING, f"inspect template {team.group}", f"upgrade plan {team.group}"):
        live = leeward(*verb.split(), "--now", now)
        offline = leeward(*verb.split(), "--now", now, "--snapshot", str(folder))
        assert offline[0] == live[0], (live, offline)
        answers[verb] = reported_of_the_cluster(live[1])
        assert reported_of_the_cluster(offline[1]) == answers[verb], verb
    drifted = {one["node"]: one["reasons"] for one in answers["drift"][0]["nodes"]}
    assert [one["field"] for one in drifted[team.node_name(team.instances[0])]] == ["ami"]
    assert "Deployment/written" in {one["owner"] for one in answers["blockers"][0]["blockers"]}
    stack.kubectl("delete", "pdb,deployment", "written")
