"""Fleet of the upgrade demo, and its users' actions: two of their budgets block it, except in the small variant."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.policy.document import UpdatePolicy
from leeward.upgrade.surge.sizes import parallelism
from local import fleet
from local.demo import scenario
from local.fleet import GroupPlan
from local.stack import ROOT, LocalStack
from local.workloads import merge

GROUP = "shop-workers"
POLICY = Path(__file__).parent / "policy.yaml"
POLICY_SHARE = UpdatePolicy(max_unavailable=None, max_unavailable_percentage=33)
TERMINATION, UPGRADE = "leeward-node-termination", "leeward-node-group-upgrade"
MACHINES = (TERMINATION, UPGRADE)
IMPOSSIBLE, BLOCKING = "vault", "orders"  # each a Deployment and the budget over it
ENOUGH, TOO_FEW = 3, 2  # replicas of `orders`, whose budget wants two of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Nodes and workloads with their budgets, and whether two of these budgets block."""

    size: int
    workloads: tuple[dict[str, Any], ...]
    in_the_way: bool

    @property
    def together(self) -> int:
        """Number of old nodes that may be drained at once."""
        return parallelism(POLICY_SHARE, self.size)

    @property
    def replicas(self) -> int:
        """Number of pods that have to run at the end."""
        return sum(thing["spec"].get("replicas", 0) for thing in self.workloads)


WHOLE = Cast(
    size=12,
    workloads=(
        *(fleet.deployment("web", 24), fleet.budget("web", maxUnavailable="25%")),
        *(fleet.deployment("api", 12), fleet.budget("api", minAvailable="60%")),
        *(fleet.deployment(BLOCKING, ENOUGH), fleet.budget(BLOCKING, minAvailable=2)),
        *(fleet.deployment(IMPOSSIBLE, 2), fleet.budget(IMPOSSIBLE, maxUnavailable=0)),
        fleet.daemon_set("agent"),
    ),
    in_the_way=True,
)
SMALL = Cast(
    size=3,
    workloads=(fleet.deployment("web", 9), fleet.budget("web", maxUnavailable="25%"), fleet.daemon_set("agent")),
    in_the_way=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """State of the group before the upgrade, which has to be restored. `zones`: members in each; `image`: the new
    one.
    """

    instances: frozenset[str]
    sizes: tuple[int, int, int]  # minimum, desired, maximum
    zones: Mapping[str, int]
    image: str


def settings(stack: LocalStack) -> dict[str, Any]:
    """Return the CDK context of the demo's deployment."""
    return {"clusters": [{"name": stack.cluster, "policies": [str(POLICY.relative_to(ROOT))]}]}


def build_fleet(stack: LocalStack, cast: Cast) -> None:
    """Build nodes in three zones; the group has its MaxSize, so that this has to be raised during the upgrade."""
    fleet.build_group(stack, fleet.build_network(stack), GroupPlan(name=GROUP, size=cast.size, maximum=cast.size))


def settled(stack: LocalStack, cast: Cast) -> bool:
    """Return whether every node is Ready and every pod runs."""
    nodes = stack.kubernetes("GET", "/api/v1/nodes")["items"]
    return sum(scenario.is_ready(node) for node in nodes) == cast.size and ready_pods(stack) == cast.replicas


def ready_pods(stack: LocalStack) -> int:
    """Return the number of ready pods of the workloads."""
    return sum(scenario.is_ready(pod) for pod in stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"])


def described(stack: LocalStack) -> Mapping[str, Any]:
    """Return the group as Auto Scaling describes it."""
    answer = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
    found: Mapping[str, Any] = answer["AutoScalingGroups"][0]
    return found


def zones_of(group: Mapping[str, Any]) -> dict[str, int]:
    """Return the members in each zone."""
    zones = [str(member["AvailabilityZone"]) for member in group["Instances"]]
    return {zone: zones.count(zone) for zone in sorted(set(zones))}


def sizes_of(group: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return minimum, desired, maximum."""
    return group["MinSize"], group["DesiredCapacity"], group["MaxSize"]


def before(stack: LocalStack) -> Before:
    """Return the state before the upgrade, read once the fleet runs; the new image differs from the group's."""
    group, ec2 = described(stack), stack.client("ec2")
    versions = ec2.describe_launch_template_versions(LaunchTemplateName=GROUP, Versions=["$Latest"])
    present = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"]
    return Before(
        instances=frozenset(str(member["InstanceId"]) for member in group["Instances"]),
        sizes=sizes_of(group),
        zones=zones_of(group),
        image=next(str(one["ImageId"]) for one in ec2.describe_images()["Images"] if one["ImageId"] != present),
    )


def fix(stack: LocalStack) -> None:
    """Apply the fix of the finding: the impossible budget allows one eviction at a time."""
    merge(stack, "PodDisruptionBudget", IMPOSSIBLE, {"spec": {"maxUnavailable": 1}})


def scale(stack: LocalStack, replicas: int) -> None:
    """Set the size of `orders`, as a user does; with TOO_FEW its budget allows no eviction."""
    merge(stack, "Deployment", BLOCKING, {"spec": {"replicas": replicas}})


def running(stack: LocalStack) -> int:
    """Return the number of executions of either state machine that have not ended."""
    found = [status for name in MACHINES for _, status in executions(stack, name)]
    return found.count("RUNNING")


def executions(stack: LocalStack, machine: str) -> list[tuple[str, str]]:
    """Return ARN and status, the last one first."""
    client = stack.client("stepfunctions")
    arn = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:{machine}"
    pages = client.get_paginator("list_executions").paginate(stateMachineArn=arn)
    runs = sorted((run for page in pages for run in page["executions"]), key=lambda run: run["startDate"], reverse=True)
    return [(str(run["executionArn"]), str(run["status"])) for run in runs]


def upgrades(stack: LocalStack) -> list[str]:
    """Return the status of each execution of the upgrade, the last one first, with its cause where it failed."""
    client, found = stack.client("stepfunctions"), []
    for arn, status in executions(stack, UPGRADE):
        cause = (
            client.describe_execution(executionArn=arn).get("cause") if status not in {"SUCCEEDED", "RUNNING"} else ""
        )
        found.append(f"{status}{f' ({cause})' if cause else ''}")
    return found
