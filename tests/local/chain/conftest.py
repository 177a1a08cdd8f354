"""A small crew of nodes for each test of a deployed stack, and what a test does with the stack."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan, Network
from local.stack import LocalStack

NUMBERS = itertools.count(1)
NEVER_JOIN = "local.leeward.dev/never-join"
LABEL_TAG = "k8s.io/cluster-autoscaler/node-template/label/group"
PATIENCE = 600.0  # seconds: only how long a test that fails takes, so that a busy machine fails none
T = TypeVar("T")


@dataclass(kw_only=True)
class Crew:
    """One group of instances whose nodes are Ready, apart from the other tests' groups."""

    stack: LocalStack
    group: str
    instances: list[str] = field(default_factory=list)

    def node_name(self, instance: str) -> str:
        """The name of its Node. Raises KeyError when it is gone."""
        return str(ledger.nodes(self.stack)[instance]["metadata"]["name"])

    def run_pods(self, *objects: dict[str, Any], instance: str) -> None:
        """Apply workloads, bound to one instance's node, and wait until they run there."""
        node = self.node_name(instance)
        for thing in objects:
            if thing["kind"] == "Deployment":
                thing["spec"]["template"]["spec"]["nodeSelector"] = {"group": self.group}
        self.stack.kubectl("label", "node", node, f"group={self.group}")
        self.stack.kubectl("apply", "-f", "-", stdin=fleet.manifests(objects))
        wanted = sum(thing["spec"].get("replicas", 0) for thing in objects)
        self.until(lambda: len(self.pods_on(node)) >= wanted, f"{wanted} pods on {node}")

    def pods_on(self, node: str) -> list[str]:
        """Names of ready workload pods there."""
        pods = self.stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
        return [
            pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == node and scenario.is_ready(pod)
        ]

    def reported_about(self, name: str) -> list[dict[str, Any]]:
        """Leeward's Kubernetes Events about the object that has this name now, or had it last: an address, and with it
        the name of a node, is given out again. Events of kubelets give the node's name as its uid.
        """
        found = self.stack.kubernetes("GET", "/api/v1/events")["items"]
        ours = [event for event in found if event["source"]["component"] == "leeward"]
        about = [event for event in ours if event["involvedObject"]["name"] == name]
        last = max(about, key=lambda event: event["metadata"]["creationTimestamp"], default=None)
        return [one for one in about if last and one["involvedObject"].get("uid") == last["involvedObject"].get("uid")]

    def violations(self, budget: str) -> list[Any]:
        """Moments at which this PodDisruptionBudget was broken; other tests break theirs on purpose."""
        return [one for one in ledger.budget_violations(self.stack) if one["pdb"] == f"default/{budget}"]

    def record(self, instance: str) -> ledger.Termination | None:
        """What the table says."""
        return ledger.termination(self.stack, instance)

    def closed(self, instance: str) -> ledger.Termination:
        """The record, once it is closed."""

        def look() -> ledger.Termination | None:
            found = self.record(instance)
            return found if found is not None and found.status == "closed" else None

        return self.until(look, f"the record of {instance} closed")

    def until(self, look: Callable[[], T], what: str) -> T:
        """What the first look that is true has seen. The failure says how things stand."""
        deadline = time.monotonic() + PATIENCE
        while not (found := look()):
            if time.monotonic() > deadline:
                runs, records = ledger.executions(self.stack), ledger.terminations(self.stack)
                raise AssertionError(f"{what}: not within {PATIENCE:.0f} s; executions {runs}; records {records}")
            time.sleep(0.2)
        return found

    def keep_from_joining(self) -> None:
        """Instances that the group launches from now on run without their node, until they lose this tag."""
        tag = {"Key": NEVER_JOIN, "Value": "true", "PropagateAtLaunch": True}
        named = {"ResourceId": self.group, "ResourceType": "auto-scaling-group"}
        self.stack.client("autoscaling").create_or_update_tags(Tags=[{**tag, **named}])

    def in_state(self, lifecycle: str) -> list[str]:
        """Instances of the group of which Auto Scaling says so now."""
        members = fleet.instances_of(self.stack, self.group)
        return [str(one["InstanceId"]) for one in members if one["LifecycleState"] == lifecycle]

    def reconcile(self) -> dict[str, Any]:
        """What the schedule does once a minute."""
        return called(self.stack, "reconciler")


def called(stack: LocalStack, function: str) -> dict[str, Any]:
    """What a function answers that a schedule calls: `sync`, `reconciler`, `decide`."""
    answer = stack.client("lambda").invoke(FunctionName=f"leeward-{function}")
    found: dict[str, Any] = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, found
    return found


@pytest.fixture
def swept_by_schedule(stack: LocalStack) -> Iterator[None]:
    """The reconciler runs once a minute meanwhile, as it does on AWS."""
    stack.client("events").enable_rule(Name="leeward-reconciler-schedule")
    yield
    stack.client("events").disable_rule(Name="leeward-reconciler-schedule")


@pytest.fixture(scope="module")
def crew(stack: LocalStack, network: Network) -> Callable[..., Crew]:
    """Make a group of Ready nodes: `crew(2, spot=True, hook=True)`."""

    def build(
        size: int,
        *,
        spot: bool = False,
        hook: bool = False,
        name: str = "web",
        within: Network | None = None,
        maximum: int = 12,
        labelled: bool = False,
    ) -> Crew:
        """`labelled`: every node of the group, later ones too, carries the label `group` with the group's name."""
        full_name = f"{name}-{next(NUMBERS)}"
        tags = {LABEL_TAG: full_name} if labelled else {}
        plan = GroupPlan(name=full_name, size=size, spot=spot, maximum=maximum, tags=tags)
        fleet.build_group(stack, within or network, plan)
        if hook:
            called(stack, "sync")
        instances = [str(member["InstanceId"]) for member in fleet.instances_of(stack, plan.name)]
        made = Crew(stack=stack, group=plan.name, instances=instances)

        def ready() -> bool:
            nodes = ledger.nodes(stack)
            return all(name in nodes and scenario.is_ready(nodes[name]) for name in instances)

        made.until(ready, "nodes Ready")
        return made

    return build


def forget_what_is_cached(stack: LocalStack, function: str) -> None:
    """A function that is configured anew starts in a new process, as after a minute its caches would be empty."""
    client = stack.client("lambda")
    before = client.get_function_configuration(FunctionName=function)
    client.update_function_configuration(FunctionName=function, Timeout=before["Timeout"] + 1)


def logged(stack: LocalStack, function: str, words: str) -> list[str]:
    """The messages of a function's log that hold the words."""
    logs = stack.client("logs")
    group = f"/aws/lambda/leeward-{function}"
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
    return [event["message"] for page in pages for event in page["events"] if words in event["message"]]
