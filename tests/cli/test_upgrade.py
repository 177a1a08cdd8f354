"""`leeward upgrade plan|status` as its users run it, offline."""

import json
from pathlib import Path

import jsonschema
import pytest

from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.status import UpgradePhase
from tests.cli.command import NOON
from tests.cli.snapshots.upgrade import (
    TYPES,
    a_group,
    a_node,
    a_pdb,
    a_pod,
    an_upgrade_snapshot,
    templates,
)

SCHEMAS = {name: json.loads(Path(f"docs/schema/upgrade-{name}.json").read_text()) for name in ("plan", "status")}
MANAGED = [{"Key": "eks:cluster-name", "Value": "prod"}, {"Key": "eks:nodegroup-name", "Value": "ng"}]


@pytest.fixture
def plan(leeward, tmp_path):
    def run(*arguments, code=0, **files):
        snapshot = an_upgrade_snapshot(tmp_path, **files)
        result = leeward("upgrade", "plan", "web", *arguments, "--snapshot", snapshot, "--now", NOON, "-o", "json")
        assert (result.code, result.err) == (code, "")
        jsonschema.validate(result.json, SCHEMAS["plan"])
        return result.json

    return run


@pytest.fixture
def status(leeward, tmp_path):
    def run(*arguments, **files):
        snapshot = an_upgrade_snapshot(tmp_path, **files)
        result = leeward("upgrade", "status", "web", *arguments, "--snapshot", snapshot, "--now", NOON, "-o", "json")
        assert (result.code, result.err) == (0, "")
        jsonschema.validate(result.json, SCHEMAS["status"])
        return result.json

    return run


@pytest.fixture
def refuses(leeward, tmp_path):
    def run(*arguments, **files):
        return leeward.refuses("upgrade", *arguments, "--snapshot", an_upgrade_snapshot(tmp_path, **files))

    return run


def names(document):
    return [name for wave in document["waves"] for name in wave]


def codes(document):
    return [(one["code"], one["severity"]) for one in document["findings"]]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_ones_and_name_the_closed_sets(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    properties = SCHEMAS[name]["properties"]
    reported = (
        properties["phase"]["enum"]
        if name == "status"
        else properties["findings"]["items"]["properties"]["code"]["enum"]
    )
    assert reported == [one.value for one in (UpgradePhase if name == "status" else Code)]


def test_a_plan_in_order_says_everything_and_exits_0(plan):
    found = plan()
    assert sorted(names(found)) == [f"node-{number}" for number in range(6)]
    assert found | {"waves": []} == {
        "group": "web",
        "strategy": "DEFAULT",
        "parallel": 1,
        "surge": 6,
        "sizes": {
            "desired": {"before": 6, "during": 12, "after": 6},
            "max": {"before": 12, "during": 18, "after": 12},
        },
        "waves": [],
        "durationSeconds": 90 + 6 * (30 + 20) + 60 + 60,
        "surgeCost": round(6 * 0.096 * 510 / 3600, 4),
        "findings": [],
    }


def test_the_budget_keeps_nodes_apart_that_max_unavailable_would_take_together(plan):
    assert [len(wave) for wave in plan(update="{maxUnavailable: 3}")["waves"]] == [1] * 6
    apart = [a_pod(f"web-{number}", number, app=f"web-{number}") for number in range(6)]
    assert [len(wave) for wave in plan(update="{maxUnavailable: 3}", pods=apart)["waves"]] == [3, 3]


@pytest.mark.parametrize(
    ("update", "parallel", "surge"),
    [
        ("{maxUnavailable: 20}", 20, 20),
        ("{maxUnavailablePercentage: 33}", 2, 6),
        ("{maxUnavailable: 2, strategy: MINIMAL}", 2, 0),
        ("{maxUnavailable: 2, strategy: INCREMENTAL}", 2, 3),
    ],
)
def test_parallelism_and_surge_follow_the_policy(plan, update, parallel, surge):
    found = plan(update=update)
    assert (found["parallel"], found["surge"]) == (parallel, surge)


def test_only_nodes_of_an_older_template_version_are_planned(plan):
    nodes = [a_node(number, version=1 + number % 2) for number in range(6)]
    assert sorted(names(plan(nodes=nodes))) == ["node-0", "node-2", "node-4"]


def test_a_group_on_its_target_has_nothing_to_do(plan):
    found = plan(nodes=[a_node(number, version=2) for number in range(3)])
    assert found["waves"] == []
    assert (found["durationSeconds"], found["surgeCost"]) == (0, 0)
    assert found["sizes"]["desired"] == {"before": 3, "during": 3, "after": 3}
    assert codes(found) == [("NothingToUpgrade", "warning")]


def test_the_target_may_be_named(plan):
    nodes = [a_node(number, version=1 + number % 2) for number in range(6)]
    assert sorted(names(plan("--launch-template-version", "1", nodes=nodes))) == [
        "node-1",
        "node-3",
        "node-5",
    ]
    assert len(names(plan("--ami", "ami-0123456789abcdef0", nodes=nodes))) == 6
    assert len(names(plan("--ami", "ami-00000000000000002", nodes=nodes))) == 3
    assert len(names(plan("--kubernetes-version", "1.30", nodes=nodes))) == 6


def test_a_blocker_exits_1_unless_its_code_is_overridden(plan):
    never = {"pdbs": {"items": [a_pdb(allowed=0, maxUnavailable=0)]}}
    found = plan(code=1, **never)
    assert codes(found) == [("PdbNeverAllows", "blocker")]
    assert found["findings"][0]["object"] == "pdb shop/web"
    assert codes(plan("--override", "PdbNeverAllows", **never)) == [("PdbNeverAllows", "blocker")]
    plan("--override", "SeveralPdbs", code=1, **never)
    assert codes(plan("--force", **never)) == [("PdbNeverAllows", "warning")]


def test_pods_that_nothing_can_host_on_the_new_template_are_blockers(plan):
    pods = [a_pod("huge", 0, app="huge", cpu="1900m"), a_pod("web-1", 1)]
    smaller = templates({}, {"InstanceType": "t3.nano"})
    found = plan(code=1, pods=pods, launch_template_versions=smaller)
    assert ("PodsFitNowhere", "blocker") in codes(found)
    assert "Insufficient memory" in found["findings"][0]["message"]


def test_pods_beyond_the_limits_of_planning_are_a_warning(plan):
    """They are evicted like any others, so their author blocks no upgrade."""
    pods = [a_pod("web-1", 0), a_pod("web-2", 1)]
    for pod in pods:
        pod["spec"]["tolerations"] = [{"key": f"k{number}", "operator": "Exists"} for number in range(65)]
    found = plan(pods=pods)
    assert codes(found) == [("PodsBeyondLimits", "warning")]
    assert "65 tolerations, more than the 64 that planning reads (and 1 more)" in found["findings"][0]["message"]


def test_pods_that_need_more_nodes_than_before_are_a_warning(plan):
    """1,800 m of cpu stay on a node of 1,930 m; with a second pod the smaller new type needs two nodes."""
    pods = [
        a_pod(f"half-{number}-{n}", number, app=f"half-{number}-{n}", cpu="900m") for number in range(6) for n in (1, 2)
    ]
    large = next(kind for kind in TYPES["InstanceTypes"] if kind["InstanceType"] == "m5.large")
    small = {**large, "VCpuInfo": {**large["VCpuInfo"], "DefaultVCpus": 1}}
    found = plan(pods=pods, instance_types={"InstanceTypes": [small]})
    assert codes(found) == [("MoreNodesNeeded", "warning")]


def test_a_zone_without_addresses_for_a_new_node_is_a_blocker(plan):
    assert codes(plan(code=1, free=5)) == [("ZoneWithoutAddresses", "blocker")] * 3


def test_the_control_planes_version_comes_from_describe_cluster(plan):
    unread = ("NotJudged", "warning")  # whether EKS has an image of that version
    assert codes(plan("--kubernetes-version", "1.31")) == [("ControlPlaneUnknown", "warning"), unread]
    cluster = {"cluster": {"name": "prod", "version": "1.30"}}
    known = {"cluster": cluster, "images": {"Images": []}}
    assert codes(plan("--kubernetes-version", "1.31", code=1, **known)) == [("KubeletNewer", "blocker"), unread]


def test_suspended_processes_are_read_from_the_group(plan):
    nodes = [a_node(number) for number in range(3)]
    group = a_group(nodes, SuspendedProcesses=[{"ProcessName": "Launch"}], MaxInstanceLifetime=86400)
    found = plan(code=1, nodes=nodes, auto_scaling_groups={"AutoScalingGroups": [group]})
    assert codes(found) == [("SuspendedProcesses", "blocker"), ("MaxInstanceLifetime", "warning")]


def test_without_a_policy_the_defaults_are_taken_and_an_unselected_group_is_a_blocker(plan, leeward, tmp_path):
    assert codes(plan(policy=None)) == [("NotSelected", "warning")]
    other = "apiVersion: leeward.dev/v1\nkind: NodePolicy\nmetadata: {name: x}\nspec: {selector: {groups: [x]}}\n"
    assert codes(plan(code=1, policy=other)) == [("NotSelected", "blocker")]


def test_a_seed_decides_the_random_order(plan):
    found = {json.dumps(plan("--seed", seed, update="{order: random}")["waves"]) for seed in (1, 1, 2, 3)}
    assert len(found) == 3


@pytest.mark.parametrize(
    ("update", "blocked"), [("{}", True), ('{imageOwners: ["999988887777"]}', False)], ids=["unknown", "trusted"]
)
def test_the_owner_of_an_image_comes_from_describe_images(plan, update, blocked):
    files = {
        "images": {"Images": [{"ImageId": "ami-00000000000000002", "OwnerId": "999988887777"}]},
        "cluster": {"cluster": {"name": "prod", "arn": "arn:aws:eks:us-east-1:111122223333:cluster/prod"}},
        "update": update,
    }
    found = codes(plan("--launch-template-version", "2", code=int(blocked), **files))
    assert (("ForeignImage", "blocker") in found) == blocked
    named = codes(plan("--ami", "ami-00000000000000002", code=int(blocked), **files))
    assert (("ForeignImage", "blocker") in named) == blocked


def test_an_image_that_the_folder_lacks_is_named_and_not_taken_as_missing(plan):
    cluster = {"cluster": {"name": "prod", "arn": "arn:aws:eks:us-east-1:111122223333:cluster/prod"}}
    found = codes(plan("--ami", "ami-00000000000000009", images={"Images": []}, cluster=cluster))
    assert ("NotJudged", "warning") in found
    assert "ImageNotFound" not in {code for code, _ in found}


def test_a_managed_group_is_judged_by_its_record_and_an_image_is_eks_choice(plan):
    nodes = [a_node(number) for number in range(3)]
    files = {
        "nodes": nodes,
        "group": {"Tags": MANAGED},
        "nodegroups": [
            {"nodegroup": {"nodegroupName": "ng", "clusterName": "prod", "amiType": "AL2023_x86_64_STANDARD"}}
        ],
    }
    assert len(plan(**files)["waves"]) == 3
    assert ("ManagedImage", "blocker") in codes(plan("--ami", "ami-0123456789abcdef0", code=1, **files))


def test_a_managed_group_is_planned_without_a_version_of_its_own_as_eks_chooses_the_image(plan, leeward, tmp_path):
    """As live: which image EKS would choose is not known, so all nodes are old. A folder that lacks the node group says
    so."""
    nodes = [a_node(0), a_node(1, version=2), a_node(2, version=2)]
    group = {"Tags": MANAGED}
    nodegroup = {"nodegroup": {"nodegroupName": "ng", "clusterName": "prod", "amiType": "AL2023_x86_64_STANDARD"}}
    assert len(names(plan(nodes=nodes, group=group, nodegroups=[nodegroup]))) == 3
    (tmp_path / "nodegroups.json").unlink()
    result = leeward("upgrade", "plan", "web", "--snapshot", tmp_path, "--now", NOON, "-o", "json")
    assert (len(names(result.json)), result.code) == (3, 0)
    assert "nodegroups.json does not hold it" in result.err


def test_a_recorded_plan_is_live_alone(refuses):
    assert "it is live alone" in refuses("plan", "web", "--recorded")


# --- status ------------------------------------------------------------------------------------------------------


def test_status_before_the_start(status):
    assert status() == {
        "phase": "not-started",
        "gate": {
            "pass": False,
            "missing": [f"us-east-1{zone}: there are old nodes and no new one" for zone in "abc"],
        },
        "nodes": {"old": 6, "new": 0, "draining": 0, "failed": 0},
        "blockers": [],
        "step": None,
        "eta": None,
    }


def test_status_passes_the_gate_with_ready_new_nodes_in_the_zones_of_old_ones(status):
    nodes = [a_node(0, cordoned=True), a_node(1, cordoned=True), a_node(3, version=2), a_node(4, version=2)]
    found = status(nodes=nodes)
    assert (found["phase"], found["gate"]) == ("upgrading", {"pass": True, "missing": []})
    assert found["nodes"] == {"old": 2, "new": 2, "draining": 0, "failed": 0}
    assert found["eta"] > NOON


def test_status_names_what_blocks_a_draining_node(status):
    nodes = [a_node(0, disrupted=True), a_node(3, version=2)]
    pods = [a_pod("web-0", 0)]
    found = status(nodes=nodes, pods=pods, pdbs={"items": [a_pdb(allowed=0)]})
    assert found["nodes"]["draining"] == 1
    assert [(one["node"], one["pod"], one["object"]) for one in found["blockers"]] == [
        ("node-0", "shop/web-0", "pdb shop/web")
    ]


def test_status_of_a_managed_group_wants_eks_labels_on_new_nodes(status):
    labels = {"eks.amazonaws.com/nodegroup": "ng", "eks.amazonaws.com/nodegroup-image": "ami-00000000000000002"}
    nodes = [a_node(0), a_node(3, version=2, labels=labels), a_node(6, version=2)]
    missing = status(nodes=nodes, group={"Tags": MANAGED})["gate"]["missing"]
    assert len(missing) == 1
    assert missing[0].startswith("node-6: without the labels eks.amazonaws.com/nodegroup=ng")


def test_people_see_the_plan_and_the_status_as_tables(leeward, tmp_path):
    snapshot = an_upgrade_snapshot(tmp_path, pdbs={"items": [a_pdb(allowed=0, maxUnavailable=0)]})
    offline = ("--snapshot", snapshot, "--now", NOON)
    shown = leeward("upgrade", "plan", "web", *offline)
    assert shown.code == 1
    assert "upgrade of web: 6 nodes to replace" in shown.out
    assert "Blocked by PdbNeverAllows: fix it, or let it pass with --override CODE." in shown.out
    assert "web: not-started" in leeward("upgrade", "status", "web", *offline).out


# --- bad input ---------------------------------------------------------------------------------------------------


def test_an_unknown_group_is_reported_with_those_that_are_there(refuses):
    assert "found no group 'wbe', expected one of its groups: web" in refuses("plan", "wbe")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "web", "--ami", "ami-XYZ"), "argument --ami: found 'ami-XYZ', expected an image id"),
        (("plan", "web", "--launch-template-version", "two"), "found 'two', expected a version number"),
        (("plan", "web", "--launch-template-version", "9"), "found no version 9 of lt-1, expected one of 1, 2"),
        (("plan", "web", "--kubernetes-version", "v1.31"), "found 'v1.31', expected a Kubernetes version such as 1.31"),
        (
            ("plan", "web", "--override", "Nothing"),
            "argument --override: found 'Nothing', expected one of PdbNeverAllows",
        ),
        (
            ("plan", "web", "--ami", "al2023@1.31", "--kubernetes-version", "1.31"),
            "found --ami and --kubernetes-version, expected one of them at most",
        ),
        (("flip", "web"), "found 'flip', expected one of plan, status"),
        (("plan",), "found nothing, expected GROUP"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(refuses, arguments, message):
    assert message in refuses(*arguments)


@pytest.mark.parametrize("update", ["{maxUnavailable: 0}", "{maxUnavailable: 101}", "{maxUnavailablePercentage: 0}"])
def test_maxima_outside_one_to_a_hundred_are_bad_input(refuses, update):
    assert "policy.yaml" in refuses("plan", "web", update=update)


def test_without_a_snapshot_it_says_what_it_wants(leeward):
    reported = leeward.refuses("upgrade", "plan", "web")
    expected = "found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"
    assert reported == f"upgrade plan: {expected}"
