"""UpdateNodegroupVersion rolls a node group: surge, eviction that respects budgets, sizes as before."""

import base64
import uuid

import pytest

from local.cluster.nodes import NodeSpec
from local.cluster.server import ClusterServer

from .conftest import eventually

ROLE = "arn:aws:iam::000000000000:role/eks"
LABELS = {"app": "web"}


@pytest.fixture
def cluster():
    with ClusterServer(name="blue") as server:
        yield server


@pytest.fixture
def nodegroup(aws, ec2, cluster):
    """One node group of one node in a cluster that EKS may drain."""
    eks, name = aws.client("eks"), f"c-{uuid.uuid4().hex[:8]}"
    eks.create_cluster(name=name, roleArn=ROLE, resourcesVpcConfig={"subnetIds": []})
    known = {
        "endpoint": cluster.url,
        "certificateAuthorityData": base64.b64encode(cluster.ca_pem.encode()).decode(),
        "token": cluster.admin_token,
        "evictionSeconds": 1,
    }
    aws.control("PUT", f"eks/{name}", known)
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    eks.create_nodegroup(
        clusterName=name,
        nodegroupName="web",
        nodeRole=ROLE,
        subnets=[subnet],
        instanceTypes=["m5.large"],
        scalingConfig={"minSize": 0, "maxSize": 1, "desiredSize": 1},
    )
    aws.control("PUT", "pace", {"boot": 0.05, "shutdown": 0.1})
    yield Nodegroup(eks, aws.client("autoscaling"), name, cluster)
    eks.delete_nodegroup(clusterName=name, nodegroupName="web")
    aws.control("PUT", "pace", {"boot": 0.2, "shutdown": 1.0})


class Nodegroup:
    """Its instances join the cluster when they are looked at."""

    def __init__(self, eks, asg, name, cluster):
        self._eks, self._asg, self._name, self._cluster = eks, asg, name, cluster

    def group(self):
        described = self._eks.describe_nodegroup(clusterName=self._name, nodegroupName="web")["nodegroup"]
        name = described["resources"]["autoScalingGroups"][0]["name"]
        return self._asg.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]

    def join(self):
        """What kubelets do, for the instances that one look finds in service: their ids."""
        serving = [one for one in self.group()["Instances"] if one["LifecycleState"] == "InService"]
        with self._cluster.lock:
            for one in serving:
                node = f"node-{one['InstanceId']}"
                if self._cluster.model.store.find("nodes", node) is None:
                    spec = {"zone": one["AvailabilityZone"], "instance_type": "m5.large"}
                    self._cluster.model.add_node(NodeSpec(name=node, instance_id=one["InstanceId"], **spec))
        return [one["InstanceId"] for one in serving]

    def start(self, **more):
        asked = {"clusterName": self._name, "nodegroupName": "web", "clientRequestToken": uuid.uuid4().hex}
        return self._eks.update_nodegroup_version(**asked, **more)["update"]["id"]

    def ended(self, update):
        """The update when it runs no more."""

        def look():
            self.join()
            found = self._eks.describe_update(name=self._name, nodegroupName="web", updateId=update)["update"]
            return found if found["status"] != "InProgress" else None

        return eventually(look)


def put_pod(cluster, *, allowed):
    """A pod of a Deployment under a budget that lets so many go; its name when it serves."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }
    deployment = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    budget = {"selector": {"matchLabels": LABELS}, "maxUnavailable": allowed}
    with cluster.lock:
        cluster.model.create("deployments", {"metadata": {"name": "web"}, "spec": deployment}, "default")
        cluster.model.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget}, "default")
    (name,) = eventually(lambda: serving(cluster))
    return name


def serving(cluster):
    with cluster.lock:
        found = [pod for pod in cluster.model.store.each("pods") if "deletionTimestamp" not in pod["metadata"]]
        return [pod["metadata"]["name"] for pod in found if pod.get("status", {}).get("phase") == "Running"]


def test_every_instance_is_replaced_and_the_sizes_are_as_before(nodegroup):
    (old,) = eventually(nodegroup.join)
    assert nodegroup.ended(nodegroup.start())["status"] == "Successful"
    (new,) = eventually(lambda: [one for one in nodegroup.join() if one != old])
    group = nodegroup.group()
    assert (group["DesiredCapacity"], group["MaxSize"]) == (1, 1)
    assert {one["InstanceId"]: one["LaunchTemplate"]["Version"] for one in group["Instances"]}[new] == "2"


def test_a_budget_that_never_allows_it_fails_the_update_and_names_the_node(nodegroup, cluster):
    (old,) = eventually(nodegroup.join)
    pod = put_pod(cluster, allowed=0)
    ended = nodegroup.ended(nodegroup.start())
    assert ended["status"] == "Failed"
    assert [(one["errorCode"], one["resourceIds"]) for one in ended["errors"]] == [
        ("PodEvictionFailure", [f"node-{old}"])
    ]
    assert serving(cluster) == [pod]
    assert old in nodegroup.join()


def test_force_deletes_what_may_not_be_evicted(nodegroup, cluster):
    eventually(nodegroup.join)
    pod = put_pod(cluster, allowed=0)
    assert nodegroup.ended(nodegroup.start(force=True))["status"] == "Successful"
    (other,) = eventually(lambda: serving(cluster))
    assert other != pod


def test_forced_after_a_failure_it_ends_at_the_sizes_of_the_node_group(nodegroup, cluster):
    eventually(nodegroup.join)
    put_pod(cluster, allowed=0)
    assert nodegroup.ended(nodegroup.start())["status"] == "Failed"
    assert nodegroup.group()["DesiredCapacity"] == 2, "its surge stays"
    assert nodegroup.ended(nodegroup.start(force=True))["status"] == "Successful"
    group = nodegroup.group()
    assert (group["DesiredCapacity"], group["MaxSize"]) == (1, 1)


def test_a_template_that_is_not_the_groups_own_is_refused(nodegroup):
    with pytest.raises(Exception, match="InvalidParameterException"):
        nodegroup.start(launchTemplate={"name": "another", "version": "1"})
