"""Judgement of the demo: each promise of Leeward, checked on the state at the end."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from local.demo import ledger, scenario
from local.stack import LocalStack

Records = Mapping[str, ledger.Termination]
TAKEN_WITHIN = 20.0  # seconds; a message that returned to the queue would wait for three minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Promise with its verdict and the evidence."""

    promise: str
    good: bool
    found: str


def expected_count() -> int:
    """Return the number of expected terminations: the spot instance, two maintained ones, and the one that the scale-in
    chose.
    """
    return 4


def settled_sizes(stack: LocalStack) -> bool:
    """Return whether the groups have their desired sizes: five spot, and four less the scale-in on demand."""
    return ledger.group_size(stack, scenario.SPOT) == (5, 5) and ledger.group_size(stack, scenario.ON_DEMAND) == (3, 3)


def judge(stack: LocalStack, victims: scenario.Victims) -> list[Finding]:
    """Judge all promises."""
    records = {record.instance: record for record in ledger.terminations(stack)}
    return [
        *_about_nodes(stack, records, victims),
        *_about_runs(stack, records, victims),
        *_about_messages(stack),
        *_about_groups(stack, records, victims),
    ]


def _about_nodes(stack: LocalStack, records: Records, victims: scenario.Victims) -> list[Finding]:
    nodes = ledger.nodes(stack)
    still_open = [record.instance for record in records.values() if record.status != "closed"]
    tainted = [str(node["metadata"]["name"]) for node in nodes.values() if ledger.is_tainted(node)]
    gone = len(records) >= expected_count() and not still_open and not set(records) & set(nodes)
    spot = records.get(victims.spot)
    violations = ledger.budget_violations(stack)
    return [
        _finding(
            "every node that had to go is gone, and its record closed",
            gone,
            f"{len(records)} terminated, open: {', '.join(still_open) or 'none'}",
        ),
        _finding(
            "the spot instance's replacement was asked for before its first pod left",
            spot is not None and _replaced_before_drain(spot),
            ", ".join(spot.launched) or spot.replacement if spot else "no record",
        ),
        _finding(
            "no eviction ever broke a PodDisruptionBudget",
            not violations,
            f"{len(violations)} violations in the cluster's own record",
        ),
        _finding("no node is left tainted", not tainted, ", ".join(tainted) or "none"),
    ]


def _about_runs(stack: LocalStack, records: Records, victims: scenario.Victims) -> list[Finding]:
    runs, spot = ledger.executions(stack), records.get(victims.spot)
    failed = [f"{name} {status}" for name, status in sorted(runs.items()) if status != "SUCCEEDED"]
    once = spot is not None and spot.causes.count("spot_interruption") == 1
    return [
        _finding(
            "a duplicate starts nothing twice",
            len(runs) == len(records) and once,
            f"{len(runs)} executions for {len(records)} instances",
        ),
        _finding("every execution succeeded", bool(runs) and not failed, ", ".join(failed) or f"{len(runs)} succeeded"),
    ]


def _left_over(stack: LocalStack) -> int:
    """Return the number of messages left unread: EC2 reports the end of the last instance a moment after it."""
    until = time.monotonic() + TAKEN_WITHIN
    while (depth := ledger.queue_depth(stack)) and time.monotonic() < until:
        time.sleep(0.5)
    return depth


def _about_messages(stack: LocalStack) -> list[Finding]:
    letters, depth = ledger.dead_letters(stack), _left_over(stack)
    return [
        _finding(
            "nonsense ended in the dead-letter queue with its reason",
            [body for _, body in letters] == [scenario.MALFORMED_BODY] and bool(letters[0][0]),
            letters[0][0] if letters else "the dead-letter queue is empty",
        ),
        _finding("no message is left", depth == 0, f"{depth} in the queue"),
    ]


def _about_groups(stack: LocalStack, records: Records, victims: scenario.Victims) -> list[Finding]:
    foreign = ledger.foreign_state(stack, victims.foreign)
    sizes = {group: ledger.group_size(stack, group) for group in (scenario.SPOT, scenario.ON_DEMAND)}
    return [
        _finding(
            "the other team's hook was neither heartbeaten nor answered",
            foreign == "Terminating:Wait" and victims.foreign not in records,
            f"its instance is still {foreign}",
        ),
        _finding(
            "the groups have the sizes that their owners asked for",
            settled_sizes(stack),
            ", ".join(f"{group}: {serving} of {desired}" for group, (desired, serving) in sizes.items()),
        ),
    ]


def _replaced_before_drain(spot: ledger.Termination) -> bool:
    asked, draining = spot.times.get("replacement"), spot.times.get("draining")
    return bool(spot.launched) and asked is not None and draining is not None and asked <= draining


def _finding(promise: str, good: bool, found: str) -> Finding:
    return Finding(promise=promise, good=good, found=found)
