"""Nodes that follow the instances of the local AWS."""

import datetime
from typing import Any

import pytest

from local.cluster.bridge import BridgeSettings, NodeBridge
from local.cluster.instances import NODE_LABEL, NODE_TAINT, Instance, instance_of
from local.cluster.objects import is_ready, labels_of
from local.cluster.registry import ModelNodes
from tests.local.cluster.builders import Lab, a_daemonset

TAG = "kubernetes.io/cluster/demo"
NAME = "ip-10-0-1-5.ec2.internal"


class Aws:
    """What DescribeInstances would say."""

    def __init__(self) -> None:
        self.instances: dict[str, Instance] = {}

    def launch(self, number: int = 1, **changes: Any) -> str:
        instance_id = f"i-{number:017x}"
        instance = Instance(
            instanceId=instance_id,
            zone="us-east-1a",
            subnetId="subnet-1",
            instanceType="m5.large",
            privateDnsName=f"ip-10-0-{number}-5.ec2.internal",
            state="running",
            launchTime=0.0,
            tags={TAG: "owned"},
            lifecycle=None,
        )
        self.instances[instance_id] = {**instance, **changes}
        return instance_id

    def turn(self, instance_id: str, state: str) -> None:
        self.instances[instance_id]["state"] = state

    def list_instances(self) -> list[Instance]:
        return list(self.instances.values())


class BridgedLab(Lab):
    """Polls every half second of its time."""

    def __init__(self, **settings: float) -> None:
        super().__init__(pod_gc_period=0, pod_gc_quarantine=0.0)
        self.aws = Aws()
        self.bridge = NodeBridge(nodes=ModelNodes(self.cluster), source=self.aws, settings=BridgeSettings(**settings))

    def live(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.bridge.poll(self.now)
            self.run(0.5)

    def node(self, name: str = NAME) -> dict | None:
        return self.cluster.store.find("nodes", name)


@pytest.fixture
def bridged() -> BridgedLab:
    return BridgedLab(boot_delay=10.0, ready_delay=2.0, notice_delay=1.0, removal_delay=5.0)


def test_nodes_of_a_managed_node_group_have_its_labels_and_taints(bridged):
    tags = {
        TAG: "owned",
        "eks:nodegroup-name": "web",
        f"{NODE_LABEL}team": "web",
        f"{NODE_TAINT}only": "web:NoSchedule",
    }
    bridged.aws.launch(tags=tags)
    bridged.live(14)
    assert labels_of(bridged.node())["team"] == "web"
    assert {"key": "only", "value": "web", "effect": "NoSchedule"} in bridged.node()["spec"]["taints"]


def test_a_running_instance_joins_after_its_boot_delay_not_ready_first(bridged):
    instance_id = bridged.aws.launch()
    bridged.live(9.5)
    assert bridged.node() is None
    bridged.live(1.5)
    node = bridged.node()
    assert not is_ready(node)
    assert node["spec"]["providerID"] == f"aws:///us-east-1a/{instance_id}"
    assert node["status"]["allocatable"]["cpu"] == "2"
    assert len(node["status"]["nodeInfo"]) == 10
    bridged.live(3)
    assert is_ready(bridged.node())
    assert "taints" not in bridged.node()["spec"]


@pytest.mark.parametrize("delay", [0.0, 2.0])
def test_the_kubelet_reports_once_that_its_node_became_ready(delay):
    bridged = BridgedLab(boot_delay=1.0, ready_delay=delay)
    bridged.aws.launch()
    bridged.live(10)
    assert bridged.reported("NodeReady") == [(NAME, "kubelet")]


def test_labels_say_zone_type_host_and_for_managed_groups_group_image_and_capacity(bridged):
    bridged.aws.launch(1)
    tags = {TAG: "owned", "eks:nodegroup-name": "web", "aws:ec2launchtemplate:id": "lt-1"}
    tags |= {"aws:ec2launchtemplate:version": "7"}
    bridged.aws.launch(2, tags=tags, lifecycle="spot", imageId="ami-1", instanceType="m6g.xlarge")
    bridged.live(11)
    plain, managed = labels_of(bridged.node()), labels_of(bridged.node("ip-10-0-2-5.ec2.internal"))
    assert plain["kubernetes.io/hostname"] == NAME
    assert plain["topology.kubernetes.io/zone"] == "us-east-1a"
    assert plain["topology.kubernetes.io/region"] == "us-east-1"
    assert not any(key.startswith("eks.amazonaws.com/") for key in plain)
    assert managed["node.kubernetes.io/instance-type"] == "m6g.xlarge"
    assert managed["kubernetes.io/arch"] == "arm64"
    eks = {key.partition("/")[2]: value for key, value in managed.items() if key.startswith("eks.amazonaws.com/")}
    assert eks == {
        "nodegroup": "web",
        "nodegroup-image": "ami-1",
        "capacityType": "SPOT",
        "sourceLaunchTemplateId": "lt-1",
        "sourceLaunchTemplateVersion": "7",
    }


def test_node_template_tags_become_labels_and_taints(bridged):
    prefix = "k8s.io/cluster-autoscaler/node-template"
    tags = {TAG: "owned", f"{prefix}/label/team": "web", f"{prefix}/taint/gpu": "yes:NoSchedule"}
    bridged.aws.launch(tags=tags)
    bridged.live(14)
    assert labels_of(bridged.node())["team"] == "web"
    assert bridged.node()["spec"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


def test_an_instance_tagged_never_join_never_joins(bridged):
    bridged.aws.launch(tags={TAG: "owned", "local.leeward.dev/never-join": "true"})
    bridged.live(60)
    assert bridged.node() is None


def test_a_pending_instance_has_not_begun_to_boot(bridged):
    instance_id = bridged.aws.launch(state="pending")
    bridged.live(20)
    bridged.aws.turn(instance_id, "running")
    bridged.live(9)
    assert bridged.node() is None


def test_a_terminated_instance_turns_not_ready_then_its_node_and_pods_vanish(bridged):
    bridged.create("daemonsets", a_daemonset())
    instance_id = bridged.aws.launch()
    bridged.live(20)
    assert len(bridged.pods("agent")) == 1
    bridged.aws.turn(instance_id, "shutting-down")
    bridged.live(3)
    assert not is_ready(bridged.node())
    assert not any(is_ready(pod) for pod in bridged.cluster.list("pods"))
    bridged.aws.turn(instance_id, "terminated")
    bridged.live(4)
    assert bridged.node() is None
    assert bridged.pods("agent") == []
    assert bridged.facts("node-deleted") == [NAME]


def test_an_instance_that_is_no_longer_listed_is_gone(bridged):
    instance_id = bridged.aws.launch()
    bridged.live(20)
    del bridged.aws.instances[instance_id]
    bridged.live(8)
    assert bridged.node() is None


def test_a_stopped_instance_keeps_its_node_and_comes_back_ready(bridged):
    instance_id = bridged.aws.launch()
    bridged.live(20)
    bridged.aws.turn(instance_id, "stopped")
    bridged.live(30)
    assert not is_ready(bridged.node())
    bridged.aws.turn(instance_id, "running")
    bridged.live(4)
    assert is_ready(bridged.node())


def test_a_deleted_node_does_not_come_back_and_its_end_is_quiet(bridged):
    instance_id = bridged.aws.launch()
    bridged.live(20)
    bridged.cluster.delete("nodes", NAME)
    bridged.live(10)
    assert bridged.node() is None
    bridged.aws.turn(instance_id, "terminated")
    bridged.live(10)
    assert bridged.facts("node-deleted") == [NAME]


def test_a_finalizer_holds_the_node_of_a_terminated_instance(bridged):
    instance_id = bridged.aws.launch()
    bridged.live(20)
    bridged.cluster.patch("nodes", NAME, {"metadata": {"finalizers": ["leeward.dev/termination"]}})
    bridged.aws.turn(instance_id, "terminated")
    bridged.live(10)
    assert bridged.node()["metadata"]["deletionTimestamp"]


def test_two_instances_with_one_dns_name_get_two_nodes(bridged):
    bridged.aws.launch(1)
    second = bridged.aws.launch(2, privateDnsName=NAME)
    bridged.live(12)
    assert bridged.node(second) is not None
    assert bridged.node() is not None


def test_a_restarted_bridge_finds_its_nodes_again(bridged):
    bridged.aws.launch()
    bridged.live(20)
    bridged.bridge = NodeBridge(nodes=ModelNodes(bridged.cluster), source=bridged.aws, settings=bridged.bridge.settings)
    bridged.live(20)
    assert len(bridged.cluster.list("nodes")) == 1
    assert is_ready(bridged.node())


def test_an_answer_of_describe_instances_is_read_as_it_comes():
    launched = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    found = {
        "InstanceId": "i-1",
        "Placement": {"AvailabilityZone": "us-east-1b"},
        "SubnetId": "subnet-1",
        "InstanceType": "m5.large",
        "PrivateDnsName": NAME,
        "State": {"Name": "running"},
        "LaunchTime": launched,
        "Tags": [{"Key": TAG, "Value": "owned"}],
        "InstanceLifecycle": "spot",
        "ImageId": "ami-1",
    }
    instance = instance_of(found)
    assert instance["zone"] == "us-east-1b"
    assert instance["tags"] == {TAG: "owned"}
    assert (instance["lifecycle"], instance["launchTime"]) == ("spot", launched.timestamp())
