"""Golden message bodies, one file per source, shaped as AWS documents them; small changes are made in place."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def event(name: str, **changes: Any) -> str:
    """The body of NAME.json. `time=…` changes the envelope, `detail__state=…` its detail; `...` removes;
    `_x_` in a keyword stands for a hyphen.
    """
    raw = json.loads((FOLDER / f"{name}.json").read_text())
    for path, value in changes.items():
        place, _, key = path.replace("_x_", "-").rpartition("__")
        target = raw[place] if place else raw
        if value is ...:
            target.pop(key, None)
        else:
            target[key] = value
    return json.dumps(raw)
