"""Snapshot folder on disk: checks that it may be written, and writes one file at a time.

Decides that no foreign file is touched, and that a file exists whole or not at all. Only the owner of the folder can
read its files: names and addresses of a cluster, and its groups' user data, are confidential."""

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

MARK = "# written by leeward snapshot: the policies that are deployed\n"  # any other policy.yaml is the user's own
NAMES = frozenset({*(f"{name}.json" for name in FILES), POLICY_FILE})


class UnusableFolderError(InvalidInputError):
    """Error for a folder in which nothing can be written at all."""


class SnapshotFolder:
    """Folder that is created when the first file is written."""

    def __init__(self, path: Path) -> None:
        """Raise InvalidInputError for a folder that holds anything but a snapshot; hidden files do not count."""
        self.path = path
        try:
            found = sorted(one.name for one in path.iterdir() if not one.name.startswith("."))
        except FileNotFoundError:
            found = []
        except OSError as error:
            raise _unusable(path, error) from error
        foreign = [name for name in found if name not in NAMES]
        if foreign:
            raise InvalidInputError(
                f"--to: found {str(path)!r} with {foreign[0]} in it, expected a new folder, an empty one, or one that "
                "holds nothing but an earlier snapshot, whose files are replaced"
            )

    def put(self, name: str, document: Any) -> int:
        """Write NAME.json, read it back as the offline commands do and return how many elements they find. Raises
        InvalidInputError for a file that they would refuse: it must not stay, or no command would run on the folder.
        """
        self._replace(f"{name}.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        elements = read_elements(self.path, FILES[name])
        return len(elements[0].get("on-demand") or {}) if name == "prices" else len(elements)

    def put_policies(self, documents: Sequence[Any]) -> int:
        """Write policy.yaml, also over the user's own; return how many documents it holds."""
        text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, explicit_start=True)
        self._replace(POLICY_FILE, MARK + text)
        return len(read_documents(self.path / POLICY_FILE))

    @property
    def has_own_policies(self) -> bool:
        """True for a policy.yaml that no snapshot wrote."""
        try:
            return not (self.path / POLICY_FILE).read_text(encoding="utf-8", errors="replace").startswith(MARK)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(self.path, error) from error

    def remove(self, name: str) -> None:
        """Remove a file of an earlier snapshot: files of two moments do not mix. The user's own policies stay."""
        if name == POLICY_FILE and self.has_own_policies:
            return
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _replace(self, name: str, text: str) -> None:
        """Replace the file by one rename of a complete file."""
        written: Path | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle, path = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
            written = Path(path)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            written.replace(self.path / name)
        except OSError as error:
            raise _unusable(self.path, error) from error
        finally:
            if written is not None:
                written.unlink(missing_ok=True)


def _unusable(path: Path, error: OSError) -> UnusableFolderError:
    why = error.strerror or str(error)
    return UnusableFolderError(f"--to: found {str(path)!r} ({why}), expected a folder that can be written")
