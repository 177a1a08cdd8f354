"""States inside Map iterations and Parallel branches, with a history and variables of their own.

ministack writes no events for them nor for their iterations and branches, and lets sibling branches share one context.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import now_iso
from ministack.services import stepfunctions as machine

from local.aws.pins import expect_parameters
from local.aws.stepfunctions import running

_WITH_EXECUTION = ("Task", "Parallel", "Map")
_within: contextvars.ContextVar[tuple[str, str]] = contextvars.ContextVar("within", default=("", ""))


def install() -> None:
    """Replace the walk through a branch's states."""
    expect_parameters("ministack", machine._run_sub_machine, "states", "start_at", "input_data", "execution", "ctx")
    expect_parameters("ministack", machine._fail_state_error, "state_def", "raw_input", "ctx")
    expect_parameters("ministack", machine._run_map_items, "state_def", "raw_input", "execution", "ctx")
    expect_parameters("ministack", machine._run_parallel_branches, "state_def", "raw_input", "execution", "ctx")
    machine._run_sub_machine = run_branch
    machine._run_map_items = _reported("Map", machine._run_map_items)
    machine._run_parallel_branches = _reported("Parallel", machine._run_parallel_branches)


def _reported(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Run one attempt of a Map or Parallel state, between its own events."""

    @functools.wraps(original)
    def fan_out(state_def: dict[str, Any], raw_input: Any, execution: dict[str, Any], ctx: dict[str, Any]) -> Any:
        before = _within.set((kind, ctx["State"]["Name"]))
        machine._add_event(execution, f"{kind}StateStarted")
        try:
            result = original(state_def, raw_input, execution, ctx)
        except machine._ExecutionError:
            machine._add_event(execution, f"{kind}StateFailed")
            raise
        finally:
            _within.reset(before)
        machine._add_event(execution, f"{kind}StateSucceeded")
        return result

    return fan_out


def run_branch(
    states: Mapping[str, Any], start_at: str, input_data: Any, execution: dict[str, Any], ctx: dict[str, Any]
) -> Any:
    """Walk from ``start_at`` to an end; an iteration of a Map has an event before and after."""
    kind, name = _within.get()
    if kind != "Map":
        return _walk(states, start_at, input_data, execution, ctx)
    details = {"name": name, "index": ctx["Map"]["Item"]["Index"]}
    machine._add_event(execution, "MapIterationStarted", {"mapIterationStartedEventDetails": details})
    try:
        output = _walk(states, start_at, input_data, execution, ctx)
    except machine._ExecutionError:
        machine._add_event(execution, "MapIterationFailed", {"mapIterationFailedEventDetails": details})
        raise
    machine._add_event(execution, "MapIterationSucceeded", {"mapIterationSucceededEventDetails": details})
    return output


def _walk(
    states: Mapping[str, Any], start_at: str, input_data: Any, execution: dict[str, Any], ctx: dict[str, Any]
) -> Any:
    """Return the last output. Variables assigned here stay here, as on AWS."""
    own = {**ctx, "variables": dict(ctx.get("variables", {}))}
    name: str | None = start_at
    value = copy.deepcopy(input_data)
    while name:
        running.check()
        state = states.get(name)
        if state is None:
            raise machine._ExecutionError("States.Runtime", f"State '{name}' not found")
        kind = state.get("Type")
        own["State"] = {"Name": name, "EnteredTime": now_iso(), "RetryCount": 0}
        _record(execution, f"{kind}StateEntered", "stateEnteredEventDetails", {"name": name, "input": value})
        output, following = _step(kind, state, value, execution, own)
        _record(execution, f"{kind}StateExited", "stateExitedEventDetails", {"name": name, "output": output})
        value, name = output, following
    return value


def _step(
    kind: str, state: dict[str, Any], value: Any, execution: dict[str, Any], ctx: dict[str, Any]
) -> tuple[Any, str | None]:
    if kind == "Succeed":
        chosen = machine._apply_input_path(state, value, ctx)
        return machine._apply_output_path(state, chosen, ctx), None
    if kind == "Fail":
        raise machine._ExecutionError(*machine._fail_state_error(state, value, ctx))
    handler = getattr(machine, f"_execute_{str(kind).lower()}", None)
    if handler is None:
        raise machine._ExecutionError("States.Runtime", f"Unknown state type: {kind}")
    result: tuple[Any, str | None] = (
        handler(state, value, execution, ctx) if kind in _WITH_EXECUTION else handler(state, value, ctx)
    )
    return result


def _record(execution: dict[str, Any], event_type: str, key: str, details: Mapping[str, Any]) -> None:
    written = {name: value if name == "name" else json.dumps(value) for name, value in details.items()}
    machine._add_event(execution, event_type, {key: written})
