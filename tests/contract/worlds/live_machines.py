"""Step Functions, Lambda and DynamoDB of the local AWS. Its clock shortens what state machines wait."""

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from tests.contract.worlds.machines import End, reported

PATIENCE = 120.0
TABLE = "leeward-contract"
ROLE = "arn:aws:iam::000000000000:role/contract"
SOURCE = """
import time

def handler(event, context):
    time.sleep(event.get("sleep", 0))
    if event.get("fail"):
        raise type(event["fail"], (Exception,), {})("asked to")
    return event
"""


class LiveMachines:
    """A `MachineWorld`; function and table are made once."""

    def __init__(self, local: Any) -> None:
        self._sfn, self._table, functions = (local.client(name) for name in ("stepfunctions", "dynamodb", "lambda"))
        self._arns: dict[str, str] = {}
        self.work = f"contract-{uuid.uuid4().hex[:8]}"
        self._table.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", SOURCE)
        functions.create_function(
            FunctionName=self.work,
            Runtime="python3.13",
            Handler="index.handler",
            Role=ROLE,
            Code={"ZipFile": packed.getvalue()},
            Timeout=30,
        )
        functions.get_waiter("function_active_v2").wait(FunctionName=self.work, WaiterConfig={"Delay": 0.1})

    def machine(self, states: Mapping[str, Any], **top: Any) -> str:
        name = f"contract-{uuid.uuid4().hex[:8]}"
        definition = {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states, **top}
        made = self._sfn.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)
        self._arns[name] = made["stateMachineArn"]
        return name

    def start(self, machine: str, name: str, data: Any) -> bool:
        try:
            self._sfn.start_execution(stateMachineArn=self._arns[machine], name=name, input=json.dumps(data))
        except self._sfn.exceptions.ExecutionAlreadyExists:
            return False
        return True

    def stop(self, machine: str, name: str) -> None:
        self._sfn.stop_execution(executionArn=self._execution(machine, name))

    def end(self, machine: str, name: str) -> End:
        arn = self._execution(machine, name)

        def over() -> Any:
            found = self._sfn.describe_execution(executionArn=arn)
            return found if found["status"] != "RUNNING" else None

        found = self._until(over)
        events = self._sfn.get_execution_history(executionArn=arn, maxResults=1000)["events"]
        output = json.loads(found["output"]) if found["status"] == "SUCCEEDED" else None
        history = reported([(event["type"], _state(event)) for event in events])
        return End(status=found["status"], output=output, error=found.get("error") or "", history=history)

    def token(self, key: str) -> str:
        def stored() -> Any:
            item = self._table.get_item(TableName=TABLE, Key={"pk": {"S": key}}, ConsistentRead=True).get("Item", {})
            return item.get("tok", {}).get("S")

        return str(self._until(stored))

    def hand_over_fails(self, key: str) -> None:
        self._table.put_item(TableName=TABLE, Item={"pk": {"S": key}, "changed": {"BOOL": True}})

    def succeed(self, token: str, output: Any) -> bool:
        return self._answered(self._sfn.send_task_success, taskToken=token, output=json.dumps(output))

    def fail(self, token: str, error: str, cause: str) -> bool:
        return self._answered(self._sfn.send_task_failure, taskToken=token, error=error, cause=cause)

    def _answered(self, call: Callable[..., Any], **arguments: str) -> bool:
        try:
            call(**arguments)
        except (self._sfn.exceptions.TaskTimedOut, self._sfn.exceptions.TaskDoesNotExist):
            return False
        return True

    def _execution(self, machine: str, name: str) -> str:
        return f"{self._arns[machine].replace(':stateMachine:', ':execution:')}:{name}"

    def _until(self, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.03)
        return found


def _state(event: Mapping[str, Any]) -> str:
    details = event.get("stateEnteredEventDetails") or event.get("stateExitedEventDetails") or {}
    return str(details.get("name", ""))
