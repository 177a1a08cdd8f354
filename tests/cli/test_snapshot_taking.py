"""`leeward snapshot`: the folder answers what the cluster answered, holds no other owner's objects and no secret."""

import json
import stat
from base64 import b64encode
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.adapters.folder.files import FILES, read_elements
from leeward.adapters.folder.policy_files import load_policies
from leeward.capture import documents
from leeward.cli.snapshot import SnapshotProgress
from leeward.errors import AccessDeniedError, ClusterUnreachableError, ObjectGoneError
from leeward.ports.kubernetes import Listed
from tests.cli.command import NOON
from tests.cli.snapshots.live_world import POLICIES, SECRET, LiveWorld, text_of

SCHEMA = json.loads(Path("docs/schema/snapshot.json").read_text())
LIVE = ("--cluster", "blue")
DENIED = "UnauthorizedOperation: You are not authorized to perform this operation"


@pytest.fixture
def world(monkeypatch):
    found = LiveWorld()
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.system.ports)
    monkeypatch.setattr(wiring, "command_line_raw", lambda *_: found.aws)
    return found


@pytest.fixture
def snapshot(leeward, world, tmp_path):
    """Take it: (document, standard error, folder)."""

    def run(to=tmp_path / "cluster", code=0):
        result = leeward("snapshot", "--to", to, *LIVE, "--now", NOON, "-o", "json")
        assert result.code == code, result.err
        jsonschema.validate(result.json, SCHEMA)
        return result.json, result.err, to

    return run


def names(folder, name, key):
    return [one[key] for one in read_elements(folder, FILES[name])]


def test_the_schema_is_one_and_knows_every_file():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]["file"]["enum"]) == {*(f"{name}.json" for name in FILES), "policy.yaml"}


def test_every_file_that_offline_commands_read_has_its_output():
    assert {*documents.KUBERNETES, *documents.AWS} == set(FILES)
    assert not documents.KUBERNETES.keys() & documents.AWS.keys()


def test_every_file_is_written_and_counted(snapshot):
    reported, err, folder = snapshot()
    assert (reported["missing"], err) == ([], "")
    assert set(reported["files"]) == {path.name for path in folder.iterdir()} == set(SCHEMA["$defs"]["file"]["enum"])
    counted = {name: len(list(read_elements(folder, FILES[name]))) for name in FILES}
    counted["prices"] = 3  # types with a price on demand
    assert reported["files"] == {**{f"{name}.json": count for name, count in counted.items()}, "policy.yaml": 2}
    assert (counted["nodes"], counted["pods"], counted["instances"]) == (4, 4, 4)


@pytest.mark.parametrize(
    "verb",
    [
        ("plan",),
        *(("plan", "--method", method) for method in ("consolidation", "drift", "emptiness", "expiration")),
        ("plan", "--method", "unhealthy"),
        ("drift",),
        ("inspect", "budget"),
        ("blockers",),
        ("inspect", "zones"),
        ("inspect", "place", "web", "--count", 2, "--pods", 3),
        *(("inspect", "template", name) for name in ("web", "batch", "eks-workers")),
        *(("drain", name, "--dry-run") for name in ("n2", "m1")),
    ],
    ids=lambda verb: " ".join(map(str, verb)),
)
def test_offline_says_what_live_says(leeward, snapshot, verb):
    _, _, folder = snapshot()
    asked = (*verb, "--now", NOON, "-o", "json")
    live, offline = leeward(*asked, *LIVE), leeward(*asked, "--snapshot", folder)
    assert (offline.code, offline.err) == (live.code, live.err)
    assert reported_of_the_cluster(offline.json) == reported_of_the_cluster(live.json)


def reported_of_the_cluster(document):
    """Without what is of a deployment: when fn sync wrote down what was used."""
    return {key: value for key, value in document.items() if key != "facts"}


def test_the_world_is_worth_comparing(leeward, snapshot):
    """Each of the answers compared above says something."""
    _, _, folder = snapshot()
    ask = lambda *verb: leeward(*verb, "--snapshot", folder, "--now", NOON, "-o", "json").json  # noqa: E731
    assert {one["reasons"][0]["field"] for one in ask("drift")["nodes"] if one["drifted"]} == {"ami"}
    assert {one["kind"] for one in ask("blockers")["blockers"]} >= {"pdb-never", "do-not-disrupt"}
    assert ask("plan", "--method", "unhealthy")["commands"][0]["nodes"] == ["n3"]
    assert "3" in {env["value"] for env in variables(folder)["aws-node"]}


def variables(folder):
    (cni,) = read_elements(folder, FILES["daemonsets"])
    return {one["name"]: one.get("env") for one in cni["spec"]["template"]["spec"]["containers"]}


def test_what_is_of_other_clusters_stays_out(snapshot):
    _, _, folder = snapshot()
    assert names(folder, "auto-scaling-groups", "AutoScalingGroupName") == ["web", "batch", "eks-workers"]
    assert names(folder, "lifecycle-hooks", "AutoScalingGroupName") == ["web", "batch"]
    assert names(folder, "instances", "InstanceId") == ["i-n1", "i-n2", "i-n3", "i-m1"]
    assert names(folder, "instance-status", "InstanceId") == ["i-n3"]
    assert names(folder, "instance-types", "InstanceType") == ["m5.large", "m5.xlarge", "c5.large"]
    assert "green" not in text_of(folder)


def test_versions_are_those_that_groups_launch_and_those_that_members_came_from(snapshot):
    """Version 1 of lt-web is used by no instance; 2 is the members', 3 the default, 4 the latest."""
    _, _, folder = snapshot()
    versions = list(read_elements(folder, FILES["launch-template-versions"]))
    found = [(one["LaunchTemplateId"], one["VersionNumber"]) for one in versions]
    assert sorted(found) == [("lt-batch", 1), ("lt-eks", 1), ("lt-web", 2), ("lt-web", 3), ("lt-web", 4)]


def test_subnets_are_the_groups_and_those_that_the_cni_may_use(snapshot):
    _, _, folder = snapshot()
    assert sorted(names(folder, "subnets", "SubnetId")) == ["subnet-a", "subnet-b"]


def test_images_are_those_that_templates_and_configurations_name(snapshot):
    _, _, folder = snapshot()
    assert names(folder, "images", "ImageId") == ["ami-1"]


def test_no_secret_travels_and_the_cnis_settings_stay(snapshot):
    _, _, folder = snapshot()
    text = text_of(folder)
    assert SECRET not in text
    assert "managedFields" not in text
    assert variables(folder)["aws-node"] == [{"name": "WARM_IP_TARGET", "value": "3"}]
    pods = {one["metadata"]["name"]: one for one in read_elements(folder, FILES["pods"])}
    requests = {"cpu": "500m", "memory": "1Gi"}
    assert pods["p1"]["spec"]["containers"] == [{"name": "c", "resources": {"requests": requests}}]
    assert pods["p3"]["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}


def test_without_user_data_what_follows_from_it_is_said_to_be_unknown(leeward, world, tmp_path):
    secret = b64encode(f"#!/bin/sh\nexport TOKEN={SECRET}\n".encode()).decode()
    for raw in world.aws.holds["launch-template-versions"]:
        raw["LaunchTemplateData"]["UserData"] = secret
    for to, options in ((tmp_path / "whole", ()), (tmp_path / "without", ("--no-user-data",))):
        assert leeward("snapshot", "--to", to, *LIVE, "--now", NOON, *options).code == 0
    assert secret in text_of(tmp_path / "whole")
    assert secret not in text_of(tmp_path / "without")
    drift = leeward("drift", "--snapshot", tmp_path / "without", "--now", NOON)
    assert "launch-template-versions.json is without user data: what new nodes get from it, and drift" in drift.err
    template = leeward("inspect", "template", "web", "--snapshot", tmp_path / "without", "--now", NOON)
    assert "left out of the snapshot" in template.out + template.err


def test_only_its_owner_reads_what_was_written(snapshot):
    _, _, folder = snapshot()
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_kubernetes_files_are_lists_as_kubectl_prints_them(snapshot):
    _, _, folder = snapshot()
    document = json.loads((folder / "pdbs.json").read_text())
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    assert {(one["apiVersion"], one["kind"]) for one in document["items"]} == {("policy/v1", "PodDisruptionBudget")}


def test_the_policies_are_those_that_are_deployed(snapshot, world):
    _, _, folder = snapshot()
    assert load_policies([folder / "policy.yaml"], "blue") == world.system.clusters.policies_of["blue"]


def test_without_a_deployed_policy_an_earlier_one_goes(snapshot, world):
    _, _, folder = snapshot()
    world.aws.deployed = []
    reported, err, _ = snapshot()
    assert "policy.yaml" not in {*reported["files"], *(path.name for path in folder.iterdir())}
    assert "policy.yaml is not written: no policy is deployed" in err
    assert "stays" not in err


@pytest.mark.parametrize("denied", [False, True])
def test_a_policy_of_ones_own_is_never_taken_away(snapshot, world, tmp_path, denied):
    """Who tries Leeward on a cluster where it is not installed puts it there."""
    world.aws.deployed = []
    if denied:
        world.aws.fail("policies", AccessDeniedError("ssm:GetParametersByPath on /leeward/blue/policies: denied"))
    own = tmp_path / "policy.yaml"
    own.write_text(json.dumps(POLICIES[1]))
    reported, err, _ = snapshot(to=tmp_path, code=int(denied))
    assert "policy.yaml" not in reported["files"]
    assert "not written by Leeward and stays" in err
    assert json.loads(own.read_text()) == POLICIES[1]


def test_a_node_group_whose_call_fails_is_absent_and_named(snapshot, world):
    world.aws.fail("nodegroup", AccessDeniedError("eks:DescribeNodegroup on blue/workers: AccessDeniedException"))
    reported, err, folder = snapshot()
    assert reported["missing"] == []
    assert list(read_elements(folder, FILES["nodegroups"])) == []
    assert "nodegroups.json is without workers: eks:DescribeNodegroup on blue/workers: AccessDenied" in err


@pytest.mark.parametrize(
    ("method", "missing"),
    [
        ("subnets", {"subnets", "prices"}),
        ("instances", {"instances", "instance-status", "prices", "instance-types"}),
        ("impaired", {"instance-status"}),
        ("instance-types", {"instance-types"}),
        ("launch-configurations", {"launch-configurations", "images", "prices", "instance-types"}),
        ("hooks", {"lifecycle-hooks"}),
        ("template_versions", {"launch-template-versions", "images", "prices", "instance-types"}),
        ("images", {"images"}),
        ("policies", {"policy.yaml"}),
        (
            "groups_tagged",
            {
                *("auto-scaling-groups", "lifecycle-hooks", "launch-configurations", "launch-template-versions"),
                *("nodegroups", "subnets", "images", "prices", "instance-types"),
            },
        ),
    ],
)
def test_what_may_not_be_read_is_named_with_its_call_and_the_others_come(snapshot, world, method, missing):
    _, _, folder = snapshot()
    world.aws.fail(method, AccessDeniedError(f"ec2:TheCall on something: {DENIED}"))
    reported, err, _ = snapshot(code=1)
    expected = {name if "." in name else f"{name}.json" for name in missing}
    whys = {one["file"]: one["why"] for one in reported["missing"]}
    assert set(whys) == expected
    assert (
        set(reported["files"])
        == {path.name for path in folder.iterdir()}
        == set(SCHEMA["$defs"]["file"]["enum"]) - expected
    )
    denied = [name for name, why in whys.items() if "ec2:TheCall" in why]
    assert len(denied) == 1
    assert all("it follows from" in why for name, why in whys.items() if name not in denied)
    for name in expected:
        assert f"leeward: {name} (" in err
    assert "Traceback" not in err


def test_without_the_groups_the_nodes_still_name_their_instances(snapshot, world):
    world.aws.fail("groups_tagged", AccessDeniedError("autoscaling:DescribeAutoScalingGroups on blue: denied"))
    reported, err, _ = snapshot(code=1)
    assert reported["files"]["instances.json"] == 4
    assert "instances.json lacks what only auto-scaling-groups.json contains" in err


def test_a_list_that_is_not_allowed_is_left_out_and_the_others_come(snapshot, world):
    world.system.kubernetes.fail("read pods", AccessDeniedError("blue: not allowed to list pods (/api/v1/pods): no"))
    reported, err, folder = snapshot(code=1)
    assert [one["file"] for one in reported["missing"]] == ["pods.json"]
    assert "pods.json (kubectl get pods -A -o json) is left out: blue: not allowed to list pods" in err
    assert not (folder / "pods.json").exists()


def test_an_api_server_that_does_not_answer_is_asked_once(snapshot, world):
    world.system.kubernetes.fail("read nodes", ClusterUnreachableError("blue: list nodes: timed out"))
    reported, _, _ = snapshot(code=1)
    assert {one["file"] for one in reported["missing"]} == {f"{name}.json" for name in documents.KUBERNETES}
    assert {one["why"] for one in reported["missing"]} == {"blue: list nodes: timed out"}
    assert [name for name in world.system.kubernetes.asked if name.startswith("read ")] == ["read nodes"]
    assert reported["files"]["instances.json"] == 4  # the groups' members


def test_where_nothing_is_deployed_prices_come_from_the_price_list_and_nothing_is_said(snapshot, world):
    world.system.catalog.fail("read", ObjectGoneError("dynamodb:BatchGetItem on leeward: ResourceNotFoundException"))
    _, err, folder = snapshot()
    assert "prices.json" not in err
    assert json.loads((folder / "prices.json").read_text())["on-demand"]


def test_without_a_price_list_there_are_no_prices(snapshot, world):
    world.system.price_list.fail("on_demand", AccessDeniedError("pricing:GetProducts on m5.large: denied"))
    reported, err, folder = snapshot(code=1)
    assert [one["file"] for one in reported["missing"]] == ["prices.json"]
    assert "pricing:GetProducts" in err
    assert not (folder / "prices.json").exists()


def test_what_offline_commands_would_refuse_is_left_out(snapshot, world):
    """Else no command would run on the folder at all."""
    world.system.kubernetes.raw[Listed.NAMESPACES] = [{"metadata": {"name": ""}}]
    reported, _, folder = snapshot(code=1)
    assert [one["file"] for one in reported["missing"]] == ["namespaces.json"]
    assert "items[0].metadata.name: found ''" in reported["missing"][0]["why"].replace('"', "'")
    assert not (folder / "namespaces.json").exists()


def test_a_group_of_the_nodes_without_the_clusters_tag_is_named(snapshot, world):
    world.aws.holds["auto-scaling-groups"][0]["Tags"] = []
    reported, err, _ = snapshot()
    assert reported["files"]["auto-scaling-groups.json"] == 2
    assert "auto-scaling-groups.json is without web" in err


def test_a_folder_with_anything_else_in_it_is_refused_before_anything_is_asked(leeward, world, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "nodes.json").write_text("mine too")
    found = leeward.refuses("snapshot", "--to", tmp_path, *LIVE)
    assert "thesis.tex in it, expected a new folder" in found
    assert (tmp_path / "nodes.json").read_text() == "mine too"
    assert not world.aws.asked


def test_an_earlier_snapshot_is_replaced(snapshot, world):
    _, _, folder = snapshot()
    world.system.kubernetes.raw[Listed.PODS] = []
    reported, _, _ = snapshot()
    assert reported["files"]["pods.json"] == 0
    assert list(read_elements(folder, FILES["pods"])) == []


def test_an_empty_folder_and_hidden_files_are_no_obstacle(snapshot, tmp_path):
    (tmp_path / ".DS_Store").write_text("")
    reported, _, _ = snapshot(to=tmp_path)
    assert reported["missing"] == []


def test_a_file_where_a_folder_should_be_is_bad_input(leeward, world, tmp_path):
    (tmp_path / "file").write_text("")
    assert "expected a folder" in leeward.refuses("snapshot", "--to", tmp_path / "file", *LIVE)
    assert "expected a folder" in leeward.refuses("snapshot", "--to", tmp_path / "file" / "inner", *LIVE)


def test_a_cluster_that_is_not_there_is_bad_input_and_nothing_is_written(leeward, world, tmp_path):
    found = leeward.refuses("snapshot", "--to", tmp_path / "new", "--cluster", "red")
    assert "found no cluster 'red'" in found
    assert not (tmp_path / "new").exists()


def test_it_is_live_alone(leeward, tmp_path):
    assert "expected --cluster NAME" in leeward.refuses("snapshot", "--to", tmp_path)
    assert "it is live alone" in leeward.refuses("snapshot", "--to", tmp_path, "--snapshot", tmp_path)
    assert "--to" in leeward.refuses("snapshot", *LIVE)


def test_a_table_for_people_names_files_counts_and_what_is_missing(leeward, world, tmp_path):
    world.aws.fail("impaired", AccessDeniedError("ec2:DescribeInstanceStatus on system-status.status: denied"))
    result = leeward("snapshot", "--to", tmp_path / "new", *LIVE, "--now", NOON)
    assert result.code == 1
    assert "pods.json" in result.out
    assert "left out: instance-status.json: ec2:DescribeInstanceStatus" in result.out


def test_progress_is_asked_to_who_watches_and_when_it_takes_long(capsys):
    moment = [0.0]
    unwatched = SnapshotProgress(watched=False, clock=lambda: moment[0])
    unwatched.wrote("nodes.json", 4)
    assert capsys.readouterr().err == ""
    moment[0] = 5.0
    unwatched.wrote("pods.json", 9)
    SnapshotProgress(watched=True, clock=lambda: 0.0).wrote("nodes.json", 4)
    assert capsys.readouterr().err == "leeward: pods.json: 9\nleeward: nodes.json: 4\n"


def test_a_policy_that_cannot_be_read_says_so(snapshot, world):
    world.aws.fail("policies", ObjectGoneError("ssm:GetParametersByPath on /leeward/blue/policies: gone"))
    reported, _, _ = snapshot(code=1)
    assert [one["file"] for one in reported["missing"]] == ["policy.yaml"]
