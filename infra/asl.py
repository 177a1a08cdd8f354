"""State machine definitions: files in Amazon States Language, written as YAML so that each Retry policy stands once.

Read where they are deployed, simulated and tested, never by a Lambda function."""

from pathlib import Path
from typing import Any

import yaml

PRIVATE = "x-"  # prefix of top-level keys that hold anchors alone


def read_definition(file: Path) -> dict[str, Any]:
    """The definition as Step Functions takes it, its `${...}` unreplaced. Raises OSError and yaml.YAMLError."""
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: value for name, value in found.items() if not name.startswith(PRIVATE)}
