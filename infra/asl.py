"""State machine definitions: files in Amazon States Language, written as YAML so that each Retry policy is written
once.

They are read by deployment, simulation and tests, never by a Lambda function.
"""

from pathlib import Path
from typing import Any

import yaml

PRIVATE = "x-"  # prefix of top-level keys that hold only anchors


def read_definition(file: Path) -> dict[str, Any]:
    """Return the definition as Step Functions accepts it, its `${...}` unreplaced. Raises OSError and
    yaml.YAMLError.
    """
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: value for name, value in found.items() if not name.startswith(PRIVATE)}
