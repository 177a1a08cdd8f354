"""What every `ports.load_balancers.LoadBalancers` does: Elastic Load Balancing as the emulator answers, the simulated
balancers, and the fake of the unit tests. Each world has one instance that is a healthy target of its cluster's group.
"""

import time
import uuid
from dataclasses import replace

import pytest

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.load_balancers import AwsLoadBalancers
from leeward.adapters.wiring import SystemClock
from leeward.model import well_known
from leeward.model.load_balancing import LoadBalancerTarget, TargetKind
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from simulation.aws.balancers import SimLoadBalancers, TargetGroup
from simulation.timeline import Timeline
from tests.fakes.builders import CLUSTER, GROUP, an_instance
from tests.fakes.load_balancers import FakeLoadBalancers

DELAY = 6  # seconds, in which a busy machine still sees it draining


class Fake:
    cluster = CLUSTER

    def __init__(self):
        self.instance = an_instance()
        self.balancers = FakeLoadBalancers()
        self._say("healthy")

    def deregister(self):
        self._say("draining")

    def wait(self):
        self._say("unused")

    def _say(self, state):
        target = LoadBalancerTarget(group="web", kind=TargetKind.INSTANCE, id=self.instance.id, port=30080, state=state)
        self.balancers.registered = [target]


class Model:
    """The controller heeds the node's label."""

    cluster = CLUSTER

    def __init__(self):
        self._timeline = Timeline()
        self.instance = an_instance()
        self.balancers = SimLoadBalancers(
            self._timeline, lambda instance: GROUP if instance == self.instance.id else ""
        )
        self.balancers.groups[GROUP] = TargetGroup(notices=0.0, delay=DELAY)
        self._cluster = Cluster(clock=self._timeline.now)
        self._cluster.observe(self.balancers.watch)
        self._cluster.add_node(NodeSpec(name="n", instance_id=self.instance.id))

    def deregister(self):
        self._cluster.patch("nodes", "n", {"metadata": {"labels": {well_known.EXCLUDE_LABEL: "true"}}})

    def wait(self):
        self._timeline.run_until(self._timeline.now() + DELAY + 1)


class Emulator:
    """Each of another cluster: addresses come again in every VPC."""

    def __init__(self, aws, clients):
        self.cluster = f"blue-{uuid.uuid4().hex[:6]}"
        self._client, self._classic = aws.client("elbv2"), aws.client("elb")
        ec2 = aws.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
        run = ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1, SubnetId=subnet)
        raw = run["Instances"][0]
        self.instance = replace(an_instance(raw["InstanceId"]), networks=(raw["PrivateIpAddress"],))
        self._clients = clients
        self._wait_until(lambda: self._runs(ec2))
        self.arn = self.group(vpc, {"elbv2.k8s.aws/cluster": self.cluster})
        self._client.register_targets(TargetGroupArn=self.arn, Targets=[{"Id": self.instance.id, "Port": 30080}])
        self.vpc = vpc

    @property
    def balancers(self):
        """A new process each time, which has seen nothing yet."""
        return AwsLoadBalancers(self._clients, SystemClock())

    def group(self, vpc, tags, kind="instance"):
        made = self._client.create_target_group(
            Name=f"g-{uuid.uuid4().hex[:8]}",
            Protocol="TCP",
            Port=80,
            VpcId=vpc,
            TargetType=kind,
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        arn = made["TargetGroups"][0]["TargetGroupArn"]
        attribute = {"Key": "deregistration_delay.timeout_seconds", "Value": str(DELAY)}
        self._client.modify_target_group_attributes(TargetGroupArn=arn, Attributes=[attribute])
        return arn

    def classic(self, name, tags):
        listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30080}
        self._classic.create_load_balancer(
            LoadBalancerName=name, Listeners=[listener], AvailabilityZones=["us-east-1a"], Tags=tags
        )
        self._classic.register_instances_with_load_balancer(
            LoadBalancerName=name, Instances=[{"InstanceId": self.instance.id}]
        )

    def deregister_classic(self, name):
        self._classic.deregister_instances_from_load_balancer(
            LoadBalancerName=name, Instances=[{"InstanceId": self.instance.id}]
        )

    def deregister(self):
        self._client.deregister_targets(TargetGroupArn=self.arn, Targets=[{"Id": self.instance.id}])

    def wait(self):
        self._wait_until(lambda: not self.balancers.targets(self.cluster, self.instance))

    def register(self, arn, name):
        self._client.register_targets(TargetGroupArn=arn, Targets=[{"Id": name}])

    def remove(self, arn):
        self._client.delete_target_group(TargetGroupArn=arn)

    def _runs(self, ec2):
        found = ec2.describe_instances(InstanceIds=[self.instance.id])
        return found["Reservations"][0]["Instances"][0]["State"]["Name"] == "running"

    def _wait_until(self, true):
        end = time.monotonic() + 120
        while not true():
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.fixture
def emulator(local_aws, monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL": local_aws.endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    return Emulator(local_aws, AwsClients("us-east-1"))


@pytest.fixture(params=["the emulator", "the simulation", "the fake"])
def world(request):
    if request.param == "the emulator":
        return request.getfixturevalue("emulator")
    return Model() if request.param == "the simulation" else Fake()


def states(world):
    return [target.state for target in world.balancers.targets(world.cluster, world.instance)]


def test_a_target_is_in_service_then_draining_then_gone(world):
    (target,) = world.balancers.targets(world.cluster, world.instance)
    assert (target.kind, target.id, target.registered, target.draining) == (
        TargetKind.INSTANCE,
        world.instance.id,
        True,
        False,
    )
    world.deregister()
    assert states(world) == ["draining"]
    world.wait()
    assert states(world) == []


def test_an_instance_that_its_group_holds_no_longer_stays_a_target(world):
    """Detaching takes away the group's tag; the registration refers to the node."""
    tags = {key: value for key, value in world.instance.tags.items() if key != well_known.GROUP_TAG}
    detached = replace(world.instance, tags=tags)
    assert detached.group is None
    assert len(world.balancers.targets(world.cluster, detached)) == 1


def test_other_instances_have_no_part_in_it(world):
    assert list(world.balancers.targets(world.cluster, an_instance("i-0other", group="other"))) == []


class TestElasticLoadBalancing:
    def test_groups_of_other_clusters_and_of_none_are_not_asked(self, emulator):
        for tags in ({"elbv2.k8s.aws/cluster": "green"}, {"team": "web"}):
            emulator.register(emulator.group(emulator.vpc, tags), emulator.instance.id)
        assert len(emulator.balancers.targets(emulator.cluster, emulator.instance)) == 1

    def test_a_group_of_the_cloud_provider_is_the_clusters(self, emulator):
        owned = emulator.group(emulator.vpc, {f"kubernetes.io/cluster/{emulator.cluster}": "owned"})
        emulator.register(owned, emulator.instance.id)
        assert len(emulator.balancers.targets(emulator.cluster, emulator.instance)) == 2

    def test_an_address_of_the_instance_is_its_target(self, emulator):
        by_address = emulator.group(emulator.vpc, {"elbv2.k8s.aws/cluster": emulator.cluster}, kind="ip")
        emulator.register(by_address, emulator.instance.networks[0])
        emulator.register(by_address, "10.9.1.250")
        found = emulator.balancers.targets(emulator.cluster, emulator.instance)
        assert sorted((target.kind, target.id) for target in found) == [
            ("instance", emulator.instance.id),
            ("ip", emulator.instance.networks[0]),
        ]

    def test_a_group_that_is_removed_meanwhile_has_no_targets(self, emulator):
        assert len(emulator.balancers.targets(emulator.cluster, emulator.instance)) == 1
        emulator.remove(emulator.arn)
        assert list(emulator.balancers.targets(emulator.cluster, emulator.instance)) == []

    def test_a_classic_load_balancer_of_the_cluster_has_its_instances_as_targets(self, emulator):
        tag = {"Key": f"kubernetes.io/cluster/{emulator.cluster}", "Value": "owned"}
        emulator.classic("mine", [tag])
        emulator.classic("theirs", [{"Key": "kubernetes.io/cluster/green", "Value": "owned"}])
        found = emulator.balancers.targets(emulator.cluster, emulator.instance)
        assert [(target.group, target.state) for target in found if target.port == 0] == [("mine", "InService")]
        emulator.deregister_classic("mine")
        assert [target.port for target in emulator.balancers.targets(emulator.cluster, emulator.instance)] == [30080]
