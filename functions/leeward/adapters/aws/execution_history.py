"""`ports.executions.PastExecutions` on Step Functions: the input, and the history, a thousand events with each call."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, pages
from leeward.adapters.aws.errors import aws_call, code_of
from leeward.model.execution import Execution, ExecutionStatus, Failure, Machine, Step
from leeward.model.times import as_instant

PAGE = 1000  # events, the most that GetExecutionHistory gives at once
NOT_THERE = "ExecutionDoesNotExist"
_FAILURES = ("Failed", "TimedOut")


class StepFunctionsPast:
    """History of Leeward's executions. `machines`: the prefix of its state machines' ARNs, `leeward-` included."""

    def __init__(self, clients: AwsClients, machines: str) -> None:
        self._clients = clients
        self._executions = machines.replace(":stateMachine", ":execution", 1)

    def look(self, machine: Machine, name: str) -> Execution | None:
        """Read the execution with one DescribeExecution."""
        with aws_call("states:DescribeExecution", f"{machine.named}:{name}"):
            try:
                answer = self._client.describe_execution(executionArn=self._arn(machine, name))
            except ClientError as error:
                if code_of(error) != NOT_THERE:
                    raise
                return None
        return Execution(
            machine=machine,
            name=name,
            status=ExecutionStatus(answer["status"]),
            started=as_instant(answer["startDate"]),
            stopped=as_instant(answer["stopDate"]) if answer.get("stopDate") else None,
            given=_document(answer.get("input")),
            error=answer.get("error") or "",
            cause=answer.get("cause") or "",
        )

    def steps(self, machine: Machine, name: str) -> Sequence[Step] | None:
        """Read the steps with GetExecutionHistory, of which an execution has at most 25 pages."""
        with aws_call("states:GetExecutionHistory", f"{machine.named}:{name}"):
            try:
                found = pages(
                    self._client,
                    "get_execution_history",
                    executionArn=self._arn(machine, name),
                    includeExecutionData=True,
                    PaginationConfig={"PageSize": PAGE},
                )
                return steps_of(event for page in found for event in page["events"])
            except ClientError as error:
                if code_of(error) != NOT_THERE:
                    raise
                return None

    @property
    def _client(self) -> Any:
        return self._clients.get("stepfunctions")

    def _arn(self, machine: Machine, name: str) -> str:
        return f"{self._executions}{machine.value}:{name}"


def steps_of(events: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Build the steps. No machine has parallel branches: events between entering and leaving a state belong to it."""
    found: list[Step] = []
    for event in events:
        kind, at = str(event["type"]), as_instant(event["timestamp"])
        if kind.endswith("StateEntered"):
            works = kind == "TaskStateEntered"
            found.append(Step(state=event["stateEnteredEventDetails"]["name"], entered=at, works=works))
        elif kind.endswith("StateExited") and found:
            output = _document(event["stateExitedEventDetails"].get("output"))
            found[-1] = replace(found[-1], left=at, output=output)
        elif kind.endswith(_FAILURES) and not kind.startswith("Execution") and found:
            details = event.get(f"{kind[0].lower()}{kind[1:]}EventDetails") or {}
            failure = Failure(at=at, error=details.get("error") or kind, cause=details.get("cause") or "")
            found[-1] = replace(found[-1], failures=(*found[-1].failures, failure))
    return tuple(found)


def _document(text: str | None) -> Mapping[str, Any]:
    """Parse Leeward's JSON, or return an empty mapping: people also start executions manually, with any input."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
