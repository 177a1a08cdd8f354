"""Outcomes of finished seeds in a file, one line each: a repeated command continues a run that was ended."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from simulation.case import Case
from simulation.outcome import Outcome
from simulation.rule import Rule, Violation

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("functions/leeward", "local/cluster", "simulation")


class Finished:
    """File of outcomes. A line counts for the same case and the same source alone; others are ignored."""

    def __init__(self, path: Path) -> None:
        self._path, self._source = path, source_digest()
        self._outcomes = dict(self._read())
        if path.exists() and not path.read_bytes().endswith(b"\n"):  # a killed process has cut the last line off
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def outcome(self, case: Case) -> Outcome | None:
        """Return the outcome of a case that has been run, without its story."""
        return self._outcomes.get(case.to_json())

    def add(self, case: Case, outcome: Outcome) -> None:
        """Append the outcome."""
        line = {"source": self._source, "case": case.to_json(), "outcome": asdict(replace(outcome, story=()))}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=str) + "\n")

    def _read(self) -> list[tuple[str, Outcome]]:
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        found = [line for text in lines if (line := _parsed(text)) is not None]
        return [(line["case"], _outcome(line["outcome"])) for line in found if line["source"] == self._source]


def source_digest() -> str:
    """Return a digest of the source that decides what a seed does."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        line: Mapping[str, Any] = json.loads(text)
    except ValueError:
        return None
    return line


def _outcome(raw: Mapping[str, Any]) -> Outcome:
    violations = tuple(Violation(**{**violation, "rule": Rule(violation["rule"])}) for violation in raw["violations"])
    return Outcome(**{**raw, "violations": violations, "unexpected": tuple(raw["unexpected"]), "story": ()})
