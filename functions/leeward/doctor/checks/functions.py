"""Checks of the functions, the state machines and the table: they exist, can run, and run without errors."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.facts import Counts, Facts, Function, Table
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable

REVERT = "cdk deploy --revert-drift"
_LOGS = "aws logs tail /aws/lambda/{name} --since 1h --filter-pattern ERROR"


def functions(facts: Facts) -> Iterator[Finding]:
    """Check that each function exists, and can be called."""
    for name, found in facts.functions.items():
        about = About(Check.FUNCTION, f"function {name}")
        if isinstance(found, Unavailable):
            yield about.unknown(found)
        elif found is None:
            yield about.failed("it is not there", REVERT)
        else:
            yield _function(about, name, found)


def _function(about: About, name: str, found: Function) -> Finding:
    if found.concurrency == 0:
        return about.failed(
            "its reserved concurrency is 0: nothing can call it",
            f"aws lambda delete-function-concurrency --function-name {name}, then {REVERT}",
        )
    if "Failed" in {found.state, found.update}:
        return about.failed(f"its state is {found.state}, its last update {found.update}", "cdk deploy")
    if found.state == "Pending" or found.update == "InProgress":
        return about.warning(
            f"its state is {found.state}, its last update {found.update}", "run leeward doctor again in a minute"
        )
    return about.ok(found.state)


def errors(facts: Facts) -> Iterator[Finding]:
    """Report failures in the last hour. Most are retried; check the log."""
    if isinstance(facts.counts, Unavailable):
        yield About(Check.FUNCTION_ERRORS, "all functions").unknown(facts.counts)
        return
    for name in facts.functions:
        counts = facts.counts.get(name, Counts())
        about = About(Check.FUNCTION_ERRORS, f"function {name}")
        throttled = counts.throttles and name != expected.CAPPED
        if counts.errors or throttled:
            found = f"{counts.errors} errors and {counts.throttles} throttles in the last hour"
            more = "ask for more concurrent executions in Service Quotas" if throttled and not counts.errors else ""
            yield about.warning(found, more or _LOGS.format(name=name))
        else:
            yield about.ok("no error in the last hour")


def machines(facts: Facts) -> Iterator[Finding]:
    """Check that each state machine exists and is active."""
    for name, status in facts.machines.items():
        about = About(Check.STATE_MACHINE, f"state machine {name}")
        if isinstance(status, Unavailable):
            yield about.unknown(status)
        elif status != "ACTIVE":
            yield about.failed("it is not there" if status is None else f"its status is {status}", REVERT)
        else:
            yield about.ok(status)


def table(facts: Facts) -> Iterator[Finding]:
    """Check that the table exists, with the index that finds open records and the stream that feeds events."""
    about = About(Check.TABLE, f"table {expected.TABLE}")
    if isinstance(facts.table, Unavailable):
        yield about.unknown(facts.table)
    elif facts.table is None:
        yield about.failed("it is not there", REVERT)
    else:
        wrong = list(_wrong_with(facts.table))
        yield about.failed("; ".join(wrong), REVERT) if wrong else about.ok(facts.table.status)


def _wrong_with(found: Table) -> Iterator[str]:
    if found.status not in {"ACTIVE", "UPDATING"}:
        yield f"its status is {found.status}"
    if expected.INDEX not in found.indexes:
        yield f"it has no index {expected.INDEX}: open records are not found"
    elif found.indexes[expected.INDEX] not in {"ACTIVE", "UPDATING"}:
        yield f"its index {expected.INDEX} is {found.indexes[expected.INDEX]}"
    if not found.stream:
        yield "it has no stream: no event is told"
