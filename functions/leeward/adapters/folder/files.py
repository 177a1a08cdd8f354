"""Files of a snapshot folder: their names and the command each one comes from.

Decides how a file is opened and split into elements; the models interpret the objects."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.adapters.folder.json_text import JsonText, JsonTextError
from leeward.adapters.folder.schema import SchemaError, check_of, inside
from leeward.errors import InvalidInputError
from leeward.policy.fields import shown

POLICY_FILE = "policy.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFile:
    """One file: `NAME.json`, the output of `command`; `keys` lead to its elements, lists at every step. `schema.json`
    defines an element by the file's name."""

    name: str
    command: str
    keys: tuple[str, ...] = ("items",)


FILES: Mapping[str, RawFile] = {
    file.name: file
    for file in (
        RawFile(name="nodes", command="kubectl get nodes -o json"),
        RawFile(name="pods", command="kubectl get pods -A -o json"),
        RawFile(name="pdbs", command="kubectl get pdb -A -o json"),
        RawFile(name="daemonsets", command="kubectl get daemonsets -A -o json"),
        RawFile(name="pvs", command="kubectl get pv -o json"),
        RawFile(name="pvcs", command="kubectl get pvc -A -o json"),
        RawFile(name="volumeattachments", command="kubectl get volumeattachments -o json"),
        RawFile(
            name="auto-scaling-groups",
            command="aws autoscaling describe-auto-scaling-groups",
            keys=("AutoScalingGroups",),
        ),
        RawFile(name="lifecycle-hooks", command="aws autoscaling describe-lifecycle-hooks", keys=("LifecycleHooks",)),
        RawFile(
            name="launch-configurations",
            command="aws autoscaling describe-launch-configurations",
            keys=("LaunchConfigurations",),
        ),
        RawFile(
            name="launch-template-versions",
            command="aws ec2 describe-launch-template-versions",
            keys=("LaunchTemplateVersions",),
        ),
        RawFile(name="instances", command="aws ec2 describe-instances", keys=("Reservations", "Instances")),
        RawFile(name="instance-types", command="aws ec2 describe-instance-types", keys=("InstanceTypes",)),
        RawFile(name="instance-status", command="aws ec2 describe-instance-status", keys=("InstanceStatuses",)),
        RawFile(name="images", command="aws ec2 describe-images --image-ids", keys=("Images",)),
        RawFile(name="subnets", command="aws ec2 describe-subnets", keys=("Subnets",)),
        RawFile(name="cluster", command="aws eks describe-cluster", keys=()),
        RawFile(name="nodegroups", command="aws eks describe-nodegroup", keys=()),
        RawFile(name="prices", command="leeward snapshot", keys=()),
        RawFile(name="storageclasses", command="kubectl get storageclasses -o json"),
        RawFile(name="csinodes", command="kubectl get csinodes -o json"),
        RawFile(name="namespaces", command="kubectl get namespaces -o json"),
    )
}


def read_elements(directory: Path, file: RawFile) -> Iterator[Mapping[str, Any]]:
    """Yield the file's elements in their order, each checked, one at a time; none when the file is missing.

    A command that reads one group at a time gives several outputs: the file may hold them as a list or one after the
    other. Raises InvalidInputError naming file, path, found and expected, at the first mistake.
    """
    path, check = directory / f"{file.name}.json", check_of(file.name)
    with _json_text(path, file.command) as text:
        try:
            for place, element in _elements(text, file.keys):
                check(element, place)
                yield element
        except SchemaError as error:
            raise InvalidInputError(f"{path}: {error} (the output of: {file.command})") from error


def load_json(path: Path, command: str) -> list[Any]:
    """Return the JSON documents of a file, an empty list when it is missing; keys whose value is null are left out, as
    Kubernetes takes null for absent. Raises InvalidInputError.
    """
    documents: list[Any] = []
    with _json_text(path, command) as text:
        while text.peek():
            documents.append(text.value())
    return documents


def _elements(text: JsonText, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the elements of all documents, each with its place; a list is as many documents as it has items."""
    count = 0
    while first := text.peek():
        count += 1
        place = "" if count == 1 else f"document {count}: "
        if first == "[":
            for number in text.items():
                yield from _of_document(f"{place}[{number}]", text, keys)
        else:
            yield from _of_document(place, text, keys)


def _of_document(place: str, text: JsonText, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the elements of the next document: of its list one at a time, of lists in that list all of an item."""
    if not keys or text.peek() != "{":
        yield from _descend(place, text.value(), keys)
        return
    inner, listed = inside(place, keys[0]), False
    for key in text.members():
        if key == keys[0] and text.peek() == "[":
            listed = True
            for number in text.items():
                yield from _descend(f"{inner}[{number}]", text.value(), keys[1:])
        elif (value := text.value()) is not None and key == keys[0]:
            raise SchemaError(inner, shown(value), "a list")
    if not listed:
        raise SchemaError(place, "a mapping", f"a mapping with {keys[0]}")


def _descend(path: str, value: Any, keys: tuple[str, ...]) -> list[tuple[str, Any]]:
    if not keys:
        return [(path, value)]
    if not isinstance(value, Mapping) or keys[0] not in value:
        raise SchemaError(path, shown(value), f"a mapping with {keys[0]}")
    inner = inside(path, keys[0])
    items = value[keys[0]]
    if not isinstance(items, list):
        raise SchemaError(inner, shown(items), "a list")
    return [found for index, item in enumerate(items) for found in _descend(f"{inner}[{index}]", item, keys[1:])]


@contextmanager
def _json_text(path: Path, command: str) -> Iterator[JsonText]:
    """Open a file as JSON text; a missing file has no document. Raises InvalidInputError, also for what is read of it
    within the context.
    """
    expected = f"JSON, the output of: {command}"
    try:
        with path.open("rb") if path.exists() else io.BytesIO() as file:
            text = JsonText(file)
            if not text.peek() and path.exists():
                raise InvalidInputError(f"{path}: document: found an empty file, expected {expected}")
            yield text
    except OSError as error:
        raise InvalidInputError(f"{path}: found a file that cannot be read ({error}), expected JSON") from error
    except JsonTextError as error:
        found = error.reason if error.near is None else f"{shown(error.near)} ({error.reason})"
        raise InvalidInputError(f"{path}: {error.place}: found {found}, expected {expected}") from error
