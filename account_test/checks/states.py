"""Check of the deployed definitions by Step Functions itself: valid as a whole, and each state evaluated by AWS's own
JSONata with the input that an execution of this run gave it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from account_test.aws import code, served
from account_test.context import Context
from account_test.errors import NotServedError
from account_test.judge import Finding
from account_test.results import Result
from infra import names as naming

PROVES = "Step Functions finds nothing wrong with the definitions"
PROVES_STATES = "each state goes where it went in this run's executions, when TestState evaluates it alone"
VALIDATE, TEST = "states:ValidateStateMachineDefinition", "states:TestState"
INVALID = json.dumps({"StartAt": "Nowhere", "States": {"Here": {"Type": "Pass", "Next": "Elsewhere"}}})
CHOICE = {
    "Type": "Choice",
    "Choices": [{"Condition": "{% $states.input.n + 1 = 2 %}", "Next": "Good"}],
    "Default": "Bad",
}
TASK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Arguments": {"FunctionName": "probe", "Payload": "{% $states.input %}"},
    "Output": "{% {'n': $states.result.Payload} %}",
    "Next": "Good",
}
NO_TASKS = "this endpoint does not evaluate their JSONata"
MOST_EXECUTIONS = 20  # of each machine; their histories are read
_TAKEN = ("TaskSucceeded", "LambdaFunctionSucceeded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Visit of an execution to a state. `result`: its task's answer, None for a state without one."""

    state: str
    given: str
    result: str | None = None
    then: str | None = None


def check_definitions(context: Context) -> Result:
    """Validate the definitions. Raises NotServedError where there is no such call, or one that accepts any input."""
    with served(VALIDATE):
        answer = _validated(context, INVALID)
    if answer["result"] == "OK":
        raise NotServedError(f"{VALIDATE} of this endpoint accepts a definition whose StartAt does not exist")
    findings = []
    for name in naming.MACHINES:
        found = _validated(context, _definition(context, name)[0])
        errors = [f"{one.get('location', '')} {one['code']}: {one['message']}" for one in found["diagnostics"]]
        findings.append(
            Finding(
                promise=f"{name} is valid", kept=found["result"] == "OK", found="; ".join(errors) or "no diagnostics"
            )
        )
    return Result(name="state machines", proves=PROVES, findings=findings)


def _validated(context: Context, definition: str) -> Mapping[str, Any]:
    client = context.aws("stepfunctions")
    answer: Mapping[str, Any] = client.validate_state_machine_definition(definition=definition, type="STANDARD")
    return answer


def check_states(context: Context) -> Result:
    """Test each state. A state that no execution of this run visited is reported as not run, and so is one that waits.
    No task is carried out: each is given the answer that it had, and one without an answer is omitted. Raises
    NotServedError where the endpoint evaluates no JSONata.
    """
    findings, unseen, tasks = [], [], _evaluates(context, TASK, mock={"result": '{"Payload": 2}'})
    if not _evaluates(context, CHOICE):
        raise NotServedError(f"{TEST} of this endpoint does not evaluate JSONata")
    for name in naming.MACHINES:
        text, role = _definition(context, name)
        definition = json.loads(text)
        visits = _visits(context, name)
        for state in definition["States"]:
            visit = visits.get(state)
            kind = definition["States"][state]["Type"]
            if visit is None or kind == "Wait" or (kind == "Task" and (visit.result is None or not tasks)):
                unseen.append(f"{name}/{state}")
                continue
            findings.append(_tested(context, (name, definition, role), visit))
    reason = "they wait, or no execution of this run was in them" + ("" if tasks else ", or are tasks: " + NO_TASKS)
    why = f"{len(unseen)} states were not run ({reason}): {', '.join(unseen)}" if unseen else ""
    return Result(name="states", proves=PROVES_STATES, findings=findings, why=why)


def _tested(context: Context, of: tuple[str, Mapping[str, Any], str], visit: Visit) -> Finding:
    name, definition, role = of
    asked: dict[str, Any] = {
        "definition": json.dumps(definition),
        "stateName": visit.state,
        "roleArn": role,
        "input": visit.given,
        "inspectionLevel": "INFO",
        "context": json.dumps(_execution_context(visit.state)),
    }
    if visit.result is not None:
        asked["mock"] = {"result": visit.result, "fieldValidationMode": "NONE"}
    promise = f"{name}/{visit.state} goes where it went"
    try:
        with served(TEST):
            answer = context.aws("stepfunctions").test_state(**asked)
    except ParamValidationError as error:
        raise NotServedError(f"{TEST}: this SDK is too old for `stateName` and `mock`: {error}") from error
    except ClientError as error:
        return Finding(promise=promise, kept=False, found=f"{code(error)}: {error}")
    went = answer.get("nextState")
    if answer["status"] == "FAILED" and answer.get("error"):
        return Finding(promise=promise, kept=False, found=f"{answer['error']}: {answer.get('cause', '')}"[:300])
    return Finding(
        promise=promise, kept=went == visit.then, found=f"to {went or 'the end'}, was {visit.then or 'the end'}"
    )


def _evaluates(context: Context, state: Mapping[str, Any], **more: Any) -> bool:
    """Return whether the endpoint evaluates JSONata, by a state whose next state, or whose output, follows from an
    expression.
    """
    definition = {
        "QueryLanguage": "JSONata",
        "StartAt": "Probe",
        "States": {"Probe": state, "Good": {"Type": "Succeed"}, "Bad": {"Type": "Succeed"}},
    }
    role = _definition(context, naming.TERMINATION)[1]
    with served(TEST):
        answer = context.aws("stepfunctions").test_state(
            definition=json.dumps(definition), stateName="Probe", input='{"n": 1}', roleArn=role, **more
        )
    if "mock" in more and json.loads(answer.get("output") or "{}") != {"n": 2}:
        return False
    return bool(answer.get("nextState") == "Good")


def _execution_context(state: str) -> dict[str, Any]:
    return {
        "Execution": {"Id": "arn:aws:states:us-east-1:000000000000:execution:m:i-0abc-1", "Name": "i-0abc-1"},
        "State": {"Name": state, "EnteredTime": "2026-01-01T00:00:00Z", "RetryCount": 0},
        "Task": {"Token": "token"},
    }


def _definition(context: Context, name: str) -> tuple[str, str]:
    found = context.aws("stepfunctions").describe_state_machine(stateMachineArn=context.run.machine(name))
    return str(found["definition"]), str(found["roleArn"])


def _visits(context: Context, name: str) -> dict[str, Visit]:
    """Return the first successful visit of each state, over the last executions."""
    client, found = context.aws("stepfunctions"), dict[str, Visit]()
    runs = client.list_executions(stateMachineArn=context.run.machine(name), maxResults=MOST_EXECUTIONS)["executions"]
    for run in runs:
        pages = client.get_paginator("get_execution_history").paginate(
            executionArn=run["executionArn"], includeExecutionData=True
        )
        for visit in visits_of(event for page in pages for event in page["events"]):
            found.setdefault(visit.state, visit)
    return found


def visits_of(events: Iterator[Mapping[str, Any]]) -> Iterator[Visit]:
    """Return the visits of a history. A visit whose task failed is omitted: its next state depends on the retry or the
    catch.
    """
    state, given, result, failed = "", "{}", None, False
    pending: Visit | None = None
    for event in events:
        kind = str(event["type"])
        if kind.endswith("StateEntered"):
            details = event["stateEnteredEventDetails"]
            if pending is not None:
                yield Visit(state=pending.state, given=pending.given, result=pending.result, then=details["name"])
            pending = None
            state, given, result, failed = details["name"], details.get("input") or "{}", None, False
        elif kind in _TAKEN:
            details = event.get("taskSucceededEventDetails") or event.get("lambdaFunctionSucceededEventDetails") or {}
            result = details.get("output")
        elif kind.endswith(("Failed", "TimedOut", "Aborted")) and not kind.startswith("Execution"):
            failed = True
        elif kind.endswith("StateExited") and not failed:
            pending = Visit(state=state, given=given, result=result)
        elif kind == "ExecutionSucceeded" and pending is not None:
            yield pending
            pending = None
