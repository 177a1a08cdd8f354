"""State machine definitions: files in Amazon States Language, written as YAML so that each Retry policy is written
once, for all of them in one file.

They are read by deployment, simulation and tests, never by a Lambda function.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

SHARED = Path(__file__).resolve().parent.parent / "functions/leeward/workflow/shared.asl.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same with libyaml, ten times as fast, where there is one
PRIVATE = "x-"  # prefix of top-level keys that hold only anchors
OWN_TIMEOUT = "${TimeoutSeconds}"  # in an expression of a task: the task's own, as text


def read_definition(file: Path) -> dict[str, Any]:
    """Return the definition as Step Functions accepts it, its `${...}` unreplaced but for `OWN_TIMEOUT`. Raises OSError
    and yaml.YAMLError; line numbers in the latter count from the beginning of the shared blocks.
    """
    text = "\n".join(part.read_text(encoding="utf-8") for part in (SHARED, file))
    found = yaml.load(text, LOADER)
    states = {name: _with_own_timeout(state, state.get("TimeoutSeconds")) for name, state in found["States"].items()}
    return {name: value for name, value in found.items() if not name.startswith(PRIVATE)} | {"States": states}


def _with_own_timeout(value: Any, timeout: object) -> Any:
    """Return the state with its time-out where an expression names it: a Catch cannot read it from the context."""
    if isinstance(value, Mapping):
        return {key: _with_own_timeout(item, timeout) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_own_timeout(item, timeout) for item in value]
    return value.replace(OWN_TIMEOUT, str(timeout).strip("{% }")) if isinstance(value, str) else value
