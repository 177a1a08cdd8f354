"""`ports.executions.Executions` and `ports.executions.NamedExecutions` on Step Functions."""

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, pages
from leeward.adapters.aws.errors import TASK_ENDED, aws_call, code_of
from leeward.model.termination import execution_name

INPUT_VERSION = 1
PAGE = 1000  # executions, the most that ListExecutions gives at once


class StepFunctionsExecutions:
    """Executions of the node-termination state machine."""

    def __init__(self, clients: AwsClients, state_machine_arn: str) -> None:
        self._clients = clients
        self._state_machine_arn = state_machine_arn

    def start(self, instance: str, attempt: int, unclaimed: Mapping[str, str] | None = None) -> bool:
        """Start an execution. Idempotent while open: the same name with the same input returns the running execution.

        Where the name is taken, the holder's status decides; AWS frees a name only after 90 days.
        """
        document = {"instance": instance, "attempt": attempt, "v": INPUT_VERSION, **(unclaimed or {})}
        return _start(self._clients, self._state_machine_arn, execution_name(instance, attempt), document)

    def running(self, instance: str, attempt: int) -> bool:
        """Return whether it is open now. DescribeExecution lags a moment behind a start; starting again is harmless."""
        return _running(self._clients, self._state_machine_arn, execution_name(instance, attempt))

    def all_running(self) -> frozenset[str]:
        """Call ListExecutions, which is eventually consistent: a caller checks `running` before it acts."""
        with aws_call("states:ListExecutions", self._state_machine_arn):
            found = pages(
                self._clients.get("stepfunctions"),
                "list_executions",
                stateMachineArn=self._state_machine_arn,
                statusFilter="RUNNING",
                PaginationConfig={"PageSize": PAGE},
            )
            return frozenset(execution["name"] for page in found for execution in page["executions"])

    def wake(self, token: str) -> None:
        """End a pause; waking twice, or after its time-out, does nothing."""
        with aws_call("states:SendTaskSuccess", "a pause"):
            try:
                self._clients.get("stepfunctions").send_task_success(taskToken=token, output="{}")
            except ClientError as error:
                if code_of(error) not in TASK_ENDED:
                    raise


class StepFunctionsNamedExecutions:
    """Executions of a state machine whose callers name them."""

    def __init__(self, clients: AwsClients, state_machine_arn: str) -> None:
        self._clients = clients
        self._state_machine_arn = state_machine_arn

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """Start an execution. Idempotent while open, as for terminations."""
        return _start(self._clients, self._state_machine_arn, name, document)

    def running(self, name: str) -> bool:
        """Return whether it is open now."""
        return _running(self._clients, self._state_machine_arn, name)


def _start(clients: AwsClients, state_machine_arn: str, name: str, document: Mapping[str, Any]) -> bool:
    body = json.dumps(document, separators=(",", ":"))
    with aws_call("states:StartExecution", name):
        try:
            clients.get("stepfunctions").start_execution(stateMachineArn=state_machine_arn, name=name, input=body)
        except ClientError as error:
            if code_of(error) != "ExecutionAlreadyExists":
                raise
        else:
            return True
    return _running(clients, state_machine_arn, name)


def _running(clients: AwsClients, state_machine_arn: str, name: str) -> bool:
    arn = f"{state_machine_arn.replace(':stateMachine:', ':execution:', 1)}:{name}"
    with aws_call("states:DescribeExecution", name):
        try:
            answer = clients.get("stepfunctions").describe_execution(executionArn=arn)
        except ClientError as error:
            if code_of(error) != "ExecutionDoesNotExist":
                raise
            return False
    return bool(answer["status"] == "RUNNING")
