"""Record of the resources of a run, each written before it is made, so that all can be found and removed however the
run stops.

Each write replaces the file as a whole: a process that is killed leaves the old one or the new one.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from account_test.errors import AccountTestError
from account_test.run import Run, journal_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Resource of a run: its kind (`removal.py` knows how to remove it), its name, and other values that its removal
    needs.
    """

    kind: str
    name: str
    more: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Journal:
    """Journal of one run. Adding and removing a resource are idempotent."""

    def __init__(self, run: Run, path: Path, things: list[Made] | None = None) -> None:
        self.run, self._path = run, path
        self._things = things or []

    @classmethod
    def load(cls, run_id: str) -> "Journal":
        """Load the journal of an earlier run. Raises AccountTestError where there is none."""
        path = journal_of(run_id)
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            things = [Made(kind=one["kind"], name=one["name"], more=one.get("more") or {}) for one in raw["made"]]
            return cls(Run.from_json(raw["run"]), path, things)
        except FileNotFoundError as error:
            raise AccountTestError(
                f"found no journal {path}, expected that of an earlier run: ls {path.parent}"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise AccountTestError(f"{path}: found {error!r}, expected the journal of a run") from error

    def making(self, kind: str, name: str, **more: str) -> Made:
        """Add the resource; call it before the resource is made."""
        made = Made(kind=kind, name=name, more=more)
        if made not in self._things:
            self._things.append(made)
            self._write()
        return made

    def removed(self, made: Made) -> None:
        """Remove the resource from the journal; call it after the resource is removed."""
        if made in self._things:
            self._things.remove(made)
            self._write()

    @property
    def left(self) -> list[Made]:
        """Resources in the order of their removal: the last made comes first."""
        return list(reversed(self._things))

    def _write(self) -> None:
        things: list[dict[str, Any]] = [
            {"kind": made.kind, "name": made.name, "more": dict(made.more)} for made in self._things
        ]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({"run": self.run.to_json(), "made": things}, indent=1) + "\n", encoding="utf-8")
        draft.replace(self._path)
