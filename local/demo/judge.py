"""Whether the demo went as it should: each thing that Leeward promises, checked on what is there at the end."""

from dataclasses import dataclass

from local.demo import ledger, scenario
from local.stack import LocalStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One promise, whether it was kept, and what was found."""

    promise: str
    good: bool
    found: str


def expected_count() -> int:
    """The spot instance, two maintained ones, and the one that the scale-in chose."""
    return 4


def settled_sizes(stack: LocalStack) -> bool:
    """The groups have what they want: five spot, and four less the scale-in on demand."""
    return ledger.group_size(stack, scenario.SPOT) == (5, 5) and ledger.group_size(stack, scenario.ON_DEMAND) == (3, 3)


def judge(stack: LocalStack, victims: scenario.Victims) -> list[Finding]:
    """All promises."""
    records = {record.instance: record for record in ledger.terminations(stack)}
    runs = ledger.executions(stack)
    letters = ledger.dead_letters(stack)
    violations = ledger.budget_violations(stack)
    nodes = ledger.nodes(stack)
    foreign = ledger.foreign_state(stack, victims.foreign)
    spot = records.get(victims.spot)
    marked = [node["metadata"]["name"] for node in nodes.values() if ledger.is_marked(node)]
    open_records = [record.instance for record in records.values() if record.status != "closed"]
    sizes = {group: ledger.group_size(stack, group) for group in (scenario.SPOT, scenario.ON_DEMAND)}
    before = spot is not None and _replaced_before_drain(spot)
    return [
        _finding(
            "every node that had to go is gone, and its record closed",
            len(records) >= expected_count() and not open_records and not set(records) & set(nodes),
            f"{len(records)} terminated, open: {', '.join(open_records) or 'none'}",
        ),
        _finding(
            "the spot instance's replacement was asked for before its first pod left",
            before,
            ", ".join(spot.launched) or spot.replacement if spot else "no record",
        ),
        _finding(
            "a duplicate starts nothing twice",
            len(runs) == len(records) and spot is not None and spot.causes.count("spot_interruption") == 1,
            f"{len(runs)} executions for {len(records)} instances",
        ),
        _finding(
            "every execution succeeded",
            set(runs.values()) == {"SUCCEEDED"},
            ", ".join(f"{name} {status}" for name, status in sorted(runs.items()) if status != "SUCCEEDED")
            or f"{len(runs)} succeeded",
        ),
        _finding(
            "no eviction ever broke a PodDisruptionBudget",
            not violations,
            f"{len(violations)} violations in the cluster's own record",
        ),
        _finding(
            "nonsense ended in the dead-letter queue with its reason",
            [body for _, body in letters] == [scenario.NONSENSE] and bool(letters[0][0]),
            letters[0][0] if letters else "the dead-letter queue is empty",
        ),
        _finding(
            "the other team's hook was neither heartbeaten nor answered",
            foreign == "Terminating:Wait" and victims.foreign not in records,
            f"its instance is still {foreign}",
        ),
        _finding("no node is left marked", not marked, ", ".join(marked) or "none"),
        _finding(
            "the groups have the sizes that their owners asked for",
            settled_sizes(stack),
            ", ".join(f"{group}: {serving} of {desired}" for group, (desired, serving) in sizes.items()),
        ),
        _finding("no message is left", ledger.queue_depth(stack) == 0, f"{ledger.queue_depth(stack)} in the queue"),
    ]


def _replaced_before_drain(spot: ledger.Termination) -> bool:
    asked, draining = spot.times.get("replacement"), spot.times.get("draining")
    return bool(spot.launched) and asked is not None and draining is not None and asked <= draining


def _finding(promise: str, good: bool, found: str) -> Finding:
    return Finding(promise=promise, good=good, found=found)
