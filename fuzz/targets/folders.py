"""Snapshot folders through every offline command, in this process: files changed as JSON or as text."""

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from jsonschema_rs import validator_for

from fuzz import corpus
from fuzz.mutations import ODD_TEXTS, mutated_json, mutated_text
from fuzz.offline_commands import COMMANDS, VALIDATED, offline
from fuzz.reduction import smaller_json
from fuzz.schema_values import Values
from fuzz.target import Disagreement, Target
from leeward.cli.main import BAD_INPUT, DEBUG, main

OUTPUTS = ("json", "json", "table", "yaml")
SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MEMORY = Path("/dev/shm")  # files in memory: thousands are written


@cache
def folders() -> Mapping[str, Mapping[str, Any]]:
    """Return the folders of the corpus by name: the JSON of each file, the text of its policy."""
    return {folder.name: _read(folder) for folder in sorted((corpus.FOLDER / "folders").iterdir())}


class Folders(Target[dict[str, Any]]):
    """Changed files of a folder, and the command that reads it."""

    name = "folders"
    goal = 22_000
    short = 80

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="leeward-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self._changed: set[str] = set()
        for name in folders():
            shutil.copytree(corpus.FOLDER / "folders" / name, self._root / name)

    def close(self) -> None:
        """Remove the copies of the folders."""
        shutil.rmtree(self._root)

    def generate(self, chance: Random) -> dict[str, Any]:
        """Return the files that differ from the folder's own, each as JSON or as its text, and a command."""
        name = chance.choice(list(folders()))
        files = folders()[name]
        chosen = chance.sample(sorted(files), k=chance.choice((1, 1, 2, 3)))
        validated = (*VALIDATED, str(self._root / name / "plan.json"))
        command = validated if "plan" in chosen and chance.random() < 0.7 else chance.choice(COMMANDS)
        return {
            "folder": name,
            "files": {file: _changed(chance, file, files[file]) for file in chosen},
            "command": list(command),
            "output": chance.choice(OUTPUTS),
        }

    def check(self, value: dict[str, Any]) -> None:
        """Run the command and hold what it prints against what it promises."""
        folder = self._root / value["folder"]
        self._write(folder, value["files"])
        code, out, err = _run(offline(_here(value["command"], folder), folder, value["output"]))
        if code not in {0, 1, BAD_INPUT}:
            raise Disagreement(f"exit code: found {code}, expected 0, 1 or 2")
        if _ACTS.search(out) or _ACTS.search(err):
            raise Disagreement(f"terminal: found {_ACTS.findall(out + err)[:3]}, expected them spelled out")
        if code == BAD_INPUT:
            _hold_refusal(out, err)
        elif value["output"] == "json" and out:
            _hold_document(value["command"], json.loads(out, parse_constant=_no_constant))

    def smaller(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield folders with one changed part less."""
        files = value["files"]
        for file in files:
            yield {**value, "files": {name: content for name, content in files.items() if name != file}}
        for file, content in files.items():
            for smaller in smaller_json(content):
                yield {**value, "files": {**files, file: smaller}}

    def _write(self, folder: Path, files: Mapping[str, Any]) -> None:
        """Put back what the last input has changed, and write the files of this one."""
        for path in self._changed:
            source = corpus.FOLDER / "folders" / Path(path).relative_to(self._root)
            shutil.copyfile(source, path)
        self._changed = {str(_path(folder, name)) for name in files}
        for name, content in files.items():
            text = content["text"] if isinstance(content, dict) and content.keys() == {"text"} else json.dumps(content)
            _path(folder, name).write_bytes(text.encode("utf-8", errors="surrogatepass"))


def _run(arguments: list[str]) -> tuple[int, str, str]:
    """Return exit code, output and errors. Raise the errors that `main` reports in a sentence."""
    out, err = io.StringIO(), io.StringIO()
    before = os.environ.get(DEBUG)
    os.environ[DEBUG] = "1"
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    finally:
        os.environ.pop(DEBUG) if before is None else os.environ.update({DEBUG: before})
    return code, out.getvalue(), err.getvalue()


def _hold_refusal(out: str, err: str) -> None:
    if out:
        raise Disagreement(f"refusal: found {out[:100]!r} on standard output, expected nothing")
    if not err.startswith("leeward: ") or "found " not in err or ", expected " not in err:
        raise Disagreement(f"refusal: found {err[:300]!r}, expected what was found and what was expected")


def _hold_document(command: list[str], document: Any) -> None:
    verb = command[command[0] == "inspect"]
    name = f"upgrade-{command[1]}" if verb == "upgrade" else verb
    error = next(_schema(name).iter_errors(document), None)
    if error is not None:
        raise Disagreement(f"schema of {name} {list(error.schema_path)}: found {error.message[:300]}")


@cache
def _schema(name: str) -> Any:
    return validator_for(json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))


def _no_constant(name: str) -> None:
    raise Disagreement(f"JSON: found {name}, expected numbers that JSON has")


def _here(command: list[str], folder: Path) -> list[str]:
    """Return the command with the folder of this process: an input may be one of another."""
    return [str(folder / "plan.json") if part.endswith("/plan.json") else part for part in command]


def _changed(chance: Random, name: str, content: Any) -> Any:
    if isinstance(content, str):
        return {"text": mutated_text(chance, content, ODD_TEXTS)}
    match chance.randrange(12):
        case 0:
            return {"text": mutated_text(chance, json.dumps(content), ODD_TEXTS)}
        case 1 | 2 | 3:
            return Values(chance).placed(name, content)
    return mutated_json(chance, content)


def _path(folder: Path, name: str) -> Path:
    return folder / (name if name.endswith(".yaml") else f"{name}.json")


def _read(folder: Path) -> dict[str, Any]:
    files: dict[str, Any] = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return {**files, "policy.yaml": (folder / "policy.yaml").read_text()}
