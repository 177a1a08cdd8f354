"""Storm of fifty spot warnings on the local stack, from the event to the closed record. The launcher runs at most a
dozen function processes, so the seconds depend more on this machine than on Lambda: they have no target."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from local.demo import ledger, scenario
from local.fleet import GroupPlan, build_group, build_network, instances_of
from local.stack import LocalStack
from local.workloads import apply_roles

COUNT = 50
LONGEST = 1800  # seconds until all are terminated, on a machine with other load
GLANCE = 2.0  # seconds between two reads: each of them is work for the same emulator
REPORT_EVERY = 60.0


def run(count: int = COUNT) -> bool:
    """Return whether every node was terminated and replaced, and no message lost. Raises TimeoutError."""
    with (
        tempfile.TemporaryDirectory(prefix="leeward-bench-") as directory,
        LocalStack(directory=Path(directory), boot_delay=0.5, pod_start=0.3) as stack,
    ):
        group = GroupPlan(name=scenario.SPOT, size=count, spot=True, maximum=3 * count)
        build_group(stack, build_network(stack), group)
        stack.deploy(scenario.settings(stack))
        apply_roles(stack)
        _until(lambda: count - sum(map(scenario.is_ready, ledger.nodes(stack).values())), "nodes to become ready")
        return _storm(stack)


def _storm(stack: LocalStack) -> bool:
    warned = {str(member["InstanceId"]) for member in instances_of(stack, scenario.SPOT)}
    names = {str(node["metadata"]["name"]) for name, node in ledger.nodes(stack).items() if name in warned}
    began = datetime.now(UTC)
    for instance in sorted(warned):
        stack.emit(scenario.spot_warning(stack, instance))
    sent = datetime.now(UTC)
    _until(lambda: len(warned) - len(_closed(stack, warned)), "terminations to end")
    _until(lambda: ledger.queue_depth(stack), "messages to be handled")
    _until(lambda: len(warned) - ledger.group_size(stack, scenario.SPOT)[1], "replacements to come into service")
    print(f"the whole chain on the local stack, {len(warned)} warnings, sent within {_span(began, sent):.1f} s:")
    return _shown(stack, warned, names, began)


def _shown(stack: LocalStack, warned: set[str], names: set[str], began: datetime) -> bool:
    """Print the results; `names` are those of the warned nodes."""
    tainted = [_span(began, at) for name, at in ledger.first_tainted(stack).items() if name in names]
    closed = _closed(stack, warned)
    gone = max(_span(began, one.times["closed"]) for one in closed)
    outcomes, ends = Counter(one.outcome for one in closed), Counter(ledger.executions(stack).values())
    desired, in_service = ledger.group_size(stack, scenario.SPOT)
    lost = len(ledger.dead_letters(stack)) + len(warned) - len(tainted)
    print(
        f"  all tainted after {max(tainted):.1f} s, the last one gone after {gone:.0f} s; {dict(outcomes)}, executions"
        f" {dict(ends)}, desired {desired}, in service {in_service}, messages lost {lost}"
    )
    all_of_them = len(warned)
    whole = outcomes == {"terminated": all_of_them} and ends == {"SUCCEEDED": all_of_them}
    return whole and (desired, in_service, lost) == (all_of_them, all_of_them, 0)


def _closed(stack: LocalStack, warned: set[str]) -> list[ledger.Termination]:
    return [one for one in ledger.terminations(stack) if one.instance in warned and one.status == "closed"]


def _span(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()


def _until(left: Callable[[], int], what: str) -> None:
    """Wait until nothing is left, and print now and then how much is."""
    deadline, reported = time.monotonic() + LONGEST, time.monotonic()
    while (more := left()) > 0:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{more} {what} after {LONGEST} s")
        if time.monotonic() - reported > REPORT_EVERY:
            reported = time.monotonic()
            print(f"  ... {more} {what}", flush=True)
        time.sleep(GLANCE)
