"""How a round ends: its nodes are gone, or it is given up and nothing of it is left.

In both, replacements for which nothing goes are asked to go, AZRebalance is resumed and MaxSize put back, new nodes are
no longer kept from Cluster Autoscaler, and the groups rest for their cool-down."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.disruption.launching import launch_all
from leeward.disruption.lease import read, rest_after, written
from leeward.disruption.record import GONE, STAYED, RoundOutcome, RoundRecord
from leeward.disruption.replacement_sizes import adopt, raise_sizes
from leeward.disruption.rollback import release
from leeward.disruption.run import Next, RoundRun
from leeward.disruption.scale_down_protection import let_go
from leeward.ports import Ports

__all__ = ["STAYED", "STEPS", "end", "give_back_groups", "give_up", "note_failure"]
REBALANCE = "AZRebalance"
GROWTH_PAUSE = 30  # seconds between two looks for what a raised desired size brings


def end(run: RoundRun, _: Mapping[str, Any], ports: Ports) -> RoundRun:
    """Every termination has ended. A command of which at least one node is gone keeps its new nodes: they have pods."""
    record = release(read(run, ports), ports)
    gone = sum(one == GONE for one in record.ends.values())
    stayed = [name for name, instance in record.going.items() if record.ends.get(instance) == STAYED]
    given_back = f"; {', '.join(stayed)} stayed, their pods did not leave or others ended them" if stayed else ""
    why = f"{record.method.value}: {gone} nodes gone, {len(record.launched)} launched{given_back}"
    if record.outstanding():
        groups = ", ".join(sorted(set(record.outstanding().values())))
        why = f"{why}; {groups} has not launched what its raised desired size asks for: look at its scaling activities"
    record = give_back_groups(record, ports)
    let_go(record, ports)
    outcome = RoundOutcome.DONE if record.told else RoundOutcome.GIVEN_UP
    written(record.closed(outcome, why, ports.clock.now()), ports)
    return replace(run, next=Next.DONE, why=why)


def give_up(run: RoundRun, _: Mapping[str, Any], ports: Ports) -> RoundRun:
    """Nothing was told to go: nodes serve again, what was launched goes. An order whose answer got lost is asked for
    once more, so that no launch is forgotten.
    """
    record = read(run, ports)
    if record.told:
        return replace(run, next=Next.FOLLOW, why="its nodes were told to go: they are followed")
    record = adopt(_answered(record, ports), ports)
    record = written(record.fell(dict.fromkeys(record.standing, run.why or "the round was given up")), ports)
    record = release(record, ports)
    why = run.why or "given up"
    if record.outstanding():
        return replace(run, next=Next.FOLLOW, pause=GROWTH_PAUSE, why=f"{why}; the raised desired size is followed")
    record = give_back_groups(record, ports)
    let_go(record, ports)
    written(record.closed(RoundOutcome.GIVEN_UP, why, ports.clock.now()), ports)
    return replace(run, next=Next.GIVEN_UP, why=why)


def note_failure(run: RoundRun, call: Mapping[str, Any], ports: Ports) -> RoundRun:
    """A step has used up its retries: the record says why and stays open, and the sweeper has it taken up again."""
    record = read(run, ports)
    again = rest_after(record.attempt, ports.clock.now())
    why = f"{call.get('error') or 'unknown error'}: {call.get('cause') or ''}"[:400]
    written(replace(record, retry=again, why=why), ports)
    return replace(run, next=Next.FAILED, why=f"{why}; taken up again at {again:%H:%M:%SZ}")


STEPS = {"end": end, "give-up": give_up, "note-failure": note_failure}


def give_back_groups(record: RoundRecord, ports: Ports) -> RoundRecord:
    """What the groups get back, as soon as they can: MaxSize only once the desired size fits below it. What is left is
    owed on in the record, and tried again by the sweeper.
    """
    for name in record.suspended:
        ports.group_changes.resume(name, REBALANCE)
    there = ports.groups.describe(record.raised)
    owed = {
        name: maximum
        for name, maximum in record.raised.items()
        if name in there and not ports.group_changes.put_back_maximum(name, maximum)
    }
    return replace(record, suspended=(), raised=owed)


def _answered(record: RoundRecord, ports: Ports) -> RoundRecord:
    """Only orders that were written: what was never ordered is not launched now."""
    if not record.orders:
        raise_sizes(record, ports)
        return record
    ordered = {int(key.partition(".")[0]) for key in record.orders}
    others = {number: "given up before its launch" for number in record.standing if number not in ordered}
    return launch_all(record.fell(others), ports, may_grow=False)
