"""Entry point of every function: log lines that name the invocation and its subject, and metric points of it.

The subject follows from the event alone, before a step has parsed it: a line about an invalid event has it as well.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from leeward.adapters.powertools import in_invocation
from leeward.model.termination import execution_name

NAMES = ("instance", "node", "group", "cluster")  # of a run document, and of lines
LONGEST = 256  # characters of a key's value: people start executions with input of their own
Answer = TypeVar("Answer", bound=Mapping[str, Any])


def entry_point(
    service: str,
) -> Callable[[Callable[[Mapping[str, Any], object], Answer]], Callable[[Mapping[str, Any], object], Answer]]:
    """Return a decorator for the handler of a function. `service`: of the lines about the invocation itself.

    A call without Lambda's context, as tests make it, reaches the handler directly.
    """

    def decorate(handler: Callable[[Mapping[str, Any], object], Answer]) -> Any:
        invoked = in_invocation(handler, service, subject_of)

        @wraps(handler)
        def handle(event: Mapping[str, Any], context: object) -> Any:
            return (invoked if hasattr(context, "aws_request_id") else handler)(event, context)

        return handle

    return decorate


def subject_of(event: Any) -> dict[str, str]:
    """Return the keys of every line of an invocation: `correlation_id` (the execution, the id of EventBridge's event or
    that of a lone record), and the names that the event has.
    """
    if not isinstance(event, Mapping):
        return {}
    if "step" in event:
        keys = _of_step(event)
    elif "detail-type" in event:
        keys = {"correlation_id": event.get("id"), "execution": _mapping(event.get("detail")).get("name")}
    else:
        keys = {"correlation_id": _record_id(event.get("Records"))}
    return {name: value[:LONGEST] for name, value in keys.items() if isinstance(value, str) and value}


def _of_step(event: Mapping[str, Any]) -> dict[str, Any]:
    """A run document names its execution, or its instance and attempt do."""
    run = _mapping(event.get("run"))
    execution = event.get("execution") or run.get("execution")
    if not execution and run.get("instance") and run.get("attempt"):
        execution = execution_name(run["instance"], run["attempt"])
    names = {name: run.get(name) for name in NAMES}
    return {"correlation_id": execution, "execution": execution, "step": event["step"], **names}


def _record_id(records: Any) -> Any:
    """Return the id of the message or of the change in the stream; None for several, whose lines name their own."""
    if not isinstance(records, list) or len(records) != 1:
        return None
    record = _mapping(records[0])
    return record.get("messageId") or record.get("eventID")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
