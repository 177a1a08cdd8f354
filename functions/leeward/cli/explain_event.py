"""`leeward inspect explain-event`: the content of a queue message and Leeward's decision on it.

Decides how a decision is printed; `leeward.interruption.decide` makes the decision. Changes nothing."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from leeward.cli.context import ClusterContext, context_of
from leeward.cli.output import emit
from leeward.cli.tables import Table
from leeward.cluster.joins import nodes_by_instance
from leeward.errors import InvalidInputError, LeewardError
from leeward.interruption.decide import decide, malformed
from leeward.interruption.decision import Decision, HookAnswer, NodeAction, RecordOutcome
from leeward.interruption.fields import MalformedMessageError
from leeward.interruption.lookup import look_up, name_instances
from leeward.interruption.parse import parse
from leeward.interruption.world import MessageWorld
from leeward.model.message import InterruptionMessage, Message, MessageKind, hook_of
from leeward.model.termination import Status, TerminationRecord, execution_name
from leeward.model.times import format_instant
from leeward.ports.records import Claims

STDIN = "-"
QUEUE_NAME = "leeward-interruption"  # its hooks are Leeward's; offline the account is not known
WITH_DEADLINE = frozenset(
    {
        MessageKind.SPOT_INTERRUPTION,
        MessageKind.CAPACITY_RESERVATION,
        MessageKind.CAPACITY_BLOCK,
        MessageKind.SCHEDULED_CHANGE,
        MessageKind.ASG_TERMINATE,
        MessageKind.REPLACE_ROOT_VOLUME,
    }
)
DESCRIPTION = """Shows what a message of the interruption queue says and what follows from it: for which instances,
how a lifecycle hook is answered, and why. Each FILE holds the body of one SQS message. Without --snapshot and
--cluster instances are taken as running in a selected group of ours."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="an SQS message body as JSON, - for standard input")


def run(arguments: argparse.Namespace) -> int:
    """Print one object for one body, an array for several. Return 0 always: a malformed body is a result too."""
    bodies = [_read(name) for name in arguments.files]
    documents = _explain(bodies, arguments)
    emit(documents[0] if len(documents) == 1 else documents, arguments.view, lambda: _table(documents))
    return 0


def _read(name: str) -> str:
    """Return the text, whatever its bytes: the parser judges a body that is not JSON. Raises InvalidInputError."""
    try:
        if name == STDIN:
            raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
        else:
            raw = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"{name}: found no readable file ({why}), expected an SQS message body") from error
    return raw.decode("utf-8-sig", errors="replace")


def _explain(bodies: Sequence[str], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    parsed = [_parse(body, arguments.now) for body in bodies]
    if arguments.snapshot is None and arguments.cluster is not None:
        return _live(parsed, arguments)
    origins = frozenset({(arguments.account or "", arguments.region or "")})
    if arguments.snapshot is None:
        world = MessageWorld(complete=False, origins=origins)
    else:
        context = context_of(arguments, "inspect explain-event")
        parsed = name_instances(parsed, context.ports.instances, confirmed=False)
        world = world_of(context, [found for found in parsed if isinstance(found, Message)], origins)
    return [document_of(_decide(found, world, arguments.now), found, arguments.now) for found in parsed]


def _parse(body: str, now: datetime) -> InterruptionMessage | MalformedMessageError:
    try:
        return parse(body, received=now)
    except MalformedMessageError as error:
        return error


def _decide(found: InterruptionMessage | MalformedMessageError, world: MessageWorld, now: datetime) -> Decision:
    return decide(found, world, now=now) if isinstance(found, Message) else malformed(str(found))


def world_of(
    context: ClusterContext, messages: Sequence[InterruptionMessage], origins: frozenset[tuple[str, str]]
) -> MessageWorld:
    """Return a folder as the interruption package reads it: the cluster's groups are those that a policy selects."""
    ports = context.ports
    policies = ports.clusters.policies(context.cluster)
    name = context.cluster or policies.settings.name or "snapshot"
    groups = {group.name: group for group in ports.groups.of_clusters([name])}
    named = {hook.group for message in messages if (hook := hook_of(message)) is not None}
    hooks = {group: tuple(ports.groups.hooks(group)) for group in groups.keys() | named}
    targets = [hook.target_arn for found in hooks.values() for hook in found if hook.target_arn]
    nodes = ports.clusters.kubernetes(name).nodes()
    return MessageWorld(
        clusters=(name,),
        policies={name: policies} if context.folder is not None and context.folder.has_policies else {},
        instances=ports.instances.describe({instance for message in messages for instance in message.instances}),
        groups=groups,
        hooks=hooks,
        nodes=nodes_by_instance(nodes),
        queue_arns=frozenset(target for target in targets if target.endswith(f":{QUEUE_NAME}")),
        origins=origins,
        unread=frozenset(named - groups.keys()),
        tagged=False,
    )


def _live(
    parsed: Sequence[InterruptionMessage | MalformedMessageError], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    ports = context_of(arguments, "inspect explain-event").ports
    if ports.place is None and (arguments.account or arguments.region):  # else they are the deployment's
        ports = replace(ports, origins=frozenset({(arguments.account or "", arguments.region or "")}))
    parsed = name_instances(parsed, ports.instances)
    lookup = look_up([found for found in parsed if isinstance(found, Message)], ports)
    documents = []
    for found in parsed:
        error = lookup.error_for(found) if isinstance(found, Message) else None
        decision = _again(error) if error else _decide(found, lookup.world, arguments.now)
        documents.append(document_of(decision, found, arguments.now, _attempts(decision, ports.claims)))
    return documents


def _again(error: LeewardError) -> Decision:
    return Decision(
        kind=None, outcome=RecordOutcome.RETRY, action=NodeAction.NONE, reason=f"{type(error).__name__}: {error}"
    )


def _attempts(decision: Decision, claims: Claims) -> Mapping[str, int]:
    claimed = [node.instance for node in decision.nodes if node.cause]
    records = claims.read_all(claimed)
    return {instance: _attempt(records.get(instance)) for instance in claimed}


def _attempt(record: TerminationRecord | None) -> int:
    """Return the attempt that this cause would start or join."""
    if record is None:
        return 1
    return record.attempt + (record.status is Status.CLOSED)


def document_of(
    decision: Decision,
    found: InterruptionMessage | MalformedMessageError,
    now: datetime,
    attempts: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the document of docs/schema/explain-event.json; every key is always present."""
    message = found if isinstance(found, Message) else None
    deadline = decision.deadline if decision.kind in WITH_DEADLINE else None
    offering = decision.unavailable
    return {
        "kind": message.kind.value if message else None,
        "instances": list(message.instances) if message else [],
        "action": decision.action.value,
        "at": format_instant(message.at if message else now),
        "deadline": format_instant(deadline) if deadline else None,
        "hook": _hook(decision.hook),
        "unavailable": {
            "instanceType": offering.instance_type,
            "zone": offering.zone,
            "capacityType": offering.capacity_type.value,
        }
        if offering
        else None,
        "execution": {
            node.instance: execution_name(node.instance, (attempts or {}).get(node.instance, 1))
            for node in decision.nodes
            if node.cause
        },
        "outcome": decision.outcome.value,
        "reason": decision.reason,
    }


def _hook(answer: HookAnswer | None) -> dict[str, str] | None:
    if answer is None:
        return None
    return {
        "AutoScalingGroupName": answer.action.group,
        "LifecycleHookName": answer.action.hook,
        "LifecycleActionToken": answer.action.token,
        "InstanceId": answer.action.instance,
        "LifecycleActionResult": answer.result.value,
    }


def _table(documents: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(
        ("KIND", "INSTANCE", "ACTION", "AT", "DEADLINE", "HOOK", "OUTCOME", "REASON"),
        wide=frozenset({"AT", "HOOK"}),
        optional=("DEADLINE", "INSTANCE"),
        kind="instance",
    )
    for document in documents:
        hook = document["hook"]
        table.add(
            document["kind"],
            ",".join(document["instances"]),
            document["action"],
            document["at"],
            document["deadline"],
            f"{hook['LifecycleHookName']}={hook['LifecycleActionResult']}" if hook else None,
            document["outcome"],
            document["reason"],
            names=document["instances"],
        )
    return table
