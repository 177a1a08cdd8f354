import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command import NOON, SMALL, a_snapshot

SCHEMA = json.loads(Path("docs/schema/drain.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def drain(leeward):
    def run(*arguments, snapshot=SMALL):
        result = leeward("drain", *arguments, "--snapshot", snapshot, "--now", NOON, "-o", "json")
        if result.out:
            VALIDATOR.validate(result.json)
        return result

    return run


def pods(entries):
    return [entry["pod"] for entry in entries]


def evicted(document):
    return {entry["pod"]: entry for entry in document["evict"]}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_drain_shows_what_leaves_what_stays_and_what_refuses(drain):
    result = drain("node-a")
    assert result.code == 1
    assert result.json == {
        "node": "node-a",
        "deadline": None,
        "evict": [
            {"pod": "shop/db-0", "wave": 0, "how": "evict", "graceSeconds": None, "blockedBy": ["pdb shop/db"]},
            {"pod": "shop/web-1", "wave": 0, "how": "evict", "graceSeconds": None, "blockedBy": []},
            {"pod": "kube-system/coredns-1", "wave": 1, "how": "evict", "graceSeconds": None, "blockedBy": []},
        ],
        "leave": [
            {"pod": "kube-system/aws-node-x", "why": "pod of a DaemonSet: it ends with the node"},
            {"pod": "kube-system/etcd", "why": "static pod: it belongs to the kubelet and ends with the node"},
            {"pod": "shop/stuck", "why": "deleted, and 3600 s past its grace: it is not waited for"},
        ],
        "refuse": [
            {"pod": "shop/orphan-ds", "why": "its DaemonSet removed does not exist: nothing would start it again"}
        ],
        "volumes": [],
        "then": "wait",
    }


def test_waves_count_the_tiers_that_are_there(drain):
    waves = {pod: entry["wave"] for pod, entry in evicted(drain("node-a", "--force").json).items()}
    assert waves == {"shop/db-0": 0, "shop/web-1": 0, "shop/orphan-ds": 1, "kube-system/coredns-1": 2}


def test_a_node_whose_pods_may_all_go_is_terminated(drain):
    result = drain("node-b", "--force")
    assert (result.code, result.json["then"], result.json["refuse"]) == (0, "terminate", [])


def test_a_node_that_is_drained_alone_is_kept(drain):
    result = drain("node-b", "--force", "--keep")
    assert (result.code, result.json["then"]) == (0, "keep")
    assert drain("node-b", "--keep").json["then"] == "wait"  # a pod without a controller refuses first


def test_a_node_whose_instance_ec2_does_not_list_is_removed(drain):
    assert drain("node-gone").json["then"] == "remove-node"


def test_a_node_whose_instance_has_ended_is_removed(drain):
    assert drain("node-other").json["then"] == "remove-node"


def test_without_instances_a_missing_instance_is_not_noticed(drain, tmp_path):
    assert drain("node-gone", snapshot=a_snapshot(tmp_path, instances=None)).json["then"] == "terminate"


def test_a_node_that_is_not_on_ec2_is_not_gone(drain, tmp_path):
    nodes = json.loads((SMALL / "nodes.json").read_text())
    nodes["items"][2]["spec"] = {}
    nodes["items"][3]["spec"]["providerID"] = "aws:///us-east-1a/0f2c4d/fargate-ip-10-0-0-1"
    folder = a_snapshot(tmp_path, nodes=nodes)
    assert drain("node-gone", snapshot=folder).json["then"] == "terminate"
    assert drain("node-other", snapshot=folder).json["then"] == "terminate"


def test_all_nodes_of_a_group_are_a_list(drain):
    result = drain("--group", "web-1")
    assert [document["node"] for document in result.json] == ["node-a", "node-b"]
    assert result.code == 1


def test_a_group_is_found_by_the_tags_of_its_instances_where_it_is_not_described(drain, tmp_path):
    folder = a_snapshot(tmp_path, auto_scaling_groups={"AutoScalingGroups": []})
    assert [document["node"] for document in drain("--group", "web-1", snapshot=folder).json] == ["node-a", "node-b"]


def test_a_group_without_nodes_is_an_empty_list(drain, tmp_path):
    result = drain("--group", "other", snapshot=a_snapshot(tmp_path, instances='{"Reservations": []}'))
    assert (result.code, result.json) == (0, [])


def test_a_group_that_no_policy_selects_is_planned_with_the_defaults(drain, tmp_path):
    result = drain("node-b", snapshot=a_snapshot(tmp_path, policy="# nothing\n"))
    assert (result.code, pods(result.json["refuse"])) == (0, [])


def test_the_flags_override_the_policy_both_ways(drain):
    assert pods(drain("node-b").json["refuse"]) == ["shop/lonely"]
    assert pods(drain("node-b", "--force=true").json["refuse"]) == []
    assert pods(drain("node-b", "--force=false").json["refuse"]) == ["shop/lonely"]
    assert pods(drain("node-b", "--force", "--delete-emptydir-data=false").json["refuse"]) == ["shop/web-2"]
    assert pods(drain("node-a", "--ignore-daemonsets=false", "--force").json["refuse"]) == ["kube-system/aws-node-x"]
    assert pods(drain("node-a", "--ignore-daemonsets", "--force").json["refuse"]) == []


def test_without_eviction_every_pod_is_deleted_and_no_budget_asked(drain):
    result = drain("node-a", "--disable-eviction", "--force")
    assert {(entry["how"], *entry["blockedBy"]) for entry in result.json["evict"]} == {("delete",)}
    assert result.code == 0


@pytest.mark.parametrize(("given", "printed"), [("0", 0), ("45", 45), ("-1", None)])
def test_a_grace_period_is_each_pods_and_a_negative_one_its_own(drain, given, printed):
    result = drain("node-a", "--grace-period", given)
    assert {entry["graceSeconds"] for entry in result.json["evict"]} == {printed}


def test_how_long_a_deleted_pod_is_waited_for_can_be_chosen(drain):
    assert "shop/stuck" in pods(drain("node-a", "--skip-wait-for-delete-timeout=3599").json["leave"])
    assert "shop/stuck" in evicted(drain("node-a", "--skip-wait-for-delete-timeout", "3601").json)
    assert "shop/stuck" in evicted(drain("node-a", "--skip-wait-for-delete-timeout", "0").json)


def test_the_deadline_is_the_earliest_of_the_option_and_the_policys(drain, tmp_path):
    policy = (SMALL / "policy.yaml").read_text().replace("unmanagedPods: refuse", "terminationGracePeriod: 10m")
    folder = a_snapshot(tmp_path, policy=policy)
    assert drain("node-a").json["deadline"] is None
    assert drain("node-a", "--deadline", "2024-05-01T13:30:00+01:00").json["deadline"] == "2024-05-01T12:30:00Z"
    assert drain("node-a", snapshot=folder).json["deadline"] == "2024-05-01T12:10:00Z"
    assert (
        drain("node-a", "--deadline", "2024-05-01T12:05:00Z", snapshot=folder).json["deadline"]
        == "2024-05-01T12:05:00Z"
    )
    assert (
        drain("node-a", "--deadline", "2024-05-01T12:20:00Z", snapshot=folder).json["deadline"]
        == "2024-05-01T12:10:00Z"
    )


def test_within_its_grace_before_the_nodes_deadline_a_pod_is_deleted(drain, tmp_path):
    policy = (SMALL / "policy.yaml").read_text().replace("unmanagedPods: refuse", "terminationGracePeriod: 10m")
    folder = a_snapshot(tmp_path, policy=policy)
    entries = evicted(drain("node-a", "--deadline", "2024-05-01T12:00:30Z", snapshot=folder).json)
    assert {entry["how"] for entry in entries.values()} == {"delete"}
    entries = evicted(drain("node-a", "--deadline", "2024-05-01T12:00:31Z", snapshot=folder).json)
    assert {entry["how"] for entry in entries.values()} == {"evict"}


def test_offline_a_drain_is_always_a_dry_run(drain):
    same = [drain("node-b", *flag).json for flag in ([], ["--dry-run"], ["--dry-run=false"], ["--dry-run=client"])]
    assert same.count(same[0]) == 4


def test_a_time_that_is_out_of_range_is_bad_input(leeward, tmp_path):
    policy = (SMALL / "policy.yaml").read_text().replace("unmanagedPods: refuse", "terminationGracePeriod: 10m")
    folder = a_snapshot(tmp_path, policy=policy)
    reported = leeward.refuses("drain", "node-a", "--snapshot", folder, "--deadline", "0001-01-01T00:00:00Z")
    assert reported.startswith("found a time or duration out of range")


def test_a_folder_without_nodes_has_no_node(leeward, tmp_path):
    a_snapshot(tmp_path, nodes={"items": []})
    message = leeward.refuses("drain", "node-a", "--snapshot", tmp_path)
    assert message == f"{tmp_path}/nodes.json: items: found no node 'node-a', expected one of its nodes: none at all"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "drain: found neither NODE nor --group nor -l, expected one of them"),
        (["n", "--group", "g"], "drain: found both NODE and --group or -l, expected one of them"),
        (["n"], "drain: found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"),
        (["n", "--force=maybe"], "drain: argument --force: found 'maybe', expected true or false"),
        (["n", "--grace-period", "1m"], "drain: argument --grace-period: found '1m', expected whole seconds"),
        (
            ["n", "--deadline", "soon"],
            "drain: argument --deadline: found 'soon', expected an RFC 3339 time such as 2024-05-01T12:00:00Z",
        ),
        (
            ["n", "--snapshot", "nowhere"],
            "nowhere: found no such folder, expected a folder with nodes.json, pods.json …",
        ),
        (
            ["n", "--snapshot", str(SMALL)],
            f"{SMALL}/nodes.json: items: found no node 'n', expected one of its nodes: "
            "node-a, node-b, node-gone, node-other",
        ),
        (
            ["--group", "g", "--snapshot", str(SMALL)],
            f"{SMALL}/auto-scaling-groups.json: AutoScalingGroups: "
            "found no group 'g', expected one of its groups: other, web-1",
        ),
        (
            ["node-a", "--snapshot", str(SMALL), "--cluster", "blue"],
            f"found --snapshot {SMALL} and --cluster blue, expected one of them: "
            "a folder is read offline, a cluster live",
        ),
    ],
)
def test_bad_input_is_reported_in_one_sentence(leeward, arguments, message):
    assert leeward.refuses("drain", *arguments).removesuffix(" (see leeward drain --help)") == message


def test_the_table_shows_every_pod_with_its_reason(leeward):
    result = leeward("drain", "node-a", "--snapshot", SMALL, "--now", NOON)
    assert result.code == 1
    assert "node-a: wait: pods forbid the drain" in result.out
    lines = {line.split()[1]: line for line in result.out.splitlines() if line.startswith("node-a ")}
    assert "blocked by pdb shop/db" in lines["shop/db-0"]
    assert "refuse" in lines["shop/orphan-ds"]
    assert "leave" in lines["kube-system/etcd"]
    assert len(lines) == 7


def a_pod(name, *, owner=("ReplicaSet", "web"), **spec):
    reference = [{"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    meta = {"namespace": "shop", "name": name, "uid": name, "ownerReferences": reference}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "node-b", **spec}, "status": status}


def with_claim(name):
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def an_attachment(name, volume, node="node-b"):
    spec = {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": {"persistentVolumeName": volume}}
    return {"kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec, "status": {"attached": True}}


def test_volumes_are_reported_with_their_pods_and_whether_the_drain_waits(drain, tmp_path):
    pods = [
        a_pod("db-0", owner=("StatefulSet", "db"), volumes=with_claim("data-db-0")),
        a_pod("agent-x", owner=("DaemonSet", "agent"), volumes=with_claim("cache")),
        a_pod("web-9", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]),
    ]
    claims = {"pv-db": "data-db-0", "pv-cache": "cache", "pv-scratch": "web-9-scratch", "pv-left": "gone"}
    pvs = [
        {
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {"claimRef": {"namespace": "shop", "name": name}},
        }
        for volume, name in claims.items()
    ]
    attachments = [an_attachment(f"csi-{volume}", volume) for volume in claims]
    folder = a_snapshot(
        tmp_path,
        pods={"items": pods},
        pvs={"items": pvs},
        volumeattachments={"items": [*attachments, an_attachment("csi-elsewhere", "pv-db", "node-a")]},
        daemonsets={"items": [{"metadata": {"namespace": "shop", "name": "agent"}}]},
    )
    assert drain("node-b", snapshot=folder).json["volumes"] == [
        {"attachment": "csi-pv-cache", "pod": "shop/agent-x", "wait": False},
        {"attachment": "csi-pv-db", "pod": "shop/db-0", "wait": True},
        {"attachment": "csi-pv-left", "pod": None, "wait": True},
        {"attachment": "csi-pv-scratch", "pod": "shop/web-9", "wait": True},
    ]


def test_claims_alone_show_whose_a_volume_is(drain, tmp_path):
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"namespace": "shop", "name": "data"}}
    folder = a_snapshot(
        tmp_path,
        pods={"items": [a_pod("db-0", volumes=with_claim("data"))]},
        pvcs={"items": [{**claim, "spec": {"volumeName": "pv-1"}}]},
        volumeattachments={"items": [an_attachment("csi", "pv-1")]},
    )
    assert drain("node-b", snapshot=folder).json["volumes"] == [{"attachment": "csi", "pod": "shop/db-0", "wait": True}]


def test_no_volume_is_waited_for_where_the_policy_gives_none_time_or_the_instance_is_gone(drain, tmp_path):
    policy = (SMALL / "policy.yaml").read_text().replace("unmanagedPods: refuse", "volumeDetachTimeout: 0s")
    attachments = {"items": [an_attachment("csi", "pv-1"), an_attachment("csi-gone", "pv-2", "node-gone")]}
    folder = a_snapshot(tmp_path, policy=policy, volumeattachments=attachments)
    assert drain("node-b", snapshot=folder).json["volumes"] == [{"attachment": "csi", "pod": None, "wait": False}]
    assert drain("node-gone", snapshot=folder).json["volumes"] == [
        {"attachment": "csi-gone", "pod": None, "wait": False}
    ]


def test_a_pod_that_tolerates_everything_is_left_and_one_that_tolerates_something_else_leaves(drain, tmp_path):
    tolerant = a_pod("everywhere", tolerations=[{"operator": "Exists"}])
    other = a_pod("dns", tolerations=[{"key": "CriticalAddonsOnly", "operator": "Exists"}])
    document = drain("node-b", snapshot=a_snapshot(tmp_path, pods={"items": [tolerant, other]})).json
    assert pods(document["evict"]) == ["shop/dns"]
    assert document["leave"] == [
        {"pod": "shop/everywhere", "why": "it tolerates the taint leeward.dev/disrupted: it ends with the node"}
    ]
    assert document["then"] == "terminate"


def test_a_pod_whose_grace_goes_past_the_deadline_gets_the_seconds_that_are_left(drain, tmp_path):
    policy = (SMALL / "policy.yaml").read_text().replace("unmanagedPods: refuse", "terminationGracePeriod: 10m")
    slow, quick = (a_pod(name, terminationGracePeriodSeconds=s) for name, s in (("slow", 600), ("quick", 5)))
    folder = a_snapshot(tmp_path, policy=policy, pods={"items": [slow, quick]})
    entries = evicted(drain("node-b", "--deadline", "2024-05-01T12:01:00Z", snapshot=folder).json)
    assert (entries["shop/slow"]["how"], entries["shop/slow"]["graceSeconds"]) == ("delete", 60)
    assert (entries["shop/quick"]["how"], entries["shop/quick"]["graceSeconds"]) == ("evict", None)
    entries = evicted(drain("node-b", snapshot=folder).json)
    assert (entries["shop/slow"]["how"], entries["shop/slow"]["graceSeconds"]) == ("delete", None)


def test_a_deadline_of_the_call_deletes_pods_at_the_deadline_less_their_grace_whatever_blocks_them(drain):
    """As terminationGracePeriod does, under a policy that sets none: the pods have 30 s, a budget holds shop/db-0."""
    entries = evicted(drain("node-a", "--force", "--deadline", "2024-05-01T12:00:31Z").json)
    assert {entry["how"] for entry in entries.values()} == {"evict"}
    entries = evicted(drain("node-a", "--force", "--deadline", "2024-05-01T12:00:30Z").json)
    assert {(entry["how"], tuple(entry["blockedBy"])) for entry in entries.values()} == {("delete", ())}


def test_a_finished_pod_of_any_kind_never_refuses(drain, tmp_path):
    finished = [
        a_pod("job", owner=None, volumes=[{"name": "tmp", "emptyDir": {}}]),
        a_pod("agent-x", owner=("DaemonSet", "agent")),
    ]
    for pod, phase in zip(finished, ("Succeeded", "Failed"), strict=True):
        pod["status"]["phase"] = phase
    folder = a_snapshot(
        tmp_path,
        pods={"items": finished},
        daemonsets={"items": [{"metadata": {"namespace": "shop", "name": "agent"}}]},
    )
    flags = ("--ignore-daemonsets=false", "--force=false", "--delete-emptydir-data=false")
    document = drain("node-b", *flags, snapshot=folder).json
    assert (document["refuse"], document["then"]) == ([], "terminate")


@pytest.mark.parametrize("flag", ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--disable-eviction"])
def test_the_last_of_a_flag_wins_as_in_kubectl(drain, flag):
    for folded, plain in (((f"{flag}=false", f"{flag}=true"), f"{flag}"), ((flag, f"{flag}=0"), f"{flag}=false")):
        assert drain("node-a", *folded).json == drain("node-a", plain).json
    assert drain("node-b", f"{flag}=False").json == drain("node-b", f"{flag}=f").json


@pytest.mark.parametrize(("deleted", "fate"), [("11:59:00Z", "evict"), ("11:58:59Z", "leave")])
def test_a_pod_is_left_only_when_it_is_more_than_a_minute_past_its_deletion(drain, tmp_path, deleted, fate):
    pod = a_pod("late")
    pod["metadata"]["deletionTimestamp"] = f"2024-05-01T{deleted}"
    document = drain("node-b", snapshot=a_snapshot(tmp_path, pods={"items": [pod]})).json
    assert {what: pods(document[what]) for what in ("evict", "leave")} == {
        **{"evict": [], "leave": []},
        fate: ["shop/late"],
    }
