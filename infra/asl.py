"""State machine definitions: files in Amazon States Language, written as YAML so that each Retry policy is written
once, for all of them in one file.

They are read by deployment, simulation and tests, never by a Lambda function.
"""

from pathlib import Path
from typing import Any

import yaml

SHARED = Path(__file__).resolve().parent.parent / "functions/leeward/workflow/shared.asl.yaml"
PRIVATE = "x-"  # prefix of top-level keys that hold only anchors


def read_definition(file: Path) -> dict[str, Any]:
    """Return the definition as Step Functions accepts it, its `${...}` unreplaced. Raises OSError and
    yaml.YAMLError; line numbers in the latter count from the beginning of the shared blocks.
    """
    found = yaml.safe_load("\n".join(part.read_text(encoding="utf-8") for part in (SHARED, file)))
    return {name: value for name, value in found.items() if not name.startswith(PRIVATE)}
