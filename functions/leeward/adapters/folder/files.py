"""Files of a snapshot folder: their names and the command each one comes from.

Decides how a file is opened and split into elements; the models interpret the objects."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def read_elements(directory: Path, file: RawFile) -> tuple[Mapping[str, Any], ...]:
    """Return the file's elements in their order; an empty tuple when it is missing.

    A command that reads one group at a time gives several outputs: the file may hold them as a list or one after the
    other. Raises InvalidInputError naming file, path, found and expected.
    """
    path = directory / f"{file.name}.json"
    check, found = check_of(file.name), list[Mapping[str, Any]]()
    try:
        for place, document in _documents(path, file):
            for inner, element in _descend(place, document, file.keys):
                check(element, inner)
                found.append(element)
    except SchemaError as error:
        raise InvalidInputError(f"{path}: {error} (the output of: {file.command})") from error
    return tuple(found)


def _documents(path: Path, file: RawFile) -> list[tuple[str, Any]]:
    """Return every JSON document of the file with its place; lists are split into their items."""
    documents = load_json(path, file.command)
    places = [("" if len(documents) == 1 else f"document {n}: ", value) for n, value in enumerate(documents, 1)]
    flat: list[tuple[str, Any]] = []
    for place, value in places:
        several = isinstance(value, list)
        flat += [(f"{place}[{n}]", item) for n, item in enumerate(value)] if several else [(place, value)]
    return flat


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


def load_json(path: Path, command: str) -> list[Any]:
    """Return the JSON documents of a file, an empty list when it is missing; keys whose value is null are left out, as
    Kubernetes takes null for absent. Raises InvalidInputError.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: found a file that cannot be read ({error}), expected JSON") from error
    expected = f"JSON, the output of: {command}"
    if not content.strip():
        raise InvalidInputError(f"{path}: document: found an empty file, expected {expected}")
    try:
        return _decode_all(content)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        near = shown(error.doc[error.pos : error.pos + 20])
        raise InvalidInputError(f"{path}: {place}: found {near} ({error.msg}), expected {expected}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path}: document: found JSON out of all proportion, expected {expected}") from error


def _decode_all(content: str) -> list[Any]:
    decoder = json.JSONDecoder(object_pairs_hook=_without_nulls, parse_float=_number)
    documents: list[Any] = []
    position = 0
    while position < len(content):
        while position < len(content) and content[position].isspace():
            position += 1
        if position == len(content):
            break
        value, position = decoder.raw_decode(content, position)
        documents.append(value)
    return documents


def _number(text: str) -> int | float:
    """Return a whole number as an int: to JSON Schema 4.0 is one, and the models count with it."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}
