"""The ports of a snapshot folder: same methods as the live ones, answers joined from its files, clear refusals."""

import inspect
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.folder import reader
from leeward.adapters.folder.compute import (
    FolderGroups,
    FolderInstances,
    FolderLaunchSources,
    FolderNetwork,
    FolderPriceList,
    FolderTemplates,
)
from leeward.adapters.folder.eks import (
    FolderKnownNodegroups,
    FolderManagedUpdates,
    FolderNodegroups,
    FolderServiceLimits,
)
from leeward.adapters.folder.kubernetes import FILE_OF, FolderClusters, FolderKubernetes
from leeward.adapters.folder.reader import Folder
from leeward.adapters.folder.records import FolderCatalog, FolderClaims, FolderClock, FolderDisruptions, FolderUpgrades
from leeward.adapters.folder.wiring import folder_ports
from leeward.capture.documents import KUBERNETES
from leeward.errors import InvalidInputError, NotInSnapshotError, ObjectGoneError
from leeward.model.launch import LaunchTemplateRef
from leeward.model.pod import Pod
from leeward.ports import autoscaling, clock, compute, eks, kubernetes, monitoring, records
from leeward.ports.kubernetes import Listed

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
ADAPTERS = {
    FolderClock: clock.Clock,
    FolderClusters: kubernetes.Clusters,
    FolderKubernetes: kubernetes.Kubernetes,
    FolderGroups: autoscaling.Groups,
    FolderInstances: compute.Instances,
    FolderNetwork: compute.Network,
    FolderPriceList: compute.PriceList,
    FolderLaunchSources: compute.LaunchSources,
    FolderNodegroups: eks.Nodegroups,
    FolderKnownNodegroups: eks.KnownNodegroups,
    FolderClaims: records.Claims,
    FolderCatalog: records.Catalog,
    FolderTemplates: compute.Templates,
    FolderManagedUpdates: eks.ManagedUpdates,
    FolderServiceLimits: monitoring.ServiceLimits,
    FolderUpgrades: records.Upgrades,
    FolderDisruptions: records.Disruptions,
}


@pytest.fixture
def ports(tmp_path):
    def of(**files):
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / f"{name.replace('_', '-')}.json").write_text(text)
        return folder_ports(Folder(tmp_path, "blue"), NOW, said.append)

    said = []
    of.said = said
    return of


def items(*objects):
    return {"items": list(objects)}


def groups(*found):
    return {"AutoScalingGroups": [{"AutoScalingGroupName": "web", **one} for one in found]}


def instances(*found):
    return {"Reservations": [{"Instances": [{"InstanceId": "i-1", **one} for one in found]}]}


SUBNETS = {
    "Subnets": [
        {"SubnetId": f"subnet-{zone}", "AvailabilityZone": zone, "AvailableIpAddressCount": 9} for zone in ("1a", "1b")
    ]
}


@pytest.mark.parametrize(("adapter", "port"), ADAPTERS.items(), ids=lambda one: one.__name__)
def test_each_method_takes_what_its_port_says(adapter, port):
    mine = {name for name in vars(adapter) if not name.startswith("_") and callable(getattr(adapter, name))}
    assert mine
    for name in mine:
        assert list(inspect.signature(getattr(adapter, name)).parameters) == list(
            inspect.signature(getattr(port, name)).parameters
        ), name


def test_a_missing_file_is_empty(ports):
    found = ports()
    api = found.clusters.kubernetes("blue")
    assert (list(api.nodes()), list(api.pods()), api.node("a"), api.daemon_sets()) == ([], [], None, frozenset())
    assert (found.instances.describe(["i-1"]), found.groups.describe(["web"]), found.network.subnets(["s"])) == (
        {},
        {},
        {},
    )
    assert found.clusters.policies("blue").policies == ()
    assert found.clusters.policies("blue").settings.name == "blue"
    assert found.clock.now() == NOW


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"nowhere: found no such folder"):
        Folder(tmp_path / "nowhere")


def test_a_broken_file_is_refused_when_it_is_read_and_never_before(ports):
    found = ports(nodes="{", subnets='{"Subnets": 5}')
    assert list(found.clusters.kubernetes("blue").pods()) == []
    with pytest.raises(InvalidInputError, match=r"nodes\.json: line 1 column 2: found"):
        found.clusters.kubernetes("blue").nodes()
    with pytest.raises(InvalidInputError, match=r"subnets\.json: Subnets: found 5, expected a list"):
        found.network.subnets(["subnet-1a"])


def test_a_key_of_a_large_file_is_seen_across_blocks(tmp_path, monkeypatch):
    (tmp_path / "pods.json").write_text('{"items": [{"namespaceSelector" : {}}]}')
    for block in range(1, 30):
        monkeypatch.setattr(reader, "BLOCK", block)
        assert Folder(tmp_path).mentions("pods", re.compile(rb'"namespaceSelector"\s*:'))
    assert not Folder(tmp_path).mentions("nodes", re.compile(b"x"))


def test_the_files_are_those_that_a_snapshot_writes():
    assert {what: name for name, (what, *_) in KUBERNETES.items()} == FILE_OF


def test_every_file_of_kubernetes_can_be_read_raw(ports):
    api = ports().clusters.kubernetes("blue")
    assert [list(api.read(what, dict)) for what in FILE_OF] == [[] for _ in FILE_OF]
    with pytest.raises(NotInSnapshotError, match="found no services: a snapshot does not hold them"):
        api.read(Listed.SERVICES, dict)


@pytest.mark.parametrize("change", ["taint", "cordon", "evict", "delete_node", "strip"])
def test_a_change_of_the_cluster_is_refused_and_says_how_to_make_it(ports, change):
    with pytest.raises(NotInSnapshotError, match=rf"needs FolderKubernetes\.{change}, .* expected --cluster NAME"):
        getattr(ports().clusters.kubernetes("blue"), change)("node")


def test_what_a_folder_cannot_know_is_refused_and_not_answered_as_nothing(ports):
    with pytest.raises(NotInSnapshotError, match="it has no executions"):
        ports().upgrade_executions.running("web-1")
    with pytest.raises(NotInSnapshotError, match="it has no records of upgrades"):
        ports().upgrades.plan("web")
    with pytest.raises(NotInSnapshotError, match="it can only be read"):
        ports().group_changes.suspend("web", "AZRebalance")
    with pytest.raises(NotInSnapshotError, match=r"FolderClaims\.claim"):
        ports().claims.claim(None, None, NOW)


def test_no_termination_upgrade_and_run_is_recorded(ports):
    """As where Leeward is not installed: a folder belongs to no deployment, so it says nothing about executions."""
    found = ports()
    assert (found.claims.read("i-1"), found.upgrades.read("web"), found.disruptions.read("blue")) == (None, None, None)
    assert (found.upgrades.read_all(["web"]), found.deployment) == ({}, "")


@pytest.mark.parametrize(
    ("asked", "numbered"), [("$Latest", "2"), ("$Default", "1"), ("1", "1"), ("7", "7"), ("$Latest of another", "")]
)
def test_a_version_of_a_launch_template_has_its_number_where_the_file_shows_it(ports, asked, numbered):
    versions = [
        {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "VersionNumber": 1, "DefaultVersion": True},
        {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "VersionNumber": 2, "DefaultVersion": False},
    ]
    found = ports(launch_template_versions={"LaunchTemplateVersions": versions})
    version, _, another = asked.partition(" of ")
    template = LaunchTemplateRef(name=another or "web", version=version)
    assert found.templates.numbered(template).version == numbered


def test_the_control_plane_has_the_version_of_the_file(ports):
    assert ports().service_limits.control_plane("blue") == ""
    assert (
        ports(cluster={"cluster": {"name": "blue", "version": "1.33"}}).service_limits.control_plane("blue") == "1.33"
    )


def test_an_instance_is_of_the_group_that_lists_it_also_without_a_tag(ports):
    found = ports(auto_scaling_groups=groups({"Instances": [{"InstanceId": "i-1"}]}), instances=instances({}))
    assert found.instances.describe(["i-1", "i-2"])["i-1"].group == "web"
    assert found.groups.lifecycle_of("i-1") == ("web", "InService")
    assert found.groups.lifecycle_of("i-2") is None


def test_zones_and_subnets_of_a_group_follow_from_one_another(ports):
    found = ports(
        auto_scaling_groups=groups(
            {"VPCZoneIdentifier": "subnet-1b"}, {"AutoScalingGroupName": "api", "AvailabilityZones": ["1a"]}
        ),
        subnets=SUBNETS,
    ).groups.describe(["web", "api"])
    assert (found["web"].zones, found["api"].subnets) == (("1b",), ("subnet-1a",))


def test_hooks_are_those_of_the_group(ports):
    hooks = [{"LifecycleHookName": name, "AutoScalingGroupName": name} for name in ("web", "api")]
    assert [hook.name for hook in ports(lifecycle_hooks={"LifecycleHooks": hooks}).groups.hooks("api")] == ["api"]


def test_a_volume_has_the_claim_that_either_file_shows(ports):
    claim = {"metadata": {"name": "data", "namespace": "shop"}, "spec": {"volumeName": "pv-1"}}
    bound = {"metadata": {"name": "pv-2"}, "spec": {"claimRef": {"name": "logs", "namespace": "shop"}}}
    volumes = ports(pvs=items(bound), pvcs=items(claim)).clusters.kubernetes("blue").volumes()
    assert {raw["metadata"]["name"]: raw["spec"]["claimRef"]["name"] for raw in volumes} == {
        "pv-1": "data",
        "pv-2": "logs",
    }


def test_a_deployment_has_as_many_replicas_as_it_has_pods(ports):
    def pod(name, phase="Running"):
        labels = {"pod-template-hash": "abc"}
        owner = {"kind": "ReplicaSet", "name": "web-abc", "apiVersion": "apps/v1", "controller": True}
        meta = {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
        return {"metadata": meta, "status": {"phase": phase}}

    api = ports(pods=items(pod("a"), pod("b"), pod("c", "Succeeded"))).clusters.kubernetes("blue")
    found = api.deployment_of(api.pods()[0])
    assert (found.key, found.replicas, found.settled) == ("shop/web", 2, True)
    lone = Pod(namespace="shop", name="x", uid="x", node="", phase="Running", owner=None)
    assert api.deployment_of(lone) is None


def test_the_cni_has_its_defaults_where_its_daemon_set_is_not_there(ports):
    assert ports().clusters.kubernetes("blue").aws_node()["metadata"]["name"] == "aws-node"


def test_prices_of_several_documents_are_joined_and_the_later_wins(ports):
    first, second = {"on-demand": {"a": 1, "b": 2}, "spot": {"a": {"1a": 1}}}, {"on-demand": {"a": 3}}
    found = ports(prices=[first, second]).price_list
    assert found.on_demand(["a", "c"]) == {"a": 3}
    assert found.spot(["a", "b"], ["1a"], NOW) == {"a": {"1a": 1}}


def test_a_type_that_the_file_lacks_has_the_limits_of_the_table_and_no_memory(ports):
    launches = ports().launches
    kind = launches.instance_types(["m5.large", "x9.huge"])["m5.large"]
    assert (kind.max_enis, kind.ips_per_eni, kind.memory_mib, kind.architectures) == (3, 10, 0, ())
    assert launches.all_instance_types() == {}


def test_a_missing_node_group_is_said_once_and_a_broken_file_is_no_missing_one(ports, tmp_path):
    found = ports()
    assert [found.nodegroups.get("blue", "ng", timedelta(minutes=1)) for _ in range(2)] == [None, None]
    assert [sentence.split(":")[0] for sentence in ports.said] == ["node group ng of blue"]
    with pytest.raises(ObjectGoneError, match=r"nodegroups\.json does not hold it"):
        FolderNodegroups(Folder(tmp_path)).describe("blue", "ng")
    with pytest.raises(InvalidInputError, match=r"nodegroups\.json: document: found an empty file"):
        ports(nodegroups="").nodegroups.get("blue", "ng", timedelta(minutes=1))


def test_failing_status_checks_are_found(ports):
    status = {"InstanceStatuses": [{"InstanceId": "i-1", "SystemStatus": {"Status": "impaired"}}]}
    assert list(ports(instance_status=status).instances.impaired()) == ["i-1"]
