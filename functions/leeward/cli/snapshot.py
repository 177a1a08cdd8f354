"""`leeward snapshot --to DIR --cluster NAME`: writes the folder that every command reads with `--snapshot DIR`.

Decides how the snapshot is requested and reported; `leeward.capture` decides what each file holds."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.adapters.folder.files import FILES, POLICY_FILE
from leeward.adapters.folder.writer import SnapshotFolder, UnusableFolderError
from leeward.cli.live import live_ports, no_cluster
from leeward.cli.member import access_of
from leeward.cli.output import emit, tell
from leeward.cli.tables import Table
from leeward.errors import InvalidInputError, LeewardError, ObjectGoneError

if TYPE_CHECKING:
    from leeward.capture.documents import Capture

LONG_SECONDS = 5.0  # then every file is reported as it is written, also without a terminal
COLUMNS = ("FILE", "ELEMENTS")
POLICIES_COMMAND = "aws ssm get-parameters-by-path"
DESCRIPTION = """Writes the state of a cluster as the raw output of kubectl and aws: one file a command, only what
belongs to the cluster, with its policies. All commands work on the folder with --snapshot DIR, without credentials.
User data of launch templates and launch configurations is written as it is, and may hold secrets: --no-user-data
leaves it out. A file that cannot be read is named with the call that failed; the others are written all the same, and
the exit code is 1."""


@dataclass(slots=True, kw_only=True)
class Taken:
    """Result of a snapshot. `files`: elements by file name; `missing`: reasons by file name."""

    to: Path
    files: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder and --no-user-data."""
    parser.add_argument(
        "--to", metavar="DIR", type=Path, required=True, help="the folder; files of an earlier snapshot are replaced"
    )
    parser.add_argument(
        "--no-user-data",
        action="store_true",
        help="leave out user data: what nodes get from it, and drift in it, is then unknown",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, write and report; return 1 where a file is missing."""
    if arguments.snapshot is not None:
        raise InvalidInputError("snapshot: found --snapshot, expected --cluster NAME: it is live alone")
    if arguments.cluster is None:
        raise InvalidInputError("snapshot: found no --cluster, expected --cluster NAME")
    arguments.view.check(COLUMNS)
    folder = SnapshotFolder(arguments.to)
    from leeward.adapters import wiring  # late: --help needs none of these
    from leeward.adapters.folder.writer import kept
    from leeward.capture.documents import Capture

    raw = wiring.command_line_raw(arguments.region, **access_of(arguments))
    keep = partial(kept, user_data=not arguments.no_user_data)
    capture = Capture(live_ports(arguments), raw, arguments.cluster, arguments.now, keep)
    _check_cluster(capture, arguments)
    taken = take(capture, folder, SnapshotProgress(watched=sys.stderr.isatty()))
    emit(to_json(taken), arguments.view, lambda: _report(taken))
    return 1 if taken.missing else 0


class SnapshotProgress:
    """Progress lines on standard error. `watched`: on a terminal, which shows every file from the first on."""

    def __init__(self, *, watched: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._watched, self._clock, self._began = watched, clock, clock()

    def wrote(self, name: str, count: int) -> None:
        """Report that a file was written."""
        if self._watched or self._clock() - self._began >= LONG_SECONDS:
            tell(f"{name}: {count}")

    def warn(self, sentence: str) -> None:
        """Print a warning, watched or not."""
        tell(sentence)


def take(capture: Capture, folder: SnapshotFolder, progress: SnapshotProgress) -> Taken:
    """Write every file that a snapshot may have."""
    taken = Taken(to=folder.path)
    for name, file in FILES.items():

        def write(name: str = name) -> int:
            return folder.put(name, capture.document(name))

        _one(taken, f"{name}.json", file.command, write, folder, progress)
        for warning in capture.warnings:
            progress.warn(warning)
        capture.warnings.clear()
    _policies(taken, capture, folder, progress)
    for name in _strangers(capture):
        progress.warn(
            f"auto-scaling-groups.json is without {name}: nodes are of it, and it does not bear the cluster's tag, so "
            "that live commands do not see it either"
        )
    return taken


def to_json(taken: Taken) -> dict[str, Any]:
    """Return the document that `docs/schema/snapshot.json` describes."""
    missing = [{"file": name, "why": why} for name, why in taken.missing.items()]
    return {"to": str(taken.to), "files": taken.files, "missing": missing}


def _check_cluster(capture: Capture, arguments: argparse.Namespace) -> None:
    """Check that the cluster exists before any write. One that may not be described may exist nevertheless."""
    try:
        capture.document("cluster")
    except ObjectGoneError as error:
        raise no_cluster(arguments, error) from error
    except LeewardError:
        return


def _one(
    taken: Taken, name: str, command: str, write: Callable[[], int], folder: SnapshotFolder, progress: SnapshotProgress
) -> None:
    try:
        taken.files[name] = write()
    except UnusableFolderError:
        raise
    except LeewardError as error:
        folder.remove(name)
        taken.missing[name] = str(error)
        progress.warn(f"{name} ({command}) is left out: {error}")
    else:
        progress.wrote(name, taken.files[name])


def _policies(taken: Taken, capture: Capture, folder: SnapshotFolder, progress: SnapshotProgress) -> None:
    """Write the deployed policies. Without any, no file is written, and users who try Leeward put their own there."""
    documents: list[Any] = []

    def write() -> int:
        documents.extend(capture.policies())
        return folder.put_policies(documents) if documents else 0

    _one(taken, POLICY_FILE, POLICIES_COMMAND, write, folder, progress)
    if POLICY_FILE in taken.files and not documents:
        del taken.files[POLICY_FILE]
        folder.remove(POLICY_FILE)
        progress.warn(f"{POLICY_FILE} is not written: no policy is deployed for the cluster (docs/policy.md)")
    if POLICY_FILE not in taken.files and folder.has_own_policies:
        progress.warn(f"the {POLICY_FILE} that is there was not written by Leeward and stays")


def _strangers(capture: Capture) -> list[str]:
    try:
        return capture.strangers()
    except LeewardError:
        return []


def _report(taken: Taken) -> list[Table | str]:
    table = Table(COLUMNS, kind="file")
    for name, count in taken.files.items():
        table.add(name, count)
    left = [f"left out: {name}: {why}" for name, why in taken.missing.items()]
    return [f"written to {taken.to}", table, *left]
