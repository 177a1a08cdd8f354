"""Snapshot folder on disk: checks that it may be written, and writes one file at a time.

Decides which folders are refused, so that no file is lost that no snapshot wrote, and writes each file whole or not at
all. The mode of the files lets only their owner read them: a cluster's names and addresses, and the user data of its
groups, are confidential.

Fields of an object that `leeward snapshot` writes, so that no secret travels with the folder.

Decides by what is read, and not by where secrets are known to be: of Kubernetes objects a folder holds the fields that
`schema.json` names, which are those that commands read, and nothing else. Fields that Kubernetes will have tomorrow are
left out with them. Labels and annotations are maps of anything: they are kept for the kinds, and annotations by the
keys, that commands read. All annotations of Nodes stay, because a policy may name any.

AWS's answers stay as they are. The place for secrets in them is user data, which drift and the labels of new nodes
follow from: it stays as well, unless the snapshot is to be without it."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from leeward.adapters.folder.files import FILES, POLICY_FILE, read_elements
from leeward.adapters.folder.policy_files import read_documents
from leeward.adapters.folder.schema import definition
from leeward.disruption.do_not_disrupt import DO_NOT_DISRUPT, DO_NOT_EVICT
from leeward.errors import InvalidInputError
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.model.well_known import DISRUPTION_WINDOW, MIRROR_POD, POD_DELETION_COST, SAFE_LOCAL_VOLUMES, SAFE_TO_EVICT
from leeward.placement.cni import CONTAINER, DAEMON_SET, VARIABLES

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the whole object once more, with all that is dropped
READ_OF_PODS = frozenset(
    {*DO_NOT_DISRUPT, DO_NOT_EVICT, DISRUPTION_WINDOW, SAFE_TO_EVICT, SAFE_LOCAL_VOLUMES, POD_DELETION_COST, MIRROR_POD}
)
LABELLED = frozenset({"nodes", "pods", "pvs", "namespaces"})  # files of objects whose labels are read
Reduce = Callable[[Any], Any]
# First line of a policy.yaml that a snapshot wrote; any other policy.yaml is the user's own.
POLICY_HEADER = "# written by leeward snapshot: the policies that are deployed\n"
SNAPSHOT_FILES = frozenset({*(f"{name}.json" for name in FILES), POLICY_FILE})


def kept(name: str, raw: Mapping[str, Any], *, user_data: bool = True) -> dict[str, Any]:
    """Return what the file NAME.json keeps of an element. `user_data` False: without that of launch templates and
    launch configurations.
    """
    match name:
        case "launch-template-versions":
            data = raw.get("LaunchTemplateData") or {}
            return dict(raw) if user_data else {**raw, "LaunchTemplateData": _without_user_data(data)}
        case "launch-configurations":
            return dict(raw) if user_data else _without_user_data(raw)
    found: dict[str, Any] = _reduction(name)(raw)
    found["metadata"] = _metadata(name, found["metadata"])
    if name == "daemonsets":
        _keep_variables(found)
    return found


def _without_user_data(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "UserData": USER_DATA_LEFT_OUT} if raw.get("UserData") else dict(raw)


def _metadata(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    notes = found.get("annotations") or {}
    kept = {key: value for key, value in notes.items() if _is_read(name, key)}
    others = {key: value for key, value in found.items() if key != "annotations"}
    if name not in LABELLED:
        others.pop("labels", None)
    return {**others, "annotations": kept} if kept else others


def _is_read(name: str, annotation: str) -> bool:
    return annotation in READ_OF_PODS if name == "pods" else name == "nodes" and annotation != APPLIED


def _keep_variables(found: dict[str, Any]) -> None:
    """Remove the variables of containers, except those of the VPC CNI's that are its settings. `found` is a copy."""
    meta = found["metadata"]
    of_cni = f"{meta.get('namespace', 'default')}/{meta['name']}" == DAEMON_SET
    spec = (found.get("spec") or {}).get("template", {}).get("spec") or {}
    for container in spec.get("containers") or ():
        variables = container.pop("env", None) or ()
        if of_cni and container.get("name") == CONTAINER:
            container["env"] = [one for one in variables if one.get("name") in VARIABLES]


@cache
def _reduction(name: str) -> Reduce:
    """Return the function that reduces a value to what the definition of that name in `schema.json` has."""
    return _compiled(definition(name))


def _compiled(schema: Mapping[str, Any]) -> Reduce:
    if "$ref" in schema:
        return _reduction(schema["$ref"].rpartition("/")[2])
    match schema.get("type"):
        case "array":
            return _each(_compiled(schema["items"]))
        case "object":
            inner = {key: _compiled(value) for key, value in schema.get("properties", {}).items()}
            others = schema.get("additionalProperties")
            return _mapping(inner, _compiled(others) if others else None)
        case _:
            return _plain


def _mapping(inner: Mapping[str, Reduce], others: Reduce | None) -> Reduce:
    """Return the reduction of a mapping. `others`: that of values whose keys are not named; None: they are dropped."""

    def reduce(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return _plain(value)
        if others is not None:
            return {key: inner.get(key, others)(one) for key, one in value.items()}
        return {key: reduction(value[key]) for key, reduction in inner.items() if key in value}

    return reduce


def _each(inner: Reduce) -> Reduce:
    return lambda value: [inner(one) for one in value] if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> Any:
    """Return a value without parts; anything else is dropped, as it is not what the schema says."""
    return None if isinstance(value, Mapping | list) else value


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
