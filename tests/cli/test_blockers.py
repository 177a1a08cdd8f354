"""`leeward blockers`, offline on a folder with every kind of blockage that people meet, and live on fakes."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.blockers.blocker import BlockerKind
from leeward.model import well_known
from leeward.model.attachment import VolumeAttachment
from leeward.model.node import Taint
from leeward.model.pod import Deployment, Owner, Pod, PodDisruptionBudget
from leeward.model.termination import Cause, CauseKind
from leeward.model.times import format_instant
from leeward.policy.document import DrainPolicy
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.cli.command import NOON, SMALL, a_snapshot
from tests.fakes.builders import CLUSTER, a_group, a_node, a_policy, a_subject, an_instance, our_hook, policies
from tests.fakes.system import FakeSystem

FOLDER = Path("tests/cli/snapshots/blockers")
SCHEMA = json.loads(Path("docs/schema/blockers.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIVE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z", "-o", "json")


@pytest.fixture
def blockers(leeward):
    def run(*arguments, snapshot=FOLDER):
        result = leeward("blockers", *arguments, "--snapshot", snapshot, "--now", NOON, "-o", "json")
        assert result.code == 0
        VALIDATOR.validate(result.json)
        return result.json["blockers"]

    return run


def test_the_schema_knows_every_kind():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    listed = SCHEMA["properties"]["blockers"]["items"]["properties"]["kind"]["enum"]
    assert listed == [kind.value for kind in BlockerKind]


def test_each_kind_of_blockage_is_named_with_its_owner_and_its_end(blockers):
    found = blockers("node-a")
    assert [(one["kind"], one["pod"], one["owner"], one["object"], one["until"]) for one in found] == [
        ("do-not-disrupt", "shop/batch-1", "Job/batch", "annotation karpenter.sh/do-not-disrupt=true", None),
        ("volume-attached", "shop/db-0", "StatefulSet/db", "volumeattachment csi-db", "2024-05-01T12:04:00Z"),
        ("pdb-failing-pod", "shop/failing-1", "Deployment/failing", "pdb shop/failing", None),
        ("pdb-never", "shop/fixed-1", "StatefulSet/fixed", "pdb shop/fixed", None),
        ("unmanaged-pod", "shop/lonely", "Pod/lonely", "pod shop/lonely", None),
        (
            "do-not-disrupt",
            "shop/train-1",
            "Job/train",
            "annotation karpenter.sh/do-not-disrupt=4h",
            "2024-05-01T15:00:00Z",
        ),
        ("pdb-several", "shop/twice-1", "StatefulSet/twice", "pdb shop/twice-a, pdb shop/twice-b", None),
        ("tolerates-taint", "shop/watcher-1", "Deployment/watcher", "toleration of every taint", None),
        ("pdb-none-now", "shop/zero-1", "Deployment/zero", "pdb shop/zero", None),
        ("lifecycle-hook", None, "AutoScalingGroup/web-1", "hook web-1/leeward-terminate", "2024-05-01T12:05:00Z"),
    ]
    assert {one["node"] for one in found} == {"node-a"}


def test_every_way_out_names_its_object_and_a_command(blockers):
    for one in blockers():
        assert "kubectl" in one["fix"] or "aws " in one["fix"]
        named = (
            one["object"].rsplit("/", 1)[-1].split("=")[0],
            one["object"].split()[-1],
            (one["pod"] or "").split("/")[-1],
        )
        assert any(name and name in one["fix"] for name in named), one


def test_a_node_that_nothing_blocks_has_an_empty_list(blockers):
    assert blockers("node-b") == []


def test_without_a_node_all_are_looked_at(blockers):
    assert blockers() == blockers("node-a")
    assert {one["node"] for one in blockers(snapshot=SMALL)} == {"node-a", "node-b"}


def test_the_pod_of_an_ended_instance_blocks_nothing(blockers, tmp_path):
    instances = json.loads((SMALL / "instances.json").read_text())
    for instance in instances["Reservations"][0]["Instances"]:
        instance["State"]["Name"] = "terminated"
    assert blockers(snapshot=a_snapshot(tmp_path, instances=instances)) == []


def test_where_no_policy_selects_the_group_the_defaults_stand_in(blockers, tmp_path):
    """The default evicts pods without a controller."""
    found = blockers(snapshot=a_snapshot(tmp_path, policy="# nothing\n"))
    assert {one["kind"] for one in found} == {"pdb-never", "stuck-pod"}


def test_the_policys_termination_grace_period_is_an_end(blockers, tmp_path):
    """As if the drain began now: the pod is deleted its own 30 s before the node's deadline."""
    policy = (SMALL / "policy.yaml").read_text().replace("unmanagedPods: refuse", "terminationGracePeriod: 10m")
    (blocked,) = [
        one for one in blockers("node-a", snapshot=a_snapshot(tmp_path, policy=policy)) if "pdb" in one["kind"]
    ]
    assert blocked["until"] == "2024-05-01T12:09:30Z"


def test_a_broken_attachment_is_reported_with_its_place(leeward, tmp_path):
    broken = {"items": [{"metadata": {"name": "csi"}, "status": {"attached": "yes"}}]}
    folder = a_snapshot(tmp_path, volumeattachments=broken)
    reported = leeward.refuses("blockers", "--snapshot", folder)
    assert 'volumeattachments.json: items[0].status.attached: found "yes", expected true or false' in reported


def test_bad_input_is_reported_in_one_sentence(leeward):
    reported = leeward.refuses("blockers", "node-x", "--snapshot", FOLDER)
    known = "expected one of its nodes: node-a, node-b; did you mean node-b?"
    assert reported == f"{FOLDER}/nodes.json: items: found no node 'node-x', {known}"
    reported = leeward.refuses("blockers")
    assert (
        reported == "blockers: found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"
    )


def test_without_instances_the_listing_of_a_group_shows_whose_a_node_is(blockers, tmp_path):
    """The hook of a terminating instance is found by its group, which selects the policy as well."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "instances.json").unlink()
    assert "lifecycle-hook" in {one["kind"] for one in blockers("node-a", snapshot=tmp_path)}


def test_the_table_is_for_people(leeward):
    out = leeward("blockers", "--snapshot", FOLDER, "--now", NOON).out
    assert out.startswith("1 of 2 nodes blocked, 10 causes\n")
    assert "2024-05-01T15:00:00Z" in out
    assert "unknown" in out
    assert leeward("blockers", "node-b", "--snapshot", FOLDER).out.strip() == "nothing blocks node-b"


def test_a_node_that_an_upgrade_keeps_names_the_upgrade(blockers, tmp_path):
    nodes = json.loads((SMALL / "nodes.json").read_text())
    nodes["items"][1]["metadata"]["annotations"] = {
        well_known.SCALE_DOWN_DISABLED: "true",
        well_known.KEPT_FOR: "web-1",
    }
    found = blockers("node-b", snapshot=a_snapshot(tmp_path, nodes=nodes))
    (kept,) = (one for one in found if one["kind"] == "node-scale-down-disabled")
    assert (kept["owner"], kept["until"]) == ("Upgrade/web-1", None)
    assert "leeward upgrade status web-1 --cluster NAME" in kept["fix"]


@pytest.fixture
def system(monkeypatch):
    mark = Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule", value="spot_interruption")
    system = FakeSystem(
        instances=[an_instance("i-0a"), an_instance("i-0b")],
        groups=[a_group("web-a", "i-0a", "i-0b")],
        hooks=[our_hook("web-a")],
        nodes=[a_node("i-0a", taints=(mark,)), a_node("i-0b")],
    )
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    labels = {"app": "web"}
    pod = Pod(namespace="shop", name="web-1", uid="u", node="node-i-0a", phase="Running", ready=True, labels=labels)
    system.kubernetes.put_pod(pod)
    selector = {"matchLabels": labels}
    system.kubernetes.budget_list = [
        PodDisruptionBudget(namespace="shop", name="web", selector=selector, disruptions_allowed=0)
    ]
    return system


def live(leeward, *arguments):
    result = leeward("blockers", *arguments, *LIVE)
    assert result.code == 0
    VALIDATOR.validate(result.json)
    return result.json["blockers"]


def test_live_a_blocked_spot_drain_says_until_when(leeward, system):
    warning = Cause(id="e", kind=CauseKind.SPOT_INTERRUPTION, at=NOW, deadline=NOW + timedelta(minutes=2))
    system.claims.claim(a_subject("i-0a"), warning, NOW)
    (blocked,) = live(leeward)
    assert (blocked["node"], blocked["object"], blocked["until"]) == (
        "node-i-0a",
        "pdb shop/web",
        "2026-05-01T12:01:55Z",
    )


def test_live_an_unknown_node_is_reported_with_those_that_are_there(leeward, system):
    reported = leeward.refuses("blockers", "node-x", *LIVE)
    expected = "expected one of its nodes: node-i-0a, node-i-0b; did you mean node-i-0b?"
    assert reported == f"cluster blue: nodes: found no node 'node-x', {expected}"


def test_live_hooks_and_volumes_are_looked_up(leeward, system):
    system.groups.begin_terminating("web-a", "i-0a")
    cause = Cause(
        id="e", kind=CauseKind.ASG_TERMINATE, at=NOW - timedelta(minutes=2), hook="leeward-terminate", hook_ours=True
    )
    system.claims.claim(a_subject("i-0a"), cause, NOW)
    system.kubernetes.attachment_list = [VolumeAttachment(name="csi", node="node-i-0a", volume="pv", attached=True)]
    reference = {"namespace": "shop", "name": "data"}
    system.kubernetes.volume_list = [{"metadata": {"name": "pv"}, "spec": {"claimRef": reference}}]
    found = {one["kind"]: one for one in live(leeward, "node-i-0a")}
    assert found["lifecycle-hook"]["until"] == "2026-05-01T12:03:00Z"
    assert found["volume-attached"]["owner"] == "PersistentVolumeClaim/data"


def test_live_a_hook_belongs_to_the_group_that_lists_the_instance(leeward, system):
    """The instance was attached a moment ago: EC2 still shows the tag of the group before."""
    system.groups.by_name["other"] = a_group("other")
    system.instances.put(an_instance("i-0a", group="other"))
    system.groups.begin_terminating("web-a", "i-0a")
    assert [one["object"] for one in live(leeward, "node-i-0a") if one["kind"] == "lifecycle-hook"] == [
        "hook web-a/leeward-terminate"
    ]


def test_live_nothing_is_changed(leeward, system):
    before = dict(system.kubernetes.by_key), dict(system.kubernetes.by_name)
    live(leeward)
    assert (dict(system.kubernetes.by_key), dict(system.kubernetes.by_name)) == before
    assert system.claims.read("i-0a") is None


def test_live_an_unknown_node_is_bad_input_and_a_silent_cluster_exit_1(leeward, system):
    assert "found no node 'x'" in leeward.refuses("blockers", "x", *LIVE)
    system.kubernetes.down = True
    result = leeward("blockers", *LIVE)
    assert (result.code, result.out) == (1, "")


def test_live_all_nodes_on_their_way_out_cost_one_look_into_the_table(leeward, system):
    mark = Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule")
    for name in "cde":
        system.kubernetes.put_node(replace(a_node(f"i-0{name}", taints=(mark,)), name=f"node-{name}"))
    live(leeward)
    assert (system.claims.asked["read"], system.claims.asked["read_all"]) == (0, 1)


@pytest.fixture
def kept(leeward, system):
    """What is reported of a node that the upgrade of its group keeps, with the upgrade's record changed."""
    system.kubernetes.by_name.clear()
    system.kubernetes.put_node(a_node("i-0a"))
    system.kubernetes.put_node(
        replace(a_node("i-0b"), annotations={well_known.SCALE_DOWN_DISABLED: "true", well_known.KEPT_FOR: "web-a"})
    )

    def ask(*, runs=True, **changes):
        record = UpgradeRecord(
            group="web-a",
            cluster=CLUSTER,
            target=UpgradeTarget(),
            strategy=Strategy.DEFAULT,
            desired=1,
            maximum=10,
            began=NOW,
            execution="web-a-1",
            attempt=1,
            cordoned=True,
        )
        system.upgrades.records["web-a"] = replace(record, **changes)
        system.upgrade_executions.open = {"web-a-1"} if runs else set()
        (found,) = live(leeward, "node-i-0b")
        assert (found["kind"], found["owner"]) == ("node-scale-down-disabled", "Upgrade/web-a")
        return found["until"], found["fix"]

    return ask


def test_live_a_node_that_an_upgrade_keeps_says_which_execution_and_until_when(kept, system):
    until, fix = kept()
    assert until > format_instant(system.clock.now())
    assert "execution web-a-1 is upgrading" in fix
    assert until < kept(cordoned=False)[0]  # its first new nodes have yet to come


def test_live_a_paused_upgrade_keeps_it_without_an_end(kept):
    until, fix = kept(control=ControlRequest.PAUSE)
    assert until is None
    assert "leeward upgrade resume web-a" in fix


@pytest.mark.parametrize("left", [{"runs": False}, {"ended": NOW}])
def test_live_an_upgrade_without_an_execution_keeps_it_until_the_next_reconciliation(kept, system, left):
    until, fix = kept(**left)
    assert until == format_instant(system.clock.now() + timedelta(minutes=1))
    assert "no execution works on that any more" in fix


def a_lone_pod_that_surges(system):
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")
    (pod,) = [pod for pod in system.kubernetes.pods() if pod.name == "web-1"]
    system.kubernetes.put_pod(replace(pod, owner=owner, labels={**pod.labels, "pod-template-hash": "5d4"}))
    (budget,) = system.kubernetes.budget_list
    counted = replace(budget, min_available=1, expected_pods=1, current_healthy=1, desired_healthy=1)
    system.kubernetes.budget_list = [counted]
    deployment = Deployment(
        namespace="shop", name="web", resource_version="1", replicas=1, available=1, settled=True, recreate=False
    )
    system.kubernetes.put_deployment(deployment)
    return deployment


@pytest.mark.parametrize("surges", [True, False])
def test_live_a_budget_that_a_second_replica_satisfies_blocks_only_where_none_comes(leeward, system, surges):
    deployment = a_lone_pod_that_surges(system)
    policy = replace(a_policy(), drain=DrainPolicy(surge_single_replicas=True))
    system.clusters.policies_of[CLUSTER] = policies(policy)
    if not surges:
        system.kubernetes.put_deployment(replace(deployment, recreate=True))
    kinds = {one["kind"] for one in live(leeward, "node-i-0a")}
    assert ("pdb-never" in kinds) is not surges
    (eviction,) = leeward("drain", "node-i-0a", "--dry-run", *LIVE).json["evict"]
    shown = ("surge", []) if surges else ("evict", ["pdb shop/web"])
    assert (eviction["how"], eviction["blockedBy"]) == shown


def test_namespaces_whose_pods_keep_nodes_are_reported_with_their_nodes(leeward):
    result = leeward("blockers", "--snapshot", FOLDER, "--now", NOON, "-o", "json")
    VALIDATOR.validate(result.json)
    kinds = {"do-not-disrupt", "safe-to-evict", "disruption-window", "beyond-limits", "pod-finalizer"}
    held = [one for one in result.json["blockers"] if one["kind"] in kinds]
    (shop,) = result.json["namespaces"]
    assert shop["namespace"] == "shop"
    assert (shop["pods"], shop["nodes"]) == (len({one["pod"] for one in held}), sorted({one["node"] for one in held}))
    assert "nodes kept by opt-outs" in leeward("blockers", "--snapshot", FOLDER, "--now", NOON).out


def test_a_node_that_is_kept_for_longer_than_a_day_is_named(leeward):
    def long(now):
        return leeward("blockers", "--snapshot", FOLDER, "--now", now, "-o", "json").json["namespaces"][0]["keptLong"]

    assert "node-a" in long("2024-06-01T12:00:00Z")
    assert "node-a" not in long("2020-05-01T12:00:00Z")
