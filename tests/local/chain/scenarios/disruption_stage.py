"""Stage of a disruption story: a deployed stack without policy files, groups whose nodes carry the label of a pool, the
`leeward` command, and readers of what AWS and the cluster recorded."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from leeward.disruption.record import DisruptionRecord
from leeward.model.times import parse_instant
from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan, Network
from local.stack import LocalStack
from local.workloads import apply_roles
from tests.local.chain.conftest import Crew, called, forget_what_is_cached
from tests.local.chain.groups.test_disruption import closed_disruption, decided
from tests.local.deployment import deploy

POOL = "story.example/pool"  # label of a node: its group
PRICES = {"m5.large": 0.096, "m5.xlarge": 0.192, "m5.2xlarge": 0.384}
COOLDOWN = 1  # seconds
PACE = 0.25  # real seconds per second of the waits of state machines
DRAIN = {"timeout": "90s", "settle": "1s", "deregistrationTimeout": "0s"}
TAINT = "leeward.dev/disrupted"
OPT_OUT = "leeward.dev/do-not-disrupt"
ALWAYS = {"schedule": "0 0 * * *", "duration": "24h"}  # window that is always open
MERGE = "application/merge-patch+json"
# Functions whose decisions a story looks at
CACHING = ("leeward-disruption-planner", "leeward-disrupt", "leeward-interruption", "leeward-reconciler")


def policy(
    name: str, *, node: Mapping[str, Any] | None = None, requirements: Sequence[Any] = (), **disruption: Any
) -> dict[str, Any]:
    """Return the policy of a pool's groups, NAME and NAME-*; without keywords it has no section for disruption."""
    spec: dict[str, Any] = {"selector": {"groups": [name, f"{name}-*"]}, "drain": DRAIN}
    if disruption:
        spec["disruption"] = {"cooldown": f"{COOLDOWN}s", "budgets": [{"nodes": "100%"}], **disruption}
    if node:
        spec["node"] = node
    if requirements:
        spec["requirements"] = list(requirements)
    return {"apiVersion": "leeward.dev/v1", "kind": "NodePolicy", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Exit code of a command, its JSON and its progress."""

    code: int
    document: Any
    err: str


@dataclass(kw_only=True)
class Stage:
    """Stack and groups of one story. `crews`: by name of the group; `seen`: instances that a later test names again."""

    stack: LocalStack
    network: Network
    crews: dict[str, Crew] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)

    def leeward(self, *arguments: str) -> Answer:
        """Run the command as a person with access to the cluster would."""
        command = [sys.executable, "-m", "leeward.cli.main", *arguments, "--cluster", self.stack.cluster, "-o", "json"]
        done = subprocess.run(command, env=self.stack.environment(), capture_output=True, text=True, check=False)
        return Answer(code=done.returncode, document=json.loads(done.stdout or "null"), err=done.stderr)

    def apply(self, policies: Iterable[Mapping[str, Any]], **settings: Any) -> None:
        """Apply the policies, and ClusterSettings with these keys, as an operator does; functions then see them."""
        document = {"apiVersion": "leeward.dev/v1", "kind": "ClusterSettings", "metadata": {"name": self.stack.cluster}}
        path = self.stack.directory / "applied.yaml"
        path.write_text("---\n".join(json.dumps(one) + "\n" for one in (*policies, {**document, "spec": settings})))
        applied = self.leeward("policy", "apply", str(path), "--yes")
        assert applied.code == 0, applied.err
        self.forget()

    def forget(self) -> None:
        """Let the functions read policies and pauses again: a minute passes."""
        for function in CACHING:
            forget_what_is_cached(self.stack, function)

    def build(
        self,
        name: str,
        size: int,
        *,
        kind: str = "m5.large",
        floor: int = 0,
        pool: str = "",
        within: Network | None = None,
    ) -> Crew:
        """Build a group; `settle` waits for its nodes. Without `pool` that is the name before the first hyphen."""
        tag = f"k8s.io/cluster-autoscaler/node-template/label/{POOL}"
        plan = GroupPlan(name=name, size=size, type=kind, maximum=8, tags={tag: pool or name.partition("-")[0]})
        fleet.build_group(self.stack, within or self.network, plan)
        self.stack.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=name, MinSize=floor)
        made = Crew(stack=self.stack, group=name, instances=self.members(name))
        self.crews[name] = made
        return made

    def settle(self) -> None:
        """Wait until every instance of every group has a Ready node, and fn sync has recorded groups and prices."""
        for crew in self.crews.values():
            crew.until(lambda crew=crew: self.serves(crew.group), f"nodes of {crew.group} Ready")
        called(self.stack, "sync")

    def serves(self, group: str) -> bool:
        """Return whether each instance of the group is InService and has a Ready node without a taint."""
        nodes = ledger.nodes(self.stack)
        desired, serving = ledger.group_size(self.stack, group)
        members = self.members(group)
        ready = [one for one in members if one in nodes and scenario.is_ready(nodes[one])]
        clean = [one for one in ready if not nodes[one]["spec"].get("taints")]
        return len(clean) == len(members) == desired == serving

    def members(self, group: str) -> list[str]:
        """Return the instances of a group."""
        return [str(one["InstanceId"]) for one in fleet.instances_of(self.stack, group)]

    def instance(self, name: str) -> Mapping[str, Any]:
        """Return an instance as EC2 describes it."""
        return self.instances([name])[name]

    def instances(self, names: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return instances by id, as EC2 describes them."""
        found = self.stack.client("ec2").describe_instances(InstanceIds=list(names))["Reservations"]
        return {str(one["InstanceId"]): one for each in found for one in each["Instances"]}

    def states(self, names: Iterable[str]) -> set[str]:
        """Return the states that EC2 reports of these instances."""
        return {str(one["State"]["Name"]) for one in self.instances(names).values()}

    def dollars(self, *groups: str) -> float:
        """Return what the instances of the groups cost an hour, by EC2's types and the price list."""
        names = [name for group in groups for name in self.members(group)]
        return sum(PRICES[one["InstanceType"]] for one in self.instances(names).values()) if names else 0.0

    def executions(self, machine: str) -> list[str]:
        """Return the status of each execution of a state machine, `leeward-` before its name."""
        arn = f"arn:aws:states:{self.stack.region}:{self.stack.account}:stateMachine:leeward-{machine}"
        found = self.stack.client("stepfunctions").list_executions(stateMachineArn=arn)["executions"]
        return [str(one["status"]) for one in found]

    def launches(self) -> int:
        """Return how many LaunchInstances calls the functions have made."""
        calls: Mapping[str, Mapping[str, int]] = self.stack.control("GET", "calls")
        return sum(counts.get("autoscaling:LaunchInstances", 0) for counts in calls.values())

    def decide(self) -> list[str]:
        """Call the planner as its schedule does; return the executions that it has started."""
        return list(called(self.stack, "disruption-planner")["disruptions"])

    def run(self, meanwhile: Callable[[], None] = lambda: None) -> DisruptionRecord:
        """Call the planner until it starts a run, and follow that to its end and to that of its groups' cooldown."""
        crew = next(iter(self.crews.values()))
        decided(self.stack, crew)
        record: DisruptionRecord = closed_disruption(self.stack, crew, meanwhile)
        time.sleep(2 * COOLDOWN)
        return record

    def node(self, instance: str) -> Mapping[str, Any]:
        """Return the Node of an instance."""
        return ledger.nodes(self.stack)[instance]

    def annotations(self, instance: str) -> dict[str, str]:
        """Return Leeward's annotations of a node."""
        noted = self.node(instance)["metadata"].get("annotations") or {}
        return {key: value for key, value in noted.items() if key.startswith("leeward.dev/")}

    def annotate(self, instance: str, key: str, value: str | None) -> None:
        """Set an annotation of a node, or remove it with None."""
        path = f"/api/v1/nodes/{self.node(instance)['metadata']['name']}"
        self.patch(path, {"metadata": {"annotations": {key: value}}})

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        """Change an object by a merge patch."""
        self.stack.kubernetes("PATCH", path, body, MERGE)

    def facts(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the facts of one kind that the cluster recorded, oldest first."""
        facts: list[Mapping[str, Any]] = self.stack.cluster_control("GET", f"history?kind={kind}")
        return facts

    def tainted(self) -> list[str]:
        """Return the nodes that ever got the taint of a disruption, in that order, once for each time."""
        return [one["object"] for one in self.facts("node-tainted") if str(one["taint"]).startswith(TAINT)]

    def untainted(self) -> list[str]:
        """Return the nodes that lost that taint again while they existed."""
        return [one["object"] for one in self.facts("node-untainted") if str(one["taint"]).startswith(TAINT)]

    def evicted_from(self, node: str) -> list[str]:
        """Return the pods, `namespace/name`, whose eviction from this node was accepted."""
        return [one["object"] for one in self.facts("eviction-accepted") if one["node"] == node]

    def first(self, kind: str, **fields: str) -> datetime:
        """Return the moment of the first fact of a kind with these fields."""
        return min(parse_instant(one["at"]) for one in self.facts(kind) if fields.items() <= one.items())

    def events(self, reason: str) -> list[Mapping[str, Any]]:
        """Return the Events with this reason."""
        found = self.stack.kubernetes("GET", "/api/v1/events")["items"]
        return [one for one in found if one["reason"] == reason]

    def apply_workloads(self, *objects: Mapping[str, Any]) -> None:
        """Create workloads."""
        self.stack.kubectl("apply", "-f", "-", stdin=fleet.manifests(objects))

    def pods(self, app: str) -> dict[str, str]:
        """Return the node of each ready pod of a Deployment."""
        pods = self.stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
        mine = [one for one in pods if one["metadata"]["labels"].get("app") == app and scenario.is_ready(one)]
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in mine}

    def verdicts(self, plan: Mapping[str, Any], instance: str) -> dict[str, str]:
        """Return method -> reason, of one node of `leeward plan`."""
        name = self.node(instance)["metadata"]["name"]
        entry = next(one for one in plan["nodes"] if one["node"] == name)
        return {one["method"]: one["reason"] for one in entry["verdicts"]}


@contextmanager
def deployed(directory: Path) -> Iterator[Stage]:
    """Deploy Leeward for a cluster whose policies `leeward policy apply` writes; a caller of the command has access."""
    with LocalStack(directory=directory, boot_delay=0.5, termination_scale=0.1, pod_start=0.3) as stack:
        deploy(stack, {"clusters": [{"name": stack.cluster}]})
        apply_roles(stack)
        fleet.let_in(stack)
        for name in ("sync", "disruption-planner", "reconciler"):
            stack.client("events").disable_rule(Name=f"leeward-{name}-schedule")
        stack.control("PUT", "prices", {"on-demand": PRICES})
        stack.control("PUT", "time-scale", {"factor": PACE})
        yield Stage(stack=stack, network=fleet.build_network(stack))
