"""Valid inputs to begin from."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
EVENTS = FOLDER.parents[1] / "tests" / "events"  # one message of each kind, as AWS wrote it


@cache
def texts(*patterns: str) -> tuple[str, ...]:
    """Return the files of the corpus that match, in the order of their names."""
    return tuple(path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(FOLDER.glob(pattern)))


@cache
def events() -> tuple[Any, ...]:
    """Return the bodies of queue messages, parsed."""
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in sorted(EVENTS.glob("*.json")))
