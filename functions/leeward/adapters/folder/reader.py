"""Snapshot folder: raw elements of its files, checked as they are read, at the first use.

Decides what a missing file means (no elements), which policies a folder has, and how a port refuses a call that no
folder can serve; `files.py` opens the files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from leeward.adapters.folder.files import BLOCK, FILES, POLICY_FILE, read_elements
from leeward.adapters.folder.policy_files import read_documents
from leeward.errors import InvalidInputError, NotInSnapshotError
from leeward.policy.document import ClusterPolicies
from leeward.policy.parse import parse_documents

LONGEST = 200  # bytes of a match that two blocks may share


class Folder:
    """Folder of one cluster. `cluster`: the only cluster for which policy.yaml may have ClusterSettings; empty: any."""

    def __init__(self, directory: str | Path, cluster: str = "") -> None:
        """Raise InvalidInputError for a folder that does not exist."""
        self.directory, self.cluster = Path(directory), cluster
        if not self.directory.is_dir():
            raise InvalidInputError(
                f"{self.directory}: found no such folder, expected a folder with nodes.json, pods.json …"
            )
        self._read: dict[str, Sequence[Mapping[str, Any]]] = {}

    def path(self, name: str) -> Path:
        """Return the path of NAME.json, whether it exists or not."""
        return self.directory / f"{name}.json"

    def has(self, name: str) -> bool:
        """Return whether the folder holds NAME.json."""
        return self.path(name).is_file()

    def elements(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the elements of NAME.json without the keys whose value is null; none if the file is missing. Raises
        InvalidInputError, which names the file, the path in it, the value found and the one expected.
        """
        if name not in self._read:
            self._read[name] = tuple(read_elements(self.directory, FILES[name]))
        return self._read[name]

    def each(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Yield the elements that `elements` returns, one at a time, and keep none: raw pods of a large cluster take a
        gigabyte. Raises InvalidInputError at the first mistake.
        """
        return read_elements(self.directory, FILES[name])

    def mentions(self, name: str, pattern: re.Pattern[bytes]) -> bool:
        """Return whether the text of NAME.json has the pattern, in a tenth of the time that its elements take. False
        for a file that cannot be read.
        """
        text = b""
        with suppress(OSError), self.path(name).open("rb") as file:
            while block := file.read(BLOCK):
                text = text[-LONGEST:] + block
                if pattern.search(text):
                    return True
        return False

    @property
    def has_policies(self) -> bool:
        """True if the folder holds a policy.yaml."""
        return (self.directory / POLICY_FILE).exists()

    @cached_property
    def policies(self) -> ClusterPolicies:
        """Policies of policy.yaml; no policies without that file. Raises InvalidPolicyError."""
        documents = read_documents(self.directory / POLICY_FILE) if self.has_policies else []
        return parse_documents(documents, cluster=self.cluster)


class Refusing:
    """Port whose methods raise NotInSnapshotError, except those that a subclass defines. `reason`: clause of the error
    that says why; its subject is the folder.
    """

    reason = "it is a cluster's state at one moment"

    def __getattr__(self, name: str) -> Any:
        """Return a method that raises NotInSnapshotError. Raises AttributeError for private and special names: no port
        has such a method.
        """
        if name.startswith("_"):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> NoReturn:
            raise NotInSnapshotError(
                f"--snapshot: found a command that needs {type(self).__name__}.{name}, which no folder can answer "
                f"({self.reason}), expected --cluster NAME"
            )

        return refuse


class NotInFolder(Refusing):
    """Port of which a folder can serve no method."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
