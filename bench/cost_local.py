"""Cost of one node terminated on the local stack, counted from the executions' history, the functions' logs and
recorded calls; and the cost of the schedules, which run whether anything happens or not."""

import json
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cost_bill import Bill
from bench.cost_simulated import GROUP, OF_TERMINATIONS, SETTLE, SHUTDOWN, TIME_OUT
from bench.spot_path import until
from leeward.doctor.expected import READ_QUEUES
from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan
from local.stack import LocalStack
from local.workloads import apply_objects, apply_roles

SCHEDULED: Mapping[str, int] = {
    "reconciler": 1,
    "sync": 5,
    "disruption-planner": 5,
}  # minutes between two calls, as infra/ has them
MONTH = 30 * 24 * 60  # minutes
POLLERS, POLL_SECONDS = 5, 20  # Lambda reads each empty queue with so many long polls
RUNS = 5  # of each scheduled function
LONGEST = 420  # seconds until the node is deleted
_BILLED = re.compile(r"Billed Duration: (\d+) ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Counts on the local stack. `handler_ms`: of a call that does not sleep, the median by function; `idle`: of a
    month without any event.
    """

    node: Bill
    idle: Bill
    handler_ms: Mapping[str, float]


def measured(grace: int) -> Local:
    """Deploy, terminate one node of two whose pod takes `grace` seconds, and call the scheduled functions."""
    with (
        tempfile.TemporaryDirectory(prefix="leeward-bench-") as directory,
        LocalStack(directory=Path(directory), boot_delay=0.5, pod_start=0.3, termination_scale=1.0) as stack,
    ):
        _prepare(stack, grace)
        victim = str(fleet.instances_of(stack, GROUP)[0]["InstanceId"])
        _quiet(stack)
        began, calls = int(time.time() * 1000), stack.control("GET", "calls")
        stack.emit(scenario.maintenance(stack, (victim,)))
        until(lambda: _closed(stack, victim), LONGEST)
        time.sleep(3)  # the last events of EC2 and of the table's stream
        node, handler_ms = _node(stack, victim, began, calls)
        return Local(node=node, idle=_idle(stack), handler_ms=handler_ms)


def _prepare(stack: LocalStack, grace: int) -> None:
    stack.control("PUT", "pace", {"boot": 0.2, "shutdown": SHUTDOWN})
    policy = {
        "apiVersion": "leeward.dev/v1",
        "kind": "NodePolicy",
        "metadata": {"name": GROUP},
        "spec": {
            "selector": {"groups": [GROUP]},
            "drain": {"settle": f"{SETTLE.seconds}s", "timeout": f"{TIME_OUT.seconds}s"},
        },
    }
    path = stack.directory / "policy.yaml"
    path.write_text(json.dumps(policy))
    fleet.build_group(stack, fleet.build_network(stack), GroupPlan(name=GROUP, size=2))
    stack.deploy({"clusters": [{"name": stack.cluster, "policies": [str(path)]}]})
    apply_roles(stack)
    until(lambda: sum(map(scenario.is_ready, ledger.nodes(stack).values())) == 2, LONGEST)
    apply_objects(stack, [_slow(grace)])
    until(lambda: _running(stack) == 2, LONGEST)


def _slow(grace: int) -> dict[str, Any]:
    """Return a workload of one pod a node, which uses all of its grace period."""
    made = fleet.deployment("slow", 2, grace=grace, cpu="50m")
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "slow"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made["spec"]["template"]["spec"]["affinity"] = affinity
    return made


def _running(stack: LocalStack) -> int:
    pods = stack.kubernetes("GET", "/api/v1/namespaces/default/pods")["items"]
    return sum(map(scenario.is_ready, pods))


def _quiet(stack: LocalStack) -> None:
    """Invoke fn sync and fn reconciler, so that the hook is in place, and disable the schedules, so that their calls do
    not interfere.
    """
    client = stack.client("lambda")
    for name in ("sync", "reconciler"):
        client.invoke(FunctionName=f"leeward-{name}")
    for name in SCHEDULED:
        with suppress(stack.client("events").exceptions.ResourceNotFoundException):
            stack.client("events").disable_rule(Name=f"leeward-{name}-schedule")


def _closed(stack: LocalStack, victim: str) -> bool:
    return any(one.instance == victim and one.status == "closed" for one in ledger.terminations(stack))


def _node(
    stack: LocalStack, victim: str, began: int, calls: Mapping[str, Mapping[str, int]]
) -> tuple[Bill, Mapping[str, float]]:
    history = _history(stack, victim)
    billed = {name: _billed(stack, name, began) for name in (*OF_TERMINATIONS, "notifications")}
    table = _since(calls, stack.control("GET", "calls"))
    pauses = sum(event["type"] == "TaskScheduled" and "dynamodb" in json.dumps(event, default=str) for event in history)
    node = Bill(
        transitions=sum(event["type"].endswith("StateEntered") for event in history),
        calls=Counter({name: len(found) for name, found in billed.items()}),
        milliseconds=Counter({name: sum(found) for name, found in billed.items()}),
        messages=4,  # the announcement, the hook, and EC2's two events
        events=table["events:PutEvents"],
        writes=table["dynamodb:UpdateItem"] + table["dynamodb:PutItem"] + pauses,
        reads=table["dynamodb:GetItem"],
    )
    awake = {name: [ms for ms in found if ms < 1000] or found for name, found in billed.items()}
    return node, {name: statistics.median(found) for name, found in awake.items()}


def _history(stack: LocalStack, victim: str) -> list[dict[str, Any]]:
    client = stack.client("stepfunctions")
    arn = f"arn:aws:states:{stack.region}:{stack.account}:execution:leeward-node-termination:{victim}-1"
    pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
    return [event for page in pages for event in page["events"]]


def _billed(stack: LocalStack, function: str, began: int) -> list[int]:
    """Return the billed milliseconds of every call since `began`."""
    logs = stack.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName=f"/aws/lambda/leeward-{function}", startTime=began
    )
    lines = (event["message"] for page in pages for event in page["events"])
    return [int(found[1]) for line in lines if (found := _BILLED.search(line))]


def _since(before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name in (*OF_TERMINATIONS, "notifications"):
        function = f"leeward-{name}"
        found.update(after.get(function, {}))
        found.subtract(before.get(function, {}))
    return found


def _idle(stack: LocalStack) -> Bill:
    """Return the usage of a month without events, extrapolated from some calls of every scheduled function."""
    known = {f["FunctionName"] for f in stack.client("lambda").list_functions(MaxItems=50)["Functions"]}
    calls: Counter[str] = Counter()
    milliseconds: Counter[str] = Counter()
    writes = reads = 0.0
    for name, every in SCHEDULED.items():
        if f"leeward-{name}" not in known:
            continue
        began, before = int(time.time() * 1000), stack.control("GET", "calls").get(f"leeward-{name}", {})
        for _ in range(RUNS):
            stack.client("lambda").invoke(FunctionName=f"leeward-{name}")
        after = Counter(stack.control("GET", "calls").get(f"leeward-{name}", {}))
        after.subtract(before)
        calls[name] = MONTH // every
        milliseconds[name] = int(statistics.median(_billed(stack, name, began)) * calls[name])
        writes += (after["dynamodb:PutItem"] + after["dynamodb:UpdateItem"]) / RUNS * calls[name]
        asked = after["dynamodb:GetItem"] + after["dynamodb:BatchGetItem"] + after["dynamodb:Query"]
        reads += asked / RUNS * calls[name]
    polls = len(READ_QUEUES) * POLLERS * MONTH * 60 // POLL_SECONDS
    return Bill(calls=calls, milliseconds=milliseconds, polls=polls, writes=int(writes), reads=int(reads))
