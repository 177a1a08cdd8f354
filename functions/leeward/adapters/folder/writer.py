"""Snapshot folder on disk: checks that it may be written, and writes one file at a time.

Decides which folders are refused, so that no file is lost that no snapshot wrote, and writes each file whole or not at
all. The mode of the files lets only their owner read them: a cluster's names and addresses, and the user data of its
groups, are confidential."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from leeward.adapters.folder.files import FILES, POLICY_FILE, read_elements
from leeward.adapters.folder.policy_files import read_documents
from leeward.errors import InvalidInputError

# First line of a policy.yaml that a snapshot wrote; any other policy.yaml is the user's own.
POLICY_HEADER = "# written by leeward snapshot: the policies that are deployed\n"
SNAPSHOT_FILES = frozenset({*(f"{name}.json" for name in FILES), POLICY_FILE})


class UnusableFolderError(InvalidInputError):
    """Folder that cannot be read or written."""


class SnapshotFolder:
    """Folder of a snapshot; it is created with the first file. Methods raise UnusableFolderError on an error of the
    disk.
    """

    def __init__(self, path: Path) -> None:
        """Check the folder. Raises InvalidInputError if it has files that are not a snapshot's; hidden files are
        ignored.
        """
        self.path = path
        try:
            names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise _unusable(path, error) from error
        foreign = [name for name in names if name not in SNAPSHOT_FILES]
        if foreign:
            raise InvalidInputError(
                f"--to: found {str(path)!r} with {foreign[0]} in it, expected a new folder, an empty one, or one that "
                "holds nothing but an earlier snapshot, whose files are replaced"
            )

    def put(self, name: str, document: Any) -> int:
        """Write `NAME.json`, read it back as the offline commands do, and return the number of elements.

        Raises InvalidInputError for a file that these commands would refuse; the caller then removes it, or no command
        would run on the folder.
        """
        self._replace(f"{name}.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        elements = read_elements(self.path, FILES[name])
        return sum(len(element.get("on-demand") or {}) if name == "prices" else 1 for element in elements)

    def put_policies(self, documents: Sequence[Any]) -> int:
        """Write policy.yaml, even over the user's own; return the number of documents."""
        text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, explicit_start=True)
        self._replace(POLICY_FILE, POLICY_HEADER + text)
        return len(read_documents(self.path / POLICY_FILE))

    @property
    def has_own_policies(self) -> bool:
        """True if the folder has a policy.yaml that no snapshot wrote."""
        try:
            return not (self.path / POLICY_FILE).read_text(encoding="utf-8", errors="replace").startswith(POLICY_HEADER)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(self.path, error) from error

    def remove(self, name: str) -> None:
        """Remove a file of an earlier snapshot: files of two moments must not mix. The user's own policies stay."""
        if name == POLICY_FILE and self.has_own_policies:
            return
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _replace(self, name: str, text: str) -> None:
        """Write a temporary file and rename it, so that a reader sees the old file or the new one."""
        temporary: Path | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle, path = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
            temporary = Path(path)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(self.path / name)
        except OSError as error:
            raise _unusable(self.path, error) from error
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)


def _unusable(path: Path, error: OSError) -> UnusableFolderError:
    reason = error.strerror or str(error)
    return UnusableFolderError(f"--to: found {str(path)!r} ({reason}), expected a folder that can be written")
