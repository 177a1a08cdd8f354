"""Progress of each target with a seed, and the inputs that failed: files of a folder that git ignores."""

import json
import re
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path

from fuzz.runner import Failure, Figures, Result

FOLDER = Path("build/fuzz")


@dataclass(slots=True, kw_only=True)
class Progress(Figures):
    """Sum of the runs of one target with one seed."""

    def plus(self, result: Result) -> "Progress":
        """Return the sum with one more run."""
        slower = result.slowest > self.slowest
        return Progress(
            inputs=self.inputs + result.inputs,
            cpu=round(self.cpu + result.cpu, 1),
            slowest=result.slowest if slower else self.slowest,
            slowest_number=result.slowest_number if slower else self.slowest_number,
        )


def load(target: str, seed: int, folder: Path = FOLDER) -> Progress:
    """Return the progress of the target; zero without a file."""
    try:
        known = json.loads(_file(target, seed, folder).read_text())
    except FileNotFoundError:
        return Progress()
    return Progress(**{one.name: known[one.name] for one in fields(Progress)})


def save(target: str, seed: int, progress: Progress, folder: Path = FOLDER) -> None:
    """Write the progress of the target, whole or not at all."""
    file = _file(target, seed, folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(asdict(progress)))
    unfinished.replace(file)


def keep(target: str, seed: int, failure: Failure, folder: Path = FOLDER) -> Path:
    """Write a failing input, the smaller one that fails alike and the traceback. Return the file's path."""
    name = f"{target}-{sha256(failure.kind.encode()).hexdigest()[:8]}-{failure.number}.json"
    file = folder / "failures" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {"target": target, "seed": seed, **asdict(failure)}
    file.write_text(json.dumps(document, indent=1))
    return file


def kept(target: str, folder: Path = FOLDER) -> list[Path]:
    """Return the files of the target's failing inputs."""
    return [
        path
        for path in sorted((folder / "failures").glob("*.json"))
        if re.match(rf"{target}-[0-9a-f]{{8}}-", path.name)
    ]


def _file(target: str, seed: int, folder: Path) -> Path:
    return folder / f"seed-{seed}" / f"{target}.json"
