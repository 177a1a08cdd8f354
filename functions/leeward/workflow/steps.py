"""Steps of a workflow: functions by the names that its state machine's definition gives them.

A step takes the run document, does at most one thing that is idempotent, and returns the document with the next
transition."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

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
    in the account and Region of the run's cluster.
    """
    run = parse(call.get("run") or {})
    return steps[call["step"]](run, call, ports.of_cluster(run.cluster) if run.cluster else ports)


def log_step(telemetry: Telemetry, step: str, result: RunDocument) -> None:
    """Write one line: the sentence of the step, and its document without the samples for reports."""
    document = {name: value for name, value in result.to_json().items() if name != "healthy"}
    telemetry.info(result.why or result.next.value, {"step": step, **document})
