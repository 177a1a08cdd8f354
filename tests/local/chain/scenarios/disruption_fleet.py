"""Fleet of the disruption story: a group for each method of voluntary disruption, and one that Leeward leaves alone.

Group worn launches the image that an SSM parameter names, in two subnets of one zone."""

from typing import Any

from local import fleet
from local.demo import scenario
from local.fleet import Network
from local.stack import LocalStack
from tests.local.chain.groups.test_node_group_upgrade import group_of
from tests.local.chain.scenarios.disruption_stage import OPT_OUT, POOL, Stage, policy

IMAGE = "/golden/images/worn"  # SSM parameter that the launch template of group worn names
BIG = "1200m"  # of a node's two CPUs: each such pod has a node for itself
ZONES = [f"us-east-1{zone}" for zone in "abc"]
POLICIES = [
    policy("aged", consolidationPolicy="Never", drift=False, ttlSecondsUntilExpired=20),
    policy("worn", consolidationPolicy="Never", budgets=[{"nodes": 2}]),
    policy(
        "idle",
        consolidationPolicy="WhenEmpty",
        ttlSecondsAfterEmpty=2,
        drift=False,
        budgets=[{"nodes": "100%"}, *({"nodes": 1, "zone": zone} for zone in ZONES)],
    ),
    policy("shop", consolidateAfter="1s", drift=False),
    {**policy("left"), "spec": {**policy("left")["spec"], "interruption": {"enabled": False}}},
]
SWITCHED_OFF = dict.fromkeys(("expiration", "drift", "emptiness", "consolidation"), False)
WORKLOADS = (
    fleet.deployment("aged", 1, grace=1, on={POOL: "aged"}),
    fleet.deployment("free", 1, cpu=BIG, grace=1, on={POOL: "worn"}),
    fleet.deployment("signed", 1, cpu=BIG, grace=1, on={POOL: "worn"}, annotations={OPT_OUT: "true"}),
    *(fleet.deployment("ledger", 4, cpu=BIG, grace=1, on={POOL: "worn"}), fleet.budget("ledger", maxUnavailable=0)),
    *(fleet.deployment("cart", 6, cpu="400m", grace=1, on={POOL: "shop"}), fleet.budget("cart", maxUnavailable=2)),
    fleet.deployment("left", 1, grace=1, on={POOL: "left"}),
    fleet.daemon_set("agent"),
)


def images(stack: LocalStack) -> list[str]:
    """Return the images that EC2 has."""
    return [str(one["ImageId"]) for one in stack.client("ec2").describe_images()["Images"]]


def build(stage: Stage) -> None:
    """Build the groups and wait until their nodes are Ready and every pod runs."""
    stage.build("aged", 1, floor=1)
    stage.build("worn", 6, floor=6, within=_one_zone(stage))
    stage.build("idle", 4)
    stage.build("shop-wide", 3, kind="m5.2xlarge")
    stage.build("shop-small", 0, kind="m5.xlarge")
    stage.build("left", 1)
    _launch_by_parameter(stage)
    stage.apply_workloads(*WORKLOADS)
    stage.settle()
    idle = stage.crews["idle"]
    stage.apply_workloads(_static_pod(idle.node_name(idle.instances[0])))
    wanted = 1 + sum(one["spec"].get("replicas", 0) for one in WORKLOADS)
    idle.until(lambda: _ready_pods(stage) == wanted, "every pod")


def _launch_by_parameter(stage: Stage) -> None:
    """Let group worn launch what an SSM parameter names: at first the image that its nodes have."""
    template, present = group_of(stage.stack, "worn")["LaunchTemplate"]["LaunchTemplateId"], images(stage.stack)[0]
    stage.stack.client("ssm").put_parameter(Name=IMAGE, Value=present, Type="String")
    stage.stack.client("ec2").create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="$Latest", LaunchTemplateData={"ImageId": f"resolve:ssm:{IMAGE}"}
    )


def publish_another_image(stage: Stage) -> None:
    """Let the parameter name another image; the launch template stays as it is."""
    stage.stack.client("ssm").put_parameter(Name=IMAGE, Value=images(stage.stack)[1], Type="String", Overwrite=True)


def _one_zone(stage: Stage) -> Network:
    """Return a second subnet beside that of the first zone."""
    second = stage.stack.client("ec2").create_subnet(
        VpcId=stage.network.vpc, CidrBlock="10.40.100.0/24", AvailabilityZone=ZONES[0]
    )
    return Network(vpc=stage.network.vpc, subnets=(stage.network.subnets[0], str(second["Subnet"]["SubnetId"])))


def _static_pod(node: str) -> dict[str, Any]:
    """Return the mirror pod of a static pod, as a kubelet writes it."""
    spec = {
        "nodeName": node,
        "containers": [{"name": "proxy", "image": "proxy"}],
        "tolerations": [{"operator": "Exists"}],
    }
    about = {"name": "static-proxy", "namespace": "default", "annotations": {"kubernetes.io/config.mirror": "1"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**about, "labels": {"app": "static"}}, "spec": spec}


def _ready_pods(stage: Stage) -> int:
    pods = stage.stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
    return sum(scenario.is_ready(pod) for pod in pods)
