"""Calls of IAM's policy simulator, in batches that it answers whole, and detection of one that evaluates nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from account_test.aws import code, served
from account_test.context import Context
from account_test.errors import NotServedError

NEVER = "iam:CreateUser"  # no role of ours may do this: an endpoint that allows it evaluates nothing
CALL = "iam:SimulatePrincipalPolicy"
MOST_RESULTS = 100  # of one answer (IAM API reference, MaxItems); each action is evaluated for each resource
MOST_RESOURCES = 25  # of one call, so that an answer holds several actions
Decisions = dict[tuple[str, str], str]  # (action, resource) -> decision
Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question to the simulator: every action on every resource, with this context."""

    role: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    entries: Entries = ()

    def batches(self) -> Iterator["Question"]:
        """Return questions with at most MOST_RESULTS answers each."""
        for resources in _cut(self.resources, MOST_RESOURCES):
            for actions in _cut(self.actions, MOST_RESULTS // len(resources)):
                yield replace(self, actions=actions, resources=resources)


def simulate(context: Context, question: Question) -> Decisions:
    """Return the decision by action and resource."""
    decisions: Decisions = {}
    for batch in question.batches():
        decisions |= _asked(context, batch)
        for resource in batch.resources:  # an endpoint may sum up several resources in one decision
            missing = tuple(action for action in batch.actions if (action, resource) not in decisions)
            if missing and len(batch.resources) > 1:
                alone = replace(batch, actions=missing, resources=(resource,))
                decisions |= _asked(context, alone)
    return decisions


def _asked(context: Context, batch: Question) -> Decisions:
    """Return the decisions of one batch. Where IAM does not know one of several actions, each is simulated alone."""
    try:
        results = list(_pages(context, batch))
    except ClientError as error:
        if len(batch.actions) == 1:
            return {(batch.actions[0], resource): f"not evaluated ({code(error)})" for resource in batch.resources}
        found: Decisions = {}
        for action in batch.actions:
            found |= _asked(context, replace(batch, actions=(action,)))
        return found
    return {key: decision for result in results for key, decision in _decided(result, batch.resources)}


def _pages(context: Context, batch: Question) -> Iterator[Mapping[str, Any]]:
    asked: dict[str, Any] = {
        "PolicySourceArn": batch.role,
        "ActionNames": list(batch.actions),
        "ResourceArns": list(batch.resources),
        "ContextEntries": list(batch.entries),
    }
    while True:
        with served(CALL):
            answer = context.aws("iam").simulate_principal_policy(**asked)
        yield from answer["EvaluationResults"]
        if not answer.get("IsTruncated"):
            return
        asked["Marker"] = answer["Marker"]


def _decided(result: Mapping[str, Any], resources: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Return the decision for each resource: EvalDecision alone sums them up where there are several."""
    action, of_each = result["EvalActionName"], result.get("ResourceSpecificResults") or ()
    for one in of_each:
        yield (action, one["EvalResourceName"]), one["EvalResourceDecision"]
    named = {one["EvalResourceName"] for one in of_each}
    if len(resources) == 1 and resources[0] not in named:
        yield (action, resources[0]), result["EvalDecision"]
    elif not of_each:
        yield (action, str(result.get("EvalResourceName") or "*")), result["EvalDecision"]


def refuse_a_rubber_stamp(context: Context, role: str) -> None:
    """Raise NotServedError where the endpoint allows what no role of ours may do."""
    question = Question(role=role, actions=(NEVER,), resources=("*",))
    if simulate(context, question).get((NEVER, "*")) == "allowed":
        raise NotServedError(f"{CALL} of this endpoint allows everything: it evaluates nothing")


def evaluates_conditions(context: Context) -> bool:
    """Return whether the endpoint evaluates conditions, by a policy of one condition that the context meets."""
    key = "aws:ResourceTag/leeward"
    statement = {"Effect": "Allow", "Action": "ec2:StopInstances", "Resource": "*"}
    document = {
        "Version": "2012-10-17",
        "Statement": [{**statement, "Condition": {"StringEquals": {key: "yes"}}}],
    }
    entry = {"ContextKeyName": key, "ContextKeyValues": ["yes"], "ContextKeyType": "string"}
    with served("iam:SimulateCustomPolicy"):
        answer = context.aws("iam").simulate_custom_policy(
            PolicyInputList=[json.dumps(document)], ActionNames=["ec2:StopInstances"], ContextEntries=[entry]
        )
    return bool(answer["EvaluationResults"][0]["EvalDecision"] == "allowed")


def _cut(items: tuple[str, ...], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
