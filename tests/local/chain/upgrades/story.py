"""An upgrade of one group through the command line, and what the local AWS and the local cluster recorded of it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leeward.adapters.aws.table import DynamoTable
from leeward.adapters.aws.workflow_records import DynamoUpgrades
from leeward.model.times import parse_instant
from leeward.upgrade.record import UpgradeRecord
from local import fleet
from local.demo import ledger
from local.stack import LocalStack
from tests.local.chain.conftest import NEVER_JOIN, Crew
from tests.local.chain.groups.test_disruption import Clients
from tests.local.chain.groups.test_node_group_upgrade import another_image, group_of

MACHINE = "leeward-node-group-upgrade"
TAINT = "leeward.dev/disrupted="
Leeward = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact of the cluster's own record. `instance`: that of the node that it is about, or that the pod is on."""

    at: datetime
    kind: str
    object: str
    instance: str
    raw: Mapping[str, Any]

    @property
    def of_workload(self) -> bool:
        return str(self.raw.get("owner", "")).startswith("ReplicaSet/")

    @property
    def requested(self) -> bool:
        """Whether it is the taint that a node gets when its termination is requested."""
        return self.kind == "node-tainted" and str(self.raw["taint"]).startswith(TAINT)

    @property
    def disrupts(self) -> bool:
        """Whether it takes the node out of service."""
        return self.requested or self.kind in {"node-cordoned", "eviction-accepted", "node-deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One scaling activity of a group. `instance`: empty where none could be launched; `shrinks`: it is a termination
    with decrement.
    """

    at: datetime
    description: str
    instance: str
    shrinks: bool

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Activity":
        description = str(raw["Description"])
        found = re.search(r"\bi-[0-9a-f]+", description)
        instance = found.group() if found else ""
        shrinks = "shrinking the capacity" in str(raw["Cause"])
        return cls(at=raw["StartTime"], description=description, instance=instance, shrinks=shrinks)


def facts_of(stack: LocalStack) -> Iterator[Fact]:
    """The cluster's record in its order. A name belongs to the last node that was created with it."""
    instances: dict[str, str] = {}
    for raw in stack.cluster_control("GET", "history"):
        name = str(raw.get("node") or raw["object"])
        if raw["kind"] == "node-created":
            instances[name] = str(raw["providerID"]).rsplit("/", 1)[-1]
        yield Fact(
            at=parse_instant(str(raw["at"])),
            kind=str(raw["kind"]),
            object=str(raw["object"]),
            instance=instances.get(name, ""),
            raw=raw,
        )


@dataclass(kw_only=True)
class Story:
    """The upgrade. `old`: the instances that the group had before; `execution`: of the last start."""

    team: Crew
    leeward: Leeward
    old: frozenset[str] = field(init=False)
    before: Mapping[str, Any] = field(init=False)
    execution: str = ""

    def __post_init__(self) -> None:
        self.old, self.before = frozenset(self.team.instances), self.described

    def pin(self) -> None:
        """Let the group name its launch template version by its number, as most Terraform does."""
        template = self.described["LaunchTemplate"]["LaunchTemplateId"]
        self.stack.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=self.group, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"}
        )
        self.before = self.described

    @property
    def stack(self) -> LocalStack:
        return self.team.stack

    @property
    def group(self) -> str:
        return self.team.group

    @property
    def described(self) -> Mapping[str, Any]:
        """The group, as Auto Scaling describes it now."""
        found: Mapping[str, Any] = group_of(self.stack, self.group)
        return found

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Minimum, desired and maximum size now."""
        group = self.described
        return group["MinSize"], group["DesiredCapacity"], group["MaxSize"]

    @property
    def members(self) -> frozenset[str]:
        return frozenset(str(one["InstanceId"]) for one in self.described["Instances"])

    @property
    def versions(self) -> set[str]:
        """Launch template versions of the members."""
        return {str(one["LaunchTemplate"]["Version"]) for one in self.described["Instances"]}

    def zones_of(self, instances: Iterable[str]) -> list[str]:
        """Zones of these instances, sorted."""
        reservations = self.stack.client("ec2").describe_instances(InstanceIds=list(instances))["Reservations"]
        return sorted(str(one["Placement"]["AvailabilityZone"]) for each in reservations for one in each["Instances"])

    def another_image(self) -> str:
        return str(another_image(self.stack, self.group))

    def command(self, *arguments: str) -> Any:
        """Answer of `leeward upgrade …`, which succeeds."""
        code, out, err = self.leeward("upgrade", *arguments)
        assert code == 0, (arguments, out, err)
        return json.loads(out)

    def start(self, *options: str) -> "Story":
        """`leeward upgrade start`: to another image, unless the options name no target but resume."""
        self.execution = str(self.command("start", self.group, "--yes", *options)["execution"])
        return self

    def to_another_image(self, *options: str) -> "Story":
        return self.start("--ami", self.another_image(), *options)

    def request(self, action: str) -> None:
        """`leeward upgrade pause|resume|abort|rollback`; one that needs an execution becomes this story's."""
        sure = ("--yes",) if action in {"abort", "rollback"} else ()
        answer = self.command(action, self.group, *sure)
        self.execution = str(answer["execution"] or self.execution)

    def let_join(self, instances: Iterable[str]) -> None:
        """Let these join, after `keep_from_joining` of the crew."""
        self.stack.client("ec2").delete_tags(Resources=list(instances), Tags=[{"Key": NEVER_JOIN}])

    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.command("status", self.group)
        return found

    def until_phase(self, *phases: str) -> Mapping[str, Any]:
        def look() -> Mapping[str, Any] | None:
            status = self.status()
            return status if status["phase"] in phases else None

        found: Mapping[str, Any] = self.team.until(look, f"{self.group} {' or '.join(phases)}")
        return found

    def execution_now(self) -> Mapping[str, Any]:
        """The execution, as Step Functions describes it now."""
        prefix = f"arn:aws:states:{self.stack.region}:{self.stack.account}:execution"
        arn = f"{prefix}:{MACHINE}:{self.execution}"
        found: Mapping[str, Any] = self.stack.client("stepfunctions").describe_execution(executionArn=arn)
        return found

    def ended(self) -> Mapping[str, Any]:
        """The execution once it has ended."""

        def look() -> Mapping[str, Any] | None:
            found = self.execution_now()
            return found if found["status"] != "RUNNING" else None

        found = self.team.until(look, f"the end of {self.execution}")
        assert found is not None
        return found

    def succeeded(self) -> "Story":
        outcome = self.ended()
        assert outcome["status"] == "SUCCEEDED", outcome
        return self

    def facts(self, *kinds: str) -> list[Fact]:
        """Facts about the old nodes and the pods on them."""
        return [fact for fact in self.all_facts(*kinds) if fact.instance in self.old]

    def all_facts(self, *kinds: str) -> list[Fact]:
        """Facts about all nodes of the cluster and the pods on them."""
        return [fact for fact in facts_of(self.stack) if not kinds or fact.kind in kinds]

    def recorded(self) -> UpgradeRecord:
        """The record in the table."""
        found = DynamoUpgrades(DynamoTable(Clients(self.stack), "leeward")).read(self.group)
        assert found is not None
        return found

    def requested(self) -> dict[str, datetime]:
        """Old instance -> when its termination was first requested, by the taint of its node, in that order."""
        first: dict[str, datetime] = {}
        for fact in self.facts("node-tainted"):
            if fact.requested:
                first.setdefault(fact.instance, fact.at)
        return first

    def until_requested(self, count: int) -> None:
        self.team.until(lambda: len(self.requested()) >= count, f"{count} terminations requested in {self.group}")

    def terminations(self) -> dict[str, datetime]:
        """Instance -> when the group began to terminate it."""
        return {one.instance: one.at for one in self.activities("Terminating")}

    def launched(self) -> list[Activity]:
        """Its launches since the upgrade began, oldest first."""
        return [one for one in self.activities("Launching") if one.instance not in self.old]

    def activities(self, word: str) -> list[Activity]:
        """The group's scaling activities that begin with the word, oldest first."""
        answer = self.stack.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=self.group)
        found = map(Activity.of, answer["Activities"])
        return sorted((one for one in found if one.description.startswith(word)), key=lambda one: one.at)

    @property
    def untouched(self) -> bool:
        """Whether no old node was cordoned, drained or terminated."""
        touched = any(fact.disrupts for fact in self.facts())
        return not touched and self.old <= self.members and not self.activities("Terminating")

    def is_as_before(self, *, version: str) -> None:
        """Assert that the group has its sizes, zones and processes back, on this version, and nothing is cordoned."""
        group = self.described
        assert self.sizes == (self.before["MinSize"], self.before["DesiredCapacity"], self.before["MaxSize"])
        assert len(self.members) == self.before["DesiredCapacity"]
        found = (self.versions, group["LaunchTemplate"]["Version"])
        assert found == ({version}, version), found
        assert group["SuspendedProcesses"] == []
        assert self.zones_of(self.members) == sorted(one["AvailabilityZone"] for one in self.before["Instances"])
        nodes = ledger.nodes(self.stack)
        specs = [nodes[name]["spec"] for name in self.members]
        assert not [spec for spec in specs if spec.get("unschedulable") or spec.get("taints")]

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Apply objects and wait until the Deployments among them are ready."""
        self.stack.kubectl("apply", "-f", "-", stdin=fleet.manifests(objects))
        for thing in objects:
            if thing["kind"] == "Deployment":
                self.until_ready(thing["metadata"]["name"], thing["spec"]["replicas"])

    def until_ready(self, name: str, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/default/deployments/{name}"

        def ready() -> bool:
            return bool(self.stack.kubernetes("GET", path).get("status", {}).get("readyReplicas") == replicas)

        self.team.until(ready, f"{replicas} of {name} ready")

    def workload(self, name: str, replicas: int, *, cpu: str = "100m", grace: int = 1) -> dict[str, Any]:
        """A Deployment of pods that only nodes of this group host."""
        return fleet.deployment(name, replicas, cpu=cpu, grace=grace, on={"group": self.group})


def most_together(facts: Iterable[Fact]) -> int:
    """The highest number of nodes at one moment whose termination was requested and that still had workload pods."""
    pods: dict[str, set[str]] = {}
    requested: set[str] = set()
    most = 0
    for fact in facts:
        if fact.requested:
            requested.add(fact.instance)
        elif fact.of_workload and fact.kind == "pod-started":
            pods.setdefault(fact.instance, set()).add(str(fact.raw["uid"]))
        elif fact.of_workload and fact.kind == "pod-deleted":
            pods.get(fact.instance, set()).discard(str(fact.raw["uid"]))
        most = max(most, sum(bool(pods.get(one)) for one in requested))
    return most
