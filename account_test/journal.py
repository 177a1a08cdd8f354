"""What the run makes, written down before it is made, so that whatever stops it, all of it can be found and removed.

Each write replaces the file as a whole: a process that is killed leaves the old one or the new one."""

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
    """One thing: of which kind (`removal.py` knows how to remove it), its name, and what else its removal needs."""

    kind: str
    name: str
    more: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Journal:
    """Of one run. Adding a thing twice is adding it once; removing twice too."""

    def __init__(self, run: Run, path: Path, things: list[Made] | None = None) -> None:
        self.run, self._path = run, path
        self._things = things or []

    @classmethod
    def load(cls, run_id: str) -> "Journal":
        """Of an earlier run. Raises AccountTestError where there is none."""
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
        """Call it before the thing is made."""
        made = Made(kind=kind, name=name, more=more)
        if made not in self._things:
            self._things.append(made)
            self._write()
        return made

    def removed(self, made: Made) -> None:
        """Call it after the thing is gone."""
        if made in self._things:
            self._things.remove(made)
            self._write()

    @property
    def left(self) -> list[Made]:
        """In the order in which they are removed: what was made last comes first."""
        return list(reversed(self._things))

    def _write(self) -> None:
        things: list[dict[str, Any]] = [
            {"kind": made.kind, "name": made.name, "more": dict(made.more)} for made in self._things
        ]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({"run": self.run.to_json(), "made": things}, indent=1) + "\n", encoding="utf-8")
        draft.replace(self._path)
