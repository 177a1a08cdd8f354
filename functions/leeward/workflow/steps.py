"""Steps of a workflow: functions by the names that its state machine's definition gives them.

A step takes the run document, does at most one thing that is idempotent, and returns the document with the next
transition."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from leeward.errors import InvalidInputError
from leeward.model.visible import quoted
from leeward.ports import Ports
from leeward.telemetry import Telemetry


class RunDocument(Protocol):
    """Document that travels between the steps of one execution. `next`: the word with which the definition's Choice
    states compare; `why`: a sentence for the operator; `cluster`: empty where no step has found it yet.
    """

    @property
    def next(self) -> StrEnum: ...
    @property
    def why(self) -> str: ...
    @property
    def cluster(self) -> str: ...
    def to_json(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=RunDocument)
Step = Callable[[R, Mapping[str, Any], Ports], R]


def take_step(
    call: Mapping[str, Any], steps: Mapping[str, Step[R]], parse: Callable[[Mapping[str, Any]], R], ports: Ports
) -> R:
    """Run the step that a call of the state machine names: `{"step", "run", "execution"?, "error"?, "cause"?}`. It acts
    in the account and Region of the run's cluster. Raises InvalidInputError for a document that cannot be parsed.
    """
    try:
        run = parse(call.get("run") or {})
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"input: {error}, expected the input of a start") from error
    return steps[call["step"]](run, call, ports.of_cluster(run.cluster) if run.cluster else ports)


def check_started(given: Mapping[str, Any], keys: Mapping[str, type | tuple[type, ...]]) -> None:
    """Check the keys and types of an execution's input: people type it in the console. Raises InvalidInputError. A null
    counts as absent. The document of a later step, which has `next`, was written by a step.
    """
    for key, value in given.items() if "next" not in given else ():
        if key not in keys:
            raise InvalidInputError(f"input: found the key {quoted(key)}, expected no other than {', '.join(keys)}")
        wanted = keys[key]
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        if value is not None and type(value) not in types:
            expected = " or ".join(_KINDS[each] for each in types)
            raise InvalidInputError(f"{key}: found {found_in(value)}, expected {expected}")


def found_in(value: object) -> str:
    """Return a wrong value as a message repeats it, in the words of JSON."""
    return "none" if value is None else quoted(value) if isinstance(value, str) else _NAMES[type(value)]


_NAMES = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
_KINDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list of texts"}


def log_step(telemetry: Telemetry, step: str, result: RunDocument) -> None:
    """Write one line: the sentence of the step, and its document without the samples for reports."""
    document = {name: value for name, value in result.to_json().items() if name != "healthy"}
    telemetry.info(result.why or result.next.value, {"step": step, **document})
