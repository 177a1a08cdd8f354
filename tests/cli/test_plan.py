"""`leeward plan`, `leeward inspect budget` and `leeward drift` as their users run them."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.disruption import (
    POLICY,
    a_disruption_snapshot,
    a_group,
    a_node,
    a_pod,
    a_template,
    an_instance,
)
from tests.cli.snapshots.placement import items

COMMANDS = {"budget": ("inspect", "budget")}  # by the name of its schema; others are named like it
SCHEMAS = {verb: json.loads(Path(f"docs/schema/{verb}.json").read_text()) for verb in ("plan", "budget", "drift")}


@pytest.fixture
def ask(leeward, tmp_path):
    def run(verb, *arguments, **files):
        snapshot = a_disruption_snapshot(tmp_path, **files)
        result = leeward(*COMMANDS.get(verb, (verb,)), "--snapshot", snapshot, "--now", NOON, *arguments, "-o", "json")
        assert (result.code, result.err) == (0, "")
        jsonschema.validate(result.json, SCHEMAS[verb])
        return result.json

    return run


@pytest.mark.parametrize("verb", SCHEMAS)
def test_the_schemas_are_some(verb):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[verb])


def test_three_half_empty_nodes_become_one_cheaper_node(ask):
    found = ask("plan")
    (command,) = found["commands"]
    assert found["method"] == "consolidation"
    assert (command["decision"], command["nodes"]) == ("replace", ["n1", "n2", "n3"])
    assert command["replacements"] == [
        {
            "group": "batch",
            "instanceTypes": ["m5.large"],
            "zones": ["us-east-1a"],
            "capacityType": "on-demand",
            "pricePerHour": 0.096,
        }
    ]
    assert command["savingsPerHour"] == pytest.approx(0.48)
    assert command["disruptionCost"] == 3


def test_every_node_says_of_every_method_why_it_stays(ask):
    held = a_pod("p0", "n1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    found = ask("plan", pods=items(held, a_pod("p1", "n2"), a_pod("p2", "n3")))
    assert found["commands"][0]["nodes"] == ["n2", "n3"]
    verdicts = {node["node"]: node["verdicts"] for node in found["nodes"]}
    assert [one["method"] for one in verdicts["n1"]] == ["expiration", "drift", "emptiness", "consolidation"]
    assert verdicts["n1"][3] == {
        "method": "consolidation",
        "candidate": False,
        "reason": "pod shop/p0 opts out of disruption (karpenter.sh/do-not-disrupt)",
    }


def test_one_method_can_be_asked_for_alone(ask):
    found = ask("plan", "--method", "emptiness")
    assert (found["method"], found["commands"]) == ("emptiness", [])


def test_without_prices_deletions_are_planned_and_their_savings_are_not_known(ask):
    (command,) = ask("plan", prices={"on-demand": {}})["commands"]
    assert (command["decision"], command["savingsPerHour"]) == ("delete", None)


def test_the_table_shows_savings_and_reasons(leeward, tmp_path):
    reported = leeward("plan", "--snapshot", a_disruption_snapshot(tmp_path), "--now", NOON).out
    assert "after consolidation: 1 node, $70.08 a month ($350.40 less)" in reported
    assert "batch(m5.large)" in reported
    assert "launched in us-east-1a" in reported


def test_a_balanced_policy_shows_the_score_of_its_command(ask, leeward, tmp_path):
    balanced = POLICY.replace("disruption: {", "disruption: {consolidationPolicy: Balanced, ")
    (command,) = ask("plan", policy=balanced)["commands"]
    assert command["score"] == pytest.approx(0.8333)  # 0.48 of 0.576 dollars for all of the disruption
    assert "(score 0.83: 83.3% of the cost of policy all for 100.0% of its disruption)" in command["reason"]
    snapshot = a_disruption_snapshot(tmp_path, policy=balanced)
    assert "0.83" in leeward("plan", "--snapshot", snapshot, "--now", NOON, "-o", "wide").out
    assert ask("plan")["commands"][0]["score"] is None


def test_what_a_cheaper_type_would_save_that_no_group_launches_is_shown(ask, leeward, tmp_path):
    files = {
        "auto_scaling_groups": {"AutoScalingGroups": [a_group("web", "lt-web", "n1")]},
        "nodes": items(a_node("n1")),
        "pods": items(a_pod("p1", "n1")),
    }
    assert ask("plan", **files)["summary"]["cheaperTypesPerMonth"] == pytest.approx(0.096 * 730)
    reported = leeward("plan", "--snapshot", a_disruption_snapshot(tmp_path, **files), "--now", NOON).out
    assert "cheaper instance types could save $70.08 a month, if groups launched them" in reported


def test_the_summary_counts_nodes_and_dollars_a_month(ask):
    summary = ask("plan")["summary"]
    assert summary["nodes"] == {"now": 3, "after": 1}
    assert summary["pricePerMonth"] == {"now": pytest.approx(3 * 0.192 * 730), "after": pytest.approx(0.096 * 730)}
    assert ask("plan", prices={"on-demand": {}})["summary"]["pricePerMonth"] == {"now": None, "after": None}


def test_the_summary_groups_the_nodes_that_one_budget_blocks(leeward, ask, tmp_path):
    pods = [a_pod(f"p{number}", f"n{number}", labels={"app": "api"}) for number in (1, 2, 3)]
    budget = {
        "metadata": {"namespace": "shop", "name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}},
        "status": {"disruptionsAllowed": 0},
    }
    files = {"pods": items(*pods), "pdbs": items(budget)}
    (cause,) = ask("plan", **files)["summary"]["notConsidered"]
    assert (cause["object"], cause["nodes"]) == ("pdb shop/api", ["n1", "n2", "n3"])
    reported = leeward("plan", "--snapshot", a_disruption_snapshot(tmp_path, **files), "--now", NOON).out
    assert "3 nodes blocked by pdb shop/api\n" in reported
    assert "prevents pod evictions" not in reported


def test_every_node_has_group_type_zone_price_and_use(ask):
    node = ask("plan")["nodes"][0]
    node.pop("verdicts")
    assert node == {
        "node": "n1",
        "group": "web",
        "instanceType": "m5.xlarge",
        "zone": "us-east-1a",
        "capacityType": "on-demand",
        "pricePerHour": 0.192,
        "cpu": {"requested": 0.5, "allocatable": 3.92},
        "memory": {"requested": 2**30, "allocatable": 14 * 2**30},
    }


def test_pods_are_shown_where_they_go(leeward, ask, tmp_path):
    (command,) = ask("plan")["commands"]
    assert [entry["pod"] for entry in command["placements"]] == ["shop/p0", "shop/p1", "shop/p2"]
    snapshot = a_disruption_snapshot(tmp_path)
    assert "shop/p0" in leeward("plan", "--snapshot", snapshot, "--now", NOON, "--pods").out
    assert "shop/p0" not in leeward("plan", "--snapshot", snapshot, "--now", NOON).out


def test_verdicts_are_shown_on_request(leeward, tmp_path):
    plan = ("plan", "--snapshot", a_disruption_snapshot(tmp_path), "--now", NOON)
    assert "do not expire" not in leeward(*plan).out
    assert "nodes of policy all do not expire" in leeward(*plan, "--verbose").out


@pytest.mark.parametrize(
    ("method", "rules"),
    [
        ("consolidation", "consolidationPolicy: Never, drift: false"),
        ("consolidation", "consolidateAfter: Never, drift: false"),
        ("drift", "consolidationPolicy: Never, drift: false"),
        ("expiration", "consolidationPolicy: Never, drift: false"),
    ],
)
def test_a_method_that_is_off_is_planned_as_if_it_were_on(ask, method, rules):
    files = {"policy": POLICY.replace("consolidateAfter: 0s", rules)}
    if method == "drift":
        templates = [a_template("lt-web", "m5.xlarge", image="ami-2"), a_template("lt-batch", "m5.large")]
        files["launch_template_versions"] = {"LaunchTemplateVersions": templates}
    if method == "expiration":
        created = "2024-03-01T08:00:00Z"
        files["nodes"] = items(*(a_node(name, creationTimestamp=created) for name in ("n1", "n2", "n3")))
    assert ask("plan", **files)["commands"] == []
    found = ask("plan", "--what-if", method, **files)
    assert found["method"] == method
    assert found["commands"]


def test_filters_choose_the_nodes_that_are_listed(ask):
    def names(document):
        return [entry["node"] for entry in document["nodes"]]

    labels = a_node("n1")["metadata"]["labels"]
    nodes = items(a_node("n1", labels=labels | {"team": "web"}), a_node("n2"), a_node("n3"))
    for verb in ("plan", "drift"):
        assert names(ask(verb, "--group", "web", nodes=nodes)) == ["n1", "n2", "n3"]
        assert names(ask(verb, "--group", "batch", nodes=nodes)) == []
        assert names(ask(verb, "-l", "team=web", nodes=nodes)) == ["n1"]
        assert names(ask(verb, "-l", "!team", "--group", "web", nodes=nodes)) == ["n2", "n3"]
    assert ask("plan", "-l", "team=web", nodes=nodes)["summary"]["nodes"]["now"] == 1
    assert ask("plan", "--group", "batch", nodes=nodes)["commands"] == []


def test_a_group_that_does_not_exist_is_bad_input(leeward, tmp_path):
    snapshot = a_disruption_snapshot(tmp_path)
    for verb in ("plan", "drift", "blockers"):
        assert "found no group 'wbe'" in leeward.refuses(verb, "--snapshot", snapshot, "--group", "wbe")


def test_without_a_policy_a_warning_says_that_nothing_is_selected(leeward, tmp_path):
    snapshot = a_disruption_snapshot(tmp_path)
    (snapshot / "policy.yaml").unlink()
    result = leeward("plan", "--snapshot", snapshot, "--now", NOON)
    assert result.code == 0
    assert "nothing to do" in result.out
    assert result.err.startswith("leeward: warning: policy.yaml is missing: no group is selected, so nothing is")


def test_an_earlier_plan_is_checked_again(leeward, ask, tmp_path):
    earlier = tmp_path / "plan.json"
    earlier.write_text(json.dumps(ask("plan")))
    (command,) = json.loads(earlier.read_text())["commands"]
    assert ask("plan", "--validate", earlier)["commands"] == [command | {"placements": []}]
    grown = items(a_pod("p0", "n1", cpu="1500m"), a_pod("p1", "n2", cpu="1500m"), a_pod("p2", "n3", cpu="1500m"))
    later = ask("plan", "--validate", earlier, pods=grown)
    assert (later["method"], later["commands"]) == ("consolidation", [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "document: found no such file, expected one plan, the output of: leeward plan -o json"),
        ("{", "expected JSON, the output of: leeward plan -o json"),
        ("{}", "commands: found nothing, expected a value (the output of: leeward plan -o json)"),
        ('{"method": "magic", "commands": []}', 'method: found "magic", expected one of expiration, drift'),
        ('{"commands": [{"decision": "delete", "nodes": []}]}', "commands[0].nodes: found an empty list, expected at"),
        ('{"commands": [{"decision": "delete", "nodes": ["n1"]}]}', "method: found nothing, expected the method of"),
        (
            '{"method": "drift", "commands": [{"decision": "replace", "nodes": ["n1"]}]}',
            "commands[0].replacements: found nothing, expected at least one",
        ),
    ],
)
def test_what_is_no_plan_is_refused(leeward, tmp_path, content, message):
    path = tmp_path / "earlier.json"
    if content is not None:
        path.write_text(content)
    snapshot = a_disruption_snapshot(tmp_path)
    assert message in leeward.refuses("plan", "--snapshot", snapshot, "--validate", path)


@pytest.mark.parametrize("verb", SCHEMAS)
def test_without_a_snapshot_or_a_cluster_nothing_is_guessed(leeward, verb):
    assert f"{verb}: found n" in leeward.refuses(*COMMANDS.get(verb, (verb,)))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"prices": {"on-demand": {"m5.large": "expensive"}}}, 'prices.json: on-demand["m5.large"]: found "expensive"'),
        (
            {"pods": items(a_pod("p", "n1", cpu="many"))},
            'pods.json: items[0].spec.containers[0].resources.requests.cpu: found "many", expected a quantity',
        ),
        ({"nodes": items({"kind": "Node", "metadata": {}})}, "nodes.json: items[0].metadata.name: found nothing"),
    ],
)
def test_bad_files_are_named(leeward, tmp_path, files, message):
    assert message in leeward.refuses("plan", "--snapshot", a_disruption_snapshot(tmp_path, **files))


def failing(name, since):
    return {
        "InstanceId": f"i-{name}",
        "SystemStatus": {"Status": "ok"},
        "InstanceStatus": {"Status": "impaired", "Details": [{"Name": "reachability", "ImpairedSince": since}]},
    }


def test_unhealthy_nodes_are_a_plan_of_their_own_and_no_method_of_a_round(ask, tmp_path):
    status = {"InstanceStatuses": [failing("n2", "2024-05-01T11:00:00Z"), {"InstanceId": "i-n1"}]}
    found = ask("plan", "--method", "unhealthy", instance_status=status)
    assert (found["method"], [command["nodes"] for command in found["commands"]]) == ("unhealthy", [["n2"]])
    assert found["commands"][0]["replacements"][0]["group"] == "web"
    assert {len(node["verdicts"]) for node in found["nodes"]} == {1}
    well = {"InstanceStatuses": []}
    assert ask("plan", "--method", "unhealthy", instance_status=well)["commands"] == []
    assert ask("plan", instance_status=status)["method"] == "consolidation"
    earlier = tmp_path / "plan.json"
    earlier.write_text(json.dumps(found))
    assert ask("plan", "--validate", earlier, instance_status=well)["commands"] == []
    again = ask("plan", "--validate", earlier, instance_status=status)
    assert (again["commands"], again["nodes"]) == (found["commands"], found["nodes"])


def test_an_unreadable_status_is_named(leeward, tmp_path):
    status = {"InstanceStatuses": [failing("n2", "lately")]}
    snapshot = a_disruption_snapshot(tmp_path, instance_status=status)
    result = leeward("plan", "--snapshot", snapshot, "--now", NOON, "--method", "unhealthy")
    assert (result.code, "instance-status.json" in result.err, "ImpairedSince" in result.err) == (2, True, True)


def test_budgets_of_every_reason_are_reported(ask):
    policy = POLICY.replace('[{nodes: "100%"}]', "[{nodes: 1}, {nodes: 5, zone: us-east-1a, reasons: [Upgrade]}]")
    tainted = a_node("n1") | {
        "spec": {
            "providerID": "aws:///us-east-1a/i-n1",
            "taints": [{"key": "leeward.dev/disrupted", "effect": "NoSchedule"}],
        }
    }
    found = ask("budget", policy=policy, nodes=items(tainted, a_node("n2"), a_node("n3")))["budgets"]
    rows = {(one["reason"], one["zone"]): (one["allowed"], one["disrupting"], one["total"]) for one in found}
    assert rows["Empty", None] == (0, 1, 3)
    assert rows["Upgrade", None] == (None, 1, 3)
    assert rows["Upgrade", "us-east-1a"] == (4, 1, 3)
    assert {reason for reason, _ in rows} == {"Empty", "Drifted", "Underutilized", "Expired", "Upgrade"}


def test_the_budget_table_says_no_limit(leeward, tmp_path):
    reported = leeward("inspect", "budget", "--snapshot", a_disruption_snapshot(tmp_path), "--now", NOON).out
    assert "no limit" in reported
    assert "Underutilized" in reported


def test_drift_shows_all_fields_with_have_and_want(ask):
    templates = [a_template("lt-web", "m5.xlarge", image="ami-2"), a_template("lt-batch", "m5.large")]
    instances = [an_instance("n1"), an_instance("n2", ImageId="ami-2"), an_instance("n3", SubnetId="subnet-z")]
    found = ask(
        "drift",
        launch_template_versions={"LaunchTemplateVersions": templates},
        instances={"Reservations": [{"Instances": instances}]},
    )
    n1, n2, n3 = found["nodes"]
    ami = {"field": "ami", "class": "dynamic", "have": "ami-1", "want": "ami-2", "fixable": True, "proof": None}
    assert n1 == {
        "node": "n1",
        "group": "web",
        "drifted": True,
        "since": NOON,
        "remedy": "replace",
        "notJudged": None,
        "reasons": [ami],
    }
    in_order = {"drifted": False, "since": None, "remedy": "none", "notJudged": None, "reasons": []}
    assert n2 == {"node": "n2", "group": "web", **in_order}
    assert [one["field"] for one in n3["reasons"]] == ["ami", "subnets"]


def test_static_fields_are_read_from_the_version_that_a_node_came_from(ask):
    old, new = a_template("lt-web", "m5.xlarge"), a_template("lt-web", "m5.xlarge", version=2)
    new["DefaultVersion"] = False
    new["LaunchTemplateData"] |= {
        "UserData": "IyEvYmluL2Jhc2gK",
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 80}}],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
        "Monitoring": {"Enabled": True},
        "IamInstanceProfile": {"Name": "nodes"},
        "SecurityGroupIds": ["sg-2"],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "web"}]}],
    }
    instance = an_instance(
        "n1",
        SecurityGroups=[{"GroupId": "sg-1"}],
        IamInstanceProfile={"Arn": "arn:aws:iam::1:instance-profile/old"},
        MetadataOptions={"HttpTokens": "optional", "HttpPutResponseHopLimit": 2, "State": "applied"},
        Monitoring={"State": "disabled"},
    )
    group = a_group("web", "lt-web", "n1")
    group["Instances"][0]["LaunchTemplate"] = {"LaunchTemplateId": "lt-web", "Version": "1"}
    (node,) = ask(
        "drift",
        nodes=items(a_node("n1")),
        pods=items(),
        auto_scaling_groups={"AutoScalingGroups": [group]},
        launch_template_versions={"LaunchTemplateVersions": [old, new]},
        instances={"Reservations": [{"Instances": [instance]}]},
    )["nodes"]
    assert [one["field"] for one in node["reasons"]] == [
        "securityGroups",
        "userData",
        "instanceProfile",
        "tags",
        "metadataOptions",
        "blockDevices",
        "detailedMonitoring",
    ]
    assert node["remedy"] == "replace"
    assert {"have": "HttpTokens=optional", "want": "HttpTokens=required"}.items() <= node["reasons"][4].items()


def test_the_drift_table_counts(leeward, tmp_path):
    reported = leeward("drift", "--snapshot", a_disruption_snapshot(tmp_path), "--now", NOON).out
    assert reported.startswith("0 of 3 nodes drifted")
