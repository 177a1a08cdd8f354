"""The bridge's view of EC2, against a model of EC2's API, and the bridge's own thread."""

import threading
import time

import boto3
import pytest
from moto import mock_aws

from local.cluster.bridge import BridgeSettings, BridgeThread, NodeBridge
from local.cluster.instances import Ec2Instances, Instance
from local.cluster.model import Cluster
from local.cluster.objects import is_ready
from local.cluster.registry import ModelNodes

TAG = "kubernetes.io/cluster/demo"


@pytest.fixture
def ec2(monkeypatch):
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "testing")
    with mock_aws():
        yield boto3.client("ec2", region_name="us-east-1")


def launched(ec2, tag: str) -> str:
    image = ec2.describe_images()["Images"][0]["ImageId"]
    answer = ec2.run_instances(
        ImageId=image,
        MinCount=1,
        MaxCount=1,
        InstanceType="m5.large",
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": tag, "Value": "owned"}]}],
    )
    return answer["Instances"][0]["InstanceId"]


def test_instances_tagged_for_the_cluster_are_listed_until_they_are_terminated(ec2):
    mine, _ = launched(ec2, TAG), launched(ec2, "kubernetes.io/cluster/another")
    source = Ec2Instances("demo", region="us-east-1")
    (instance,) = source.list_instances()
    assert instance["instanceId"] == mine
    assert instance["state"] == "running"
    assert instance["zone"].startswith("us-east-1")
    assert instance["privateDnsName"]
    ec2.terminate_instances(InstanceIds=[mine])
    assert source.list_instances() == []


class Flaky:
    """Fails first, then answers."""

    def __init__(self) -> None:
        self.asked = 0

    def list_instances(self) -> list[Instance]:
        self.asked += 1
        if self.asked == 1:
            raise ConnectionError("not yet")
        return [
            Instance(
                instanceId="i-1",
                zone="us-east-1a",
                subnetId="subnet-1",
                instanceType="m5.large",
                privateDnsName="",
                state="running",
                launchTime=0.0,
                tags={TAG: "owned"},
                lifecycle=None,
            )
        ]


def test_the_thread_outlives_a_source_that_fails_and_stops_when_asked():
    cluster, lock = Cluster(clock=time.time), threading.RLock()
    settings = BridgeSettings(boot_delay=0.0, ready_delay=0.0, poll_interval=0.01)
    thread = BridgeThread(
        NodeBridge(nodes=ModelNodes(cluster), source=Flaky(), settings=settings), lock=lock, clock=time.time
    )
    thread.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with lock:
            node = cluster.store.find("nodes", "i-1")
        if node is not None and is_ready(node):
            break
        time.sleep(0.01)
    thread.stop()
    assert node is not None
    assert is_ready(node)


class Listed:
    """Answers what it is given."""

    def __init__(self) -> None:
        self.found: list[Instance] = []

    def list_instances(self) -> list[Instance]:
        return self.found


def test_instances_that_have_not_changed_for_long_are_looked_at_less_often_until_the_next_change():
    now, source, pauses = [0.0], Listed(), []
    nodes, settings = ModelNodes(Cluster(clock=lambda: now[0])), BridgeSettings(poll_interval=0.5)
    bridge = NodeBridge(nodes=nodes, source=source, settings=settings)
    thread = BridgeThread(bridge, lock=threading.RLock(), clock=lambda: now[0])
    flaky = Flaky()
    with pytest.raises(ConnectionError):
        flaky.list_instances()
    listing = flaky.list_instances()
    for seconds, found in ((1.0, listing), (5.0, listing), (12.0, listing), (13.0, []), (20.0, []), (24.0, [])):
        now[0], source.found = seconds, found
        thread._poll()
        pauses.append(thread._pause())
    assert pauses == [0.5, 0.5, 1.5, 0.5, 0.5, 1.5]
