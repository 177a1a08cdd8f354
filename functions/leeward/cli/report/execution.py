"""Execution that `leeward report` draws: found by its ARN, its name, or the instance that it ends.

Decides what a name may mean and which error names the alternatives."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leeward.errors import AccessDeniedError, InvalidInputError
from leeward.model.execution import Execution, Machine, Step
from leeward.model.termination import execution_name
from leeward.ports.executions import PastExecutions
from leeward.ports.records import Claims

KEPT_DAYS = 90  # Step Functions deletes executions that ended before that
NEEDED = "states:DescribeExecution and states:GetExecutionHistory"
_ARN = re.compile(r"arn:[^:]+:states:([^:]+):(\d{12}):execution:([^:/]+):([^:/]+)", re.ASCII)
_NAME = re.compile(r"[0-9A-Za-z_-]{1,80}", re.ASCII)
_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Requested execution: its name and, as far as an ARN gives them, its state machine, Region and account."""

    name: str
    machine: Machine | None = None
    region: str | None = None
    account: str | None = None


def wanted(text: str) -> Wanted | None:
    """Parse an ARN or a possible name of an execution; return None for anything else. Raises InvalidInputError for an
    ARN that is not one of an execution of Leeward.
    """
    if not text.startswith("arn:"):
        return Wanted(name=text) if _NAME.fullmatch(text) else None
    found = _ARN.fullmatch(text)
    ours = {machine.named: machine for machine in Machine}
    if found is None or found[3] not in ours:
        raise InvalidInputError(
            f"found {text!r}, expected the ARN of an execution of {', '.join(ours)} (arn:aws:states:REGION:ACCOUNT:"
            "execution:STATE-MACHINE:NAME), for others are not Leeward's to draw"
        )
    return Wanted(name=found[4], machine=ours[found[3]], region=found[1], account=found[2])


def find(what: Wanted, claims: Claims, past: PastExecutions) -> tuple[Execution, Sequence[Step]]:
    """Find the execution by its name among those of Leeward's machines, with its history; an instance's id is its
    latest termination. Raises InvalidInputError where there is none, or more than one, and AccessDeniedError naming the
    permission.
    """
    name = what.name
    try:
        if _INSTANCE.fullmatch(name):
            record = claims.read(name)
            name = execution_name(name, record.attempt if record is not None else 1)
        machines = tuple(Machine) if what.machine is None else (what.machine,)
        there = [one for machine in machines if (one := past.look(machine, name)) is not None]
        if not there:
            raise InvalidInputError(_not_there(name, machines))
        if len(there) > 1:
            several = " and of ".join(one.machine.named for one in there)
            raise InvalidInputError(f"found {name!r} to be an execution of {several}, expected the ARN of one of them")
        return there[0], past.steps(there[0].machine, name) or ()
    except AccessDeniedError as error:
        raise AccessDeniedError(f"{error}; a report needs {NEEDED} on Leeward's state machines") from error


def _not_there(name: str, machines: Iterable[Machine]) -> str:
    named = ", ".join(machine.named for machine in machines)
    return (
        f"found neither a file nor an execution {name!r} of {named}, expected one that runs or ended in the last "
        f"{KEPT_DAYS} days, after which Step Functions forgets it: aws stepfunctions list-executions "
        "--state-machine-arn ARN tells which there are"
    )
