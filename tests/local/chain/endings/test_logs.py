"""Logs of a deployed stack: what each line says about its call, and the documented query over all of them.

The tests read the logs of one story: a node is interrupted, schedules and people start the other functions."""

import json
import re
import time
import uuid
from pathlib import Path

import pytest

from local import fleet
from local.demo import ledger, scenario

pytestmark = pytest.mark.local

GUIDE = Path("docs/operations.md").read_text()
PREFIXES = ("/aws/lambda/leeward-", "/aws/vendedlogs/states/leeward-")  # of the guide
SCHEDULED = ("sync", "reconciler", "disruption-planner")
INVALID = "i-00000000000000bad"
ABOUT = {
    "interruption": "instance",
    "terminate": "execution",
    "drain": "execution",
    "upgrade": "execution",
    "disrupt": "execution",
    "notifications": "instance",
    **dict.fromkeys(SCHEDULED, "correlation_id"),  # a pass is about all clusters
}


@pytest.fixture(scope="module")
def story(stack, crew):
    """The crew, and the instance that has been interrupted."""
    team = crew(2, spot=True, hook=True)
    team.run_pods(fleet.deployment("followed", 1, grace=1), instance=team.instances[0])
    stack.emit(scenario.spot_warning(stack, team.instances[0]))
    for name in SCHEDULED:
        event = {"id": str(uuid.uuid4()), "source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
        stack.client("lambda").invoke(FunctionName=f"leeward-{name}", Payload=json.dumps(event))
    start(stack, "node-group-upgrade", {"group": team.group, "action": "pause"})
    start(stack, "disruption", {"cluster": stack.cluster})
    start(stack, "node-termination", {"instance": INVALID})
    team.closed(team.instances[0])
    team.until(lambda: not any(run["status"] == "RUNNING" for run in executions(stack)), "every execution ended")
    team.until(lambda: "Node Termination Finished" in messages(stack, "notifications"), "the end reported")
    return team


def start(stack, machine, given):
    arn = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-{machine}"
    stack.client("stepfunctions").start_execution(stateMachineArn=arn, input=json.dumps(given))


def executions(stack):
    client = stack.client("stepfunctions")
    for machine in client.list_state_machines()["stateMachines"]:
        yield from client.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]


def lines(stack, group):
    """The JSON lines of a log group that are no metric points."""
    pages = stack.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
    texts = [event["message"] for page in pages for event in page["events"] if event["message"].startswith("{")]
    return [line for line in map(json.loads, texts) if "_aws" not in line]


def messages(stack, function):
    return {line["message"] for line in lines(stack, f"/aws/lambda/leeward-{function}")}


def groups(stack):
    client = stack.client("logs")
    return [
        group["logGroupName"]
        for prefix in PREFIXES
        for group in client.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    ]


def asked(stack, words):
    """(log group, message) of each row of the guide's own query about these words."""
    (text,) = re.findall(r"```text\n(fields [^`]*INSTANCE[^`]*)```", GUIDE)
    client = stack.client("logs")
    query = client.start_query(
        logGroupNames=groups(stack),
        startTime=0,
        endTime=int(time.time()) + 60,
        queryString=text.replace("INSTANCE", words),
    )
    rows = [
        {field["field"]: field["value"] for field in row}
        for row in client.get_query_results(queryId=query["queryId"])["results"]
    ]
    assert [row["@timestamp"] for row in rows] == sorted(row["@timestamp"] for row in rows)
    records = [client.get_log_record(logRecordPointer=row["@ptr"])["logRecord"] for row in rows]
    return [(record["@log"].rpartition(":")[2], record["@message"]) for record in records]


def test_the_query_is_over_the_logs_of_all_functions_and_state_machines(stack, story):
    assert all(f"`{prefix}" in GUIDE for prefix in PREFIXES)
    assert len(groups(stack)) == len(ABOUT) + 4


@pytest.mark.parametrize("function", ABOUT)
def test_a_line_of_each_function_names_its_call_and_what_it_is_about(stack, story, function):
    written = lines(stack, f"/aws/lambda/leeward-{function}")
    keys = ("service", "level", "message", "timestamp", "function_request_id", "xray_trace_id")
    assert [line for line in written if not all(line.get(key) for key in keys)] == []
    assert {line["function_name"] for line in written} == {f"leeward-{function}"}
    assert {line["cold_start"] for line in written} <= {True, False}
    assert True in {line["cold_start"] for line in written}
    assert [line for line in written if line.get(ABOUT[function])] != []


def test_every_line_of_a_step_names_its_execution(stack, story):
    for function in ("terminate", "drain"):
        about = [line for line in lines(stack, f"/aws/lambda/leeward-{function}") if "step" in line]
        assert [line for line in about if line.get("instance") != INVALID and not line.get("execution")] == []


def test_one_query_follows_an_instance_from_the_message_to_its_end(stack, story):
    victim = story.instances[0]
    found = asked(stack, victim)
    said = [(group.rpartition("leeward-")[2], json.loads(text)) for group, text in found if text.startswith("{")]
    assert {"interruption", "terminate", "drain", "notifications"} <= {function for function, _ in said}
    detected = next(line for function, line in said if function == "interruption" and line.get("messageId"))
    assert (detected["instance"], detected["kind"], detected["group"]) == (victim, "spot_interruption", story.group)
    steps = [line for function, line in said if function in {"terminate", "drain"}]
    assert {line["execution"] for line in steps} == {f"{victim}-1"}
    assert {"claim", "replace", "drain", "finish"} <= {line["step"] for line in steps}
    ends = [line for function, line in said if function == "notifications"]
    assert {"Node Termination Detected", "Node Termination Finished"} <= {line["message"] for line in ends}
    assert {line["node"] for line in ends} == {ledger.termination(stack, victim).node}


def test_it_shows_the_failure_of_a_state_machine_beside_that_of_the_function(stack, story):
    found = asked(stack, INVALID)
    assert {group for group, _ in found} == {
        *("/aws/lambda/leeward-terminate", "/aws/vendedlogs/states/leeward-node-termination")
    }
    said = [json.loads(text) for _, text in found if text.startswith("{")]
    assert [line for line in said if line.get("exception_name")] != []
    assert [line for line in said if line.get("type") == "ExecutionFailed"] != []
