"""Content of the stack of `make local`: two node groups in three zones with prices, quotas and images of the cluster's
version, Leeward, workloads under budgets.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from leeward.upgrade.targets import IMAGES
from local import fleet
from local.command import leeward
from local.demo import scenario
from local.fleet import GroupPlan
from local.interactive import notifications
from local.stack import ROOT, LocalStack
from local.workloads import apply_objects, read

HERE = Path(__file__).parent
POLICY, WORKLOADS, ACCESS = HERE / "policy.yaml", HERE / "workloads.yaml", HERE / "access.yaml"
ROLES = ROOT / "manifests" / "cluster-role.yaml"
VIEWERS = "local:viewers"  # the group of access.yaml
GROUPS = (GroupPlan(name="web-spot", size=5, spot=True), GroupPlan(name="web-on-demand", size=4))
NODES = sum(plan.size for plan in GROUPS)
# Dollars an hour, as us-east-1 has them on demand; spot prices differ by zone.
PRICES = {
    "on-demand": {"m5.large": 0.096, "m5.xlarge": 0.192},
    "spot": {
        "m5.large": {"us-east-1a": 0.0371, "us-east-1b": 0.0352, "us-east-1c": 0.0388},
        "m5.xlarge": {"us-east-1a": 0.0742, "us-east-1b": 0.0704, "us-east-1c": 0.0776},
    },
}
VCPUS = {"L-1216C47A": 64, "L-34B43A08": 64}  # quotas of standard instances, on demand and spot
RELEASES = ("20260801", "20260901")  # of the image that the groups have, and of the newer one


def settings(stack: LocalStack) -> dict[str, Any]:
    """Return the CDK context of the deployment. It names no policies, so that `leeward policy apply` writes them."""
    topic = stack.client("sns").create_topic(Name="alarms")["TopicArn"]
    return {"clusters": [{"name": stack.cluster}], "alarmTopic": topic}


def build_groups(stack: LocalStack) -> None:
    """Build the network, images, prices and quotas, both groups, and a queue of what Leeward notifies of."""
    stack.control("PUT", "prices", PRICES)
    stack.control("PUT", "quotas", VCPUS)
    notifications.collect(stack)
    network, image = fleet.build_network(stack), publish_images(stack)
    for plan in GROUPS:
        fleet.build_group(stack, network, replace(plan, image=image))


def publish_images(stack: LocalStack) -> str:
    """Register two images of the cluster's Kubernetes version, the newer of them behind the alias `al2023@VERSION`;
    return the older.
    """
    version = kubernetes_version(stack)
    ec2 = stack.client("ec2")
    older, newer = (
        ec2.register_image(
            Name=f"amazon-eks-node-al2023-x86_64-standard-{version}-v{release}",
            Architecture="x86_64",
            RootDeviceName="/dev/xvda",
        )["ImageId"]
        for release in RELEASES
    )
    parameter = IMAGES.format(version=version, arch="x86_64")
    stack.client("ssm").put_parameter(Name=parameter, Value=newer, Type="String")
    return str(older)


def kubernetes_version(stack: LocalStack) -> str:
    """Return the version of the control plane, such as 1.36."""
    return str(stack.client("eks").describe_cluster(name=stack.cluster)["cluster"]["version"])


def install(stack: LocalStack) -> float:
    """Deploy Leeward, apply its roles, the policy and the workloads; return the seconds of the deployment."""
    seconds = stack.deploy(settings(stack))
    leeward(stack, "policy", "apply", str(POLICY), "--cluster", stack.cluster, "--yes")
    apply_objects(stack, [*read(ROLES), *read(WORKLOADS)])
    return seconds


def let_in(stack: LocalStack) -> None:
    """Create the caller's access entry. It may read Leeward's roles as well, which `leeward doctor` checks."""
    apply_objects(stack, read(ACCESS))
    fleet.let_in(stack, VIEWERS)


def joined(stack: LocalStack) -> bool:
    """Return whether every node is Ready."""
    return sum(map(scenario.is_ready, scenario.instances_nodes(stack))) >= NODES


def settled(stack: LocalStack) -> bool:
    """Return whether every node is Ready and every pod of the workloads runs."""
    pods = stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
    wanted = sum(int(thing["spec"].get("replicas", 0)) for thing in read(WORKLOADS))
    return joined(stack) and sum(map(scenario.is_ready, pods)) >= wanted
