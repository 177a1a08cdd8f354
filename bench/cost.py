"""Cost of one replaced node, counted from real executions, and of a month without events.

Targets: a drain of one minute and of two at most $0.001 a node, of a quarter of an hour at most $0.003; idle at most
$0.50 a month for a cluster, of which the polling of the queues is paid once for a deployment. A deployment of one
cluster is judged with SQS's free requests, and printed without them for accounts whose other queues use them. The
minute is counted on the local stack and in virtual time, and both have to agree; the longer ones in virtual time only,
with the call durations measured on the local stack. `LOCAL=0 python -m bench cost` omits the local stack and assumes
300 ms for every call.
"""

import os
import sys
from dataclasses import replace

from bench.cost_bill import SQS_FREE, Bill
from bench.cost_local import Local, measured
from bench.cost_simulated import OF_TERMINATIONS, terminated

DRAINS = {60: 0.001, 120: 0.001, 900: 0.003}  # seconds -> dollars
IDLE = 0.50
GUESSED_MS = 300.0


def run() -> bool:
    """Print the bills; return whether every target is met and both worlds agree."""
    local = measured(60) if os.environ.get("LOCAL") != "0" else None
    handler_ms = dict(local.handler_ms) if local else dict.fromkeys((*OF_TERMINATIONS, "notifications"), GUESSED_MS)
    bills = {grace: terminated(grace, handler_ms) for grace in DRAINS}
    met = [_shown(f"{grace} s drain, virtual time", bill, DRAINS[grace]) for grace, bill in bills.items()]
    if local:
        met += _compared(local, bills[60])
    return all(met)


def _compared(local: Local, simulated: Bill) -> list[bool]:
    """Compare the local bill with the simulated one: transitions, and calls of the functions that the state machine
    calls.
    """
    same = _counts(local.node) == _counts(simulated)
    words = "the same transitions and calls" if same else f"DIFFER: {_counts(local.node)} {_counts(simulated)}"
    met = [_shown("60 s drain, local stack", local.node, DRAINS[60]), same]
    print(f"  local stack and virtual time: {words}")
    print(f"a month without events, a deployment of one cluster, no free requests left: {local.idle.summary()}")
    alone = replace(local.idle, free_requests=SQS_FREE)
    met.append(_shown("the same in an account whose other queues leave SQS's free requests", alone, IDLE))
    shared = replace(local.idle, polls=local.idle.polls // 2)
    met.append(_shown("each of two clusters, which share the queues, no free requests left", shared, IDLE))
    return met


def _counts(bill: Bill) -> dict[str, int]:
    return {"transitions": bill.transitions, "drain": bill.calls["drain"], "terminate": bill.calls["terminate"]}


def _shown(what: str, bill: Bill, target: float) -> bool:
    met = bill.dollars <= target
    print(f"{what}: {bill.summary()}; target ${target}{'' if met else ' MISSED'}")
    sys.stdout.flush()
    return met
