"""Fifty spot warnings at once on the local stack, from the event to the closed record. The launcher runs at most a
dozen function processes, so the seconds say more about this machine than about Lambda: they have no target."""

import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.spot_path import until
from local.demo import ledger, scenario
from local.fleet import GroupPlan, build_group, build_network, instances_of
from local.stack import LocalStack

COUNT = 50
LONGEST = 400


def run() -> bool:
    """Whether every node was terminated and no message lost."""
    with (
        tempfile.TemporaryDirectory(prefix="leeward-bench-") as directory,
        LocalStack(directory=Path(directory), boot_delay=0.5, pod_start=0.3) as stack,
    ):
        build_group(stack, build_network(stack), GroupPlan(name=scenario.SPOT, size=COUNT, spot=True, maximum=150))
        stack.deploy(scenario.settings(stack))
        for document in sorted(Path("manifests").glob("*.yaml")):
            stack.kubectl("apply", "-f", str(document))
        until(lambda: sum(map(scenario.is_ready, ledger.nodes(stack).values())) == COUNT, LONGEST)
        return _storm(stack)


def _storm(stack: LocalStack) -> bool:
    warned = [str(member["InstanceId"]) for member in instances_of(stack, scenario.SPOT)]
    began = time.monotonic()
    for instance in warned:
        stack.emit(scenario.spot_warning(stack, instance))
    until(lambda: _untouched(stack, warned) == 0, LONGEST)
    tainted = time.monotonic() - began
    until(lambda: _closed(stack, warned) == COUNT, LONGEST)
    gone = time.monotonic() - began
    until(lambda: ledger.queue_depth(stack) == 0, LONGEST)
    outcomes = Counter(one.outcome for one in ledger.terminations(stack) if one.instance in warned)
    lost = len(ledger.dead_letters(stack))
    print(
        f"the whole chain on the local stack, {COUNT} warnings at once: all tainted after {tainted:.1f} s, the last one"
        f" gone after {gone:.0f} s, {dict(outcomes)}, messages lost {lost}"
    )
    return outcomes == {"terminated": COUNT} and lost == 0


def _untouched(stack: LocalStack, warned: list[str]) -> int:
    nodes = ledger.nodes(stack)
    return sum(name in nodes and not ledger.is_marked(nodes[name]) for name in warned)


def _closed(stack: LocalStack, warned: list[str]) -> int:
    return sum(one.instance in warned and one.status == "closed" for one in ledger.terminations(stack))
