"""Content of the stack of `make local`: two node groups in three zones, Leeward, workloads under budgets."""

from pathlib import Path
from typing import Any

from local import fleet
from local.demo import scenario
from local.fleet import GroupPlan
from local.stack import ROOT, LocalStack
from local.workloads import apply_objects, read

HERE = Path(__file__).parent
POLICY, WORKLOADS, ACCESS = HERE / "policy.yaml", HERE / "workloads.yaml", HERE / "access.yaml"
ROLES = ROOT / "manifests" / "cluster-role.yaml"
VIEWERS = "local:viewers"  # the group of access.yaml
GROUPS = (GroupPlan(name="web-spot", size=5, spot=True), GroupPlan(name="web-on-demand", size=4))
NODES = sum(plan.size for plan in GROUPS)


def settings(stack: LocalStack) -> dict[str, Any]:
    """Return the CDK context of the deployment."""
    return {"clusters": [{"name": stack.cluster, "policies": [str(POLICY.relative_to(ROOT))]}]}


def build_groups(stack: LocalStack) -> None:
    """Build the network and both groups."""
    network = fleet.build_network(stack)
    for plan in GROUPS:
        fleet.build_group(stack, network, plan)


def install(stack: LocalStack) -> float:
    """Deploy Leeward, apply its roles and the workloads; return the seconds of the deployment."""
    seconds = stack.deploy(settings(stack))
    apply_objects(stack, [*read(ROLES), *read(WORKLOADS)])
    return seconds


def let_in(stack: LocalStack) -> None:
    """Create the caller's access entry. It may read Leeward's roles as well, which `leeward doctor` checks."""
    apply_objects(stack, read(ACCESS))
    fleet.let_in(stack, VIEWERS)


def newer_image(stack: LocalStack) -> str:
    """Return an image that the groups do not have, for an upgrade."""
    images = [str(image["ImageId"]) for image in stack.client("ec2").describe_images()["Images"]]
    return images[1]  # a group is built with the first


def joined(stack: LocalStack) -> bool:
    """Return whether every node is Ready."""
    return sum(map(scenario.is_ready, scenario.instances_nodes(stack))) >= NODES


def settled(stack: LocalStack) -> bool:
    """Return whether every node is Ready and every pod of the workloads runs."""
    pods = stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
    wanted = sum(int(thing["spec"].get("replicas", 0)) for thing in read(WORKLOADS))
    return joined(stack) and sum(map(scenario.is_ready, pods)) >= wanted
