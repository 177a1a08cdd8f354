"""Every failed execution has an error and a cause of one sentence that names what it is about, whatever has failed:
never Lambda's JSON, never a traceback."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import infra  # it names the Node.js that was installed as a Python package
from simulation.definitions import definitions
from simulation.expressions import by_jsonata, evaluate
from simulation.invocations import Ended
from tests.fakes.builders import CLUSTER, GROUP
from tests.state_machines.causes import flaws
from tests.state_machines.graph import Graph, existing
from tests.state_machines.started import executed
from tests.state_machines.test_names_in_outputs import DOCUMENTS, NAMED, STARTED

REQUEST = "6f1b5b2e-1b1b-4c4c-8d8d-1234567890ab"


def from_function(kind, message):
    """As the Python runtime reports an exception."""
    trace = ["Traceback (most recent call last):\n", '  File "/var/task/leeward/x.py", line 1, in {f}\n']
    return json.dumps({"errorMessage": message, "errorType": kind, "requestId": REQUEST, "stackTrace": trace})


def from_sandbox(kind, message):
    """As Lambda reports the end of a process: without blanks, the type first."""
    text = f"RequestId: {REQUEST} Error: {message}"
    return json.dumps({"errorType": kind, "errorMessage": text}, separators=(",", ":"))


LONG = from_function("ValueError", "word " * 20_000)
LATE = f"2026-11-27T17:00:00.123Z {REQUEST} Task timed out after 55.05 seconds"
UNKNOWN = "The cause could not be determined because Lambda did not return an error type. Returned payload: "
KINDS = {
    "own": ("AccessDeniedError", from_function("AccessDeniedError", "ec2:CreateFleet on web: denied"), "web: denied"),
    "a defect": ("KeyError", from_function("KeyError", "'uid'"), "KeyError in "),
    "braces": ("ValueError", from_function("ValueError", 'a {"kind": "Status"}'), 'a ("kind": "Status")'),
    "other letters": ("ValueError", json.dumps({"errorMessage": "é \\ … 😀"}, ensure_ascii=False), "é \\ … 😀"),
    "escaped letters": ("ValueError", from_function("ValueError", "é \\ … 😀"), "é \\ … 😀"),
    "two lines": ("ValueError", from_function("ValueError", "one\n\ttwo\x1b[2J\nTraceback (most…\n x"), "one two"),
    "a text that looks like JSON": (
        "ValueError",
        from_function("ValueError", 'pod says "errorMessage": "\\q {"errorMessage": "\\'),
        "pod says",
    ),
    "cut at 32 KB": ("ValueError", LONG[:32768], "word word"),
    "cut in an escape": ("ValueError", '{"errorMessage": "abc\\', "abc"),
    "cut in a letter": ("ValueError", '{"errorMessage": "abc\\u00', "abc"),
    "cut before the message": ("ValueError", '{"errorType": "Val', "no message came with it"),
    "of a function that called one": ("E", from_function("E", from_function("E", "inner")), ": inner"),
    "no text": ("E", '{"errorMessage": null, "errorType": "E"}', "no message came with it"),
    "blank": ("E", "  \n ", "no message came with it"),
    "a step that does not answer": ("States.Timeout", "", "no answer in "),
    "a heartbeat that is missed": ("States.HeartbeatTimeout", "", "no answer in "),
    "the function's own time-out": (
        "Sandbox.Timedout",
        from_sandbox("Sandbox.Timedout", "Task timed out after 55.05 seconds"),
        ": Task timed out after 55.05 seconds",
    ),
    "no type": (
        "Lambda.Unknown",
        UNKNOWN + json.dumps({"errorMessage": LATE}),
        ": Task timed out after 55.05 seconds",
    ),
    "no payload": ("Lambda.Unknown", UNKNOWN + "{}", "did not return an error type"),
    "exit": (
        "Runtime.ExitError",
        from_sandbox("Runtime.ExitError", "Runtime exited with error: signal: killed"),
        ": Runtime exited with error: signal: killed",
    ),
    "no memory": ("Runtime.OutOfMemory", from_sandbox("Runtime.OutOfMemory", ""), "no message came with it"),
    "import": (
        "Runtime.ImportModuleError",
        from_function("Runtime.ImportModuleError", "Unable to import module 'x': No module named 'y'"),
        "No module named 'y'",
    ),
    "throttle": (
        "Lambda.TooManyRequestsException",
        f"Rate Exceeded. (Service: Lambda, Status Code: 429, Request ID: {REQUEST})",
        "Rate Exceeded.",
    ),
    "an expression": (
        "States.QueryEvaluationError",
        "The JSONata expression '{% $states.input.x %}' specified for the field 'Output' returned nothing (undefined).",
        "returned nothing",
    ),
    "another machine": ("States.TaskFailed", '{"Error":"E","Cause":"c","Status":"FAILED"}', "no message came with it"),
}
GRAPHS = {name: Graph(name) for name in existing()}
CALLS = [(machine, state) for machine, graph in GRAPHS.items() for state in set(graph.tasks) - graph.pauses]
FIRST = {"TakeLease", "TakeDisruption"}  # no record is known there
kinds = pytest.mark.parametrize(("error", "cause", "said"), KINDS.values(), ids=KINDS)


def given_to(machine, state):
    """The input of the state: the document, wrapped where a Catch has wrapped it."""
    run = GRAPHS[machine].tasks[state]["Arguments"].get("Payload", {}).get("run")
    document = DOCUMENTS[machine] | {"pause": 5}
    return {"run": document, "error": "E", "cause": "E in X: c"} if run == "{% $states.input.run %}" else document


def names_at(machine, state):
    """What the cause of a failure names."""
    return (STARTED[machine][1],) if state in FIRST else NAMED.get(machine, (GROUP, CLUSTER))


def noted(payload):
    """Step that records a failure, as the functions do it."""
    return Ended(result={**payload["run"], "next": "failed", "why": f"{payload['cause']}; tried again at 10:00:00Z"})


@kinds
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not recorded"])
def test_any_error_of_any_step_ends_in_a_sentence(error, cause, said, recorded):
    """`recorded`: the step that records the failure works, else it fails in the same way."""
    failed = None if error == "States.Timeout" else Ended(error=error, cause=cause)  # None: it never answers

    def answer(payload):
        return noted(payload) if recorded and "cause" in payload else failed

    wrong = {}
    for machine, state in CALLS:
        if not (recorded and state.startswith("Note")):
            end = executed(machine, given_to(machine, state), answer, at=state)
            if end.status != "FAILED" or flaws(end.error, end.cause, said, *names_at(machine, state)):
                wrong[f"{machine}/{state}"] = (end.status, end.error, end.cause)
    assert wrong == {}


@pytest.mark.parametrize("state", sorted(GRAPHS["node-termination"].pauses))
def test_a_pause_that_the_table_refuses_ends_in_a_sentence(state):
    refused = "DynamoDb.ResourceNotFoundException"
    machine = "node-termination"
    end = executed(machine, given_to(machine, state), noted, at=state, pause=refused)
    assert flaws(end.error, end.cause, f"{refused} in {state}: the conditional request failed", *NAMED[machine]) == []


def test_a_step_that_does_not_answer_is_named_with_its_time_out():
    for machine, seconds in (("node-termination", 60), ("disruption", 330)):
        state = definitions()[machine]["StartAt"]
        assert definitions()[machine]["States"][state]["TimeoutSeconds"] == seconds
        end = executed(machine, STARTED[machine][0], lambda _: None)
        assert end.cause.endswith(f"no answer in {seconds} seconds"), end.cause
        assert "States.Timeout in " in end.cause


@pytest.mark.parametrize("machine", GRAPHS)
def test_the_reason_of_a_product_s_own_failure_is_one_line_without_braces(machine):
    """Reasons quote clusters: webhooks, scaling activities, EKS."""
    hostile = 'the webhook says {"code": 403}\n\x1b[2Jdone\u202e ' + "x" * 5000
    for name, state in GRAPHS[machine].of_type("Fail").items():
        if name == "InvalidInput":
            continue
        end = executed(machine, {**DOCUMENTS[machine], "why": hostile}, lambda _: None, at=name)
        assert (end.error, flaws(end.error, end.cause, 'the webhook says ("code": 403)')) == (state["Error"], [])


@pytest.mark.parametrize("machine", GRAPHS)
def test_every_condition_and_pause_has_a_value_for_a_document_of_a_step(machine):
    """One that is undefined fails the execution, and so does a time-out of 0."""
    for pause in (-1, 0, 5):
        states = {"input": DOCUMENTS[machine] | {"pause": pause}, "context": {"State": {"EnteredTime": "2026"}}}
        for name, state in definitions()[machine]["States"].items():
            for choice in state.get("Choices", ()):
                assert isinstance(evaluate(choice["Condition"], {"states": states}), bool), name
            if name in GRAPHS[machine].pauses:
                assert evaluate(state["TimeoutSeconds"], {"states": states}) == (pause if pause > 0 else 1), name


NODE = "const jsonata = require('jsonata'); const fs = require('fs');" + (
    "(async () => { const out = []; for (const [e, b] of JSON.parse(fs.readFileSync(0))) {"
    "const x = jsonata(e); x.registerFunction('parse', s => JSON.parse(s));"
    "out.push((await x.evaluate(undefined, b)) ?? null); } console.log(JSON.stringify(out)); })();"
)


def test_the_reference_implementation_of_jsonata_says_the_same():
    """jsonata of npm, whose error texts are those of Step Functions."""
    state = definitions()["node-termination"]["States"]["Drain"]
    (catcher,) = state["Catch"]
    cause = definitions()["node-termination"]["States"]["OutOfTime"]["Cause"]
    asked = []
    for error, text, _ in KINDS.values():
        for output in ({"Error": error, "Cause": text}, {"Error": error}):
            states = {"input": {}, "errorOutput": output, "context": {"State": {"Name": "Drain"}}}
            asked.append((catcher["Output"]["cause"], states))
        asked.append((cause, {"input": {"about": "a", "why": text}}))
    for given in ([1], "text", 5, True, None, {"instance": "i-1"}):
        asked.append((catcher["Output"]["run"], {"input": given}))
    pairs = [(expression.removeprefix("{%").removesuffix("%}").strip(), {"states": b}) for expression, b in asked]
    done = subprocess.run(
        [os.environ.get("JSII_NODE", "node"), "-e", NODE],
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(infra.__file__).parent.parent,
    )
    assert json.loads(done.stdout) == [by_jsonata(expression)(scope) for expression, scope in pairs]
