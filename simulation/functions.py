"""Functions of the product as the simulated Lambda runs them: the same code behind the handlers, without their wiring.

The handlers themselves only add ports from the environment, log lines and metrics."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from leeward.disruption import steps as disruptions
from leeward.disruption.controller import decide_once
from leeward.disruption.run import DisruptionRun
from leeward.errors import LeewardError, UnexpectedError
from leeward.interruption.batch import Record
from leeward.interruption.origins import process_by_origin
from leeward.interruption.redelivery import redeliver_soon
from leeward.isolation import Executor, in_turn
from leeward.ports import Ports
from leeward.reconcile.reconciler import reconcile_once
from leeward.sync.controller import sync_once
from leeward.termination import drain, steps
from leeward.termination.run import Run
from leeward.workflow.steps import take_step
from simulation.aws.queue import Queued

TIMEOUTS = {
    "interruption": 30.0,
    "terminate": 45.0,
    "drain": 55.0,
    "reconciler": 55.0,
    "sync": 120.0,
    "upgrade": 300.0,
    "disruption-planner": 300.0,
    "disrupt": 300.0,
}  # seconds, as infra sets
CONCURRENCY = {"drain": 40}  # reserved, as infra sets by default; calls beyond it are throttled
RESERVE_SECONDS = 2.0  # of an invocation (adapters/wiring.py)
UNEXPECTED = UnexpectedError.__name__
STEPS = {"terminate": steps.STEPS, "drain": drain.STEPS}


def bounded(function: str, ports: Ports) -> Ports:
    """Return the ports of one invocation, as the handlers get them from Lambda's context (adapters/wiring.py)."""
    return ports.for_seconds(TIMEOUTS[function] - RESERVE_SECONDS)


def interruption(
    batch: Sequence[Queued], ports: Ports, defects: list[str], queue: str = "", each: Executor = in_turn
) -> Sequence[str]:
    """Handle a batch; return the ids of messages to be delivered again. `defects` takes what no error of Leeward's own
    explains.
    """
    records = [
        Record(
            id=message.id,
            body=message.body,
            received=datetime.fromtimestamp(message.sent, UTC),
            receipt=message.receipt,
            receives=message.receives,
            queue=queue,
        )
        for message in batch
    ]
    result = process_by_origin(records, bounded("interruption", ports), each=each)
    redeliver_soon(result, ports)
    for one in result.results:
        defects.extend(word for word in (one.decision.reason, *one.warnings) if UNEXPECTED in word)
    return result.failures


def step(function: str, call: Mapping[str, Any], ports: Ports) -> dict[str, Any]:
    """Run a call of the functions' state machines."""
    ports = bounded(function, ports)
    if function == "upgrade":
        return _upgrade_step(call, ports)
    if function == "disrupt":
        return take_step(call, disruptions.STEPS, DisruptionRun.from_json, ports).to_json()
    return take_step(call, STEPS[function], Run.from_json, ports).to_json()


def _upgrade_step(call: Mapping[str, Any], ports: Ports) -> dict[str, Any]:
    """Run a step of an upgrade, found by name, for the steps come with their state machine."""
    document, known = import_module("leeward.upgrade.run"), import_module("leeward.upgrade.steps")
    managed = import_module("leeward.upgrade.managed.steps")
    steps = {**known.STEPS, **managed.STEPS}
    answer: dict[str, Any] = take_step(call, steps, document.UpgradeRun.from_json, ports).to_json()
    return answer


def upgrade_ended(detail: Mapping[str, Any], ports: Ports) -> dict[str, str]:
    """Handle EventBridge's event on how an execution of an upgrade ended."""
    return {"next": "rule", "why": import_module("leeward.upgrade.reconciler").handle_failed_execution(detail, ports)}


def decide(ports: Ports, each: Executor = in_turn) -> dict[str, Any]:
    """Run fn disruption-planner, every five minutes. Raises LeewardError for clusters that could not be read, as the
    handler does.
    """
    decided = decide_once(bounded("disruption-planner", ports), each=each)
    if decided.errors:
        raise LeewardError("; ".join(decided.errors))
    return decided.to_json()


def reconcile(ports: Ports, each: Executor = in_turn) -> dict[str, Any]:
    """Run the minute reconciler, once a minute."""
    return reconcile_once(bounded("reconciler", ports), each=each).to_json()


def sync(ports: Ports, each: Executor = in_turn) -> dict[str, list[str]]:
    """Run fn sync, every five minutes. Raises LeewardError for hooks that failed, as the handler does."""
    synced = sync_once(bounded("sync", ports), each=each)
    if synced.errors:
        raise LeewardError("; ".join(synced.errors))
    return synced.to_json()
