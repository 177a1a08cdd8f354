"""Files of a snapshot folder: their names and the command each one comes from.

Decides how a file is opened and split into elements; the models interpret the objects.

JSON text of a file, decoded value by value: of a list of 60,000 pods one is in memory at a time.

The values are decoded by the standard library from a buffer that slides over the file, in less time than the whole file
in one piece. ijson with yajl takes twice as long, tells no line, and cannot say that a list is missing."""

import codecs
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from leeward.adapters.folder.schema import SchemaError, check_of, inside
from leeward.errors import InvalidInputError
from leeward.policy.fields import shown

BLOCK = 1 << 20  # bytes read at once; a value that does not fit doubles the buffer
SHOWN = 20  # characters that an error shows
_SPACE = re.compile(r"[ \t\n\r]*")
POLICY_FILE = "policy.yaml"


class JsonTextError(Exception):
    """Error for text that is no JSON; `place` in the file, `reason`, and the text that is `near`, None where the whole
    file is wrong.
    """

    def __init__(self, reason: str, place: str = "document", near: str | None = None) -> None:
        super().__init__(f"{place}: {reason}")
        self.reason, self.place, self.near = reason, place, near


class JsonText:
    """JSON of an open file. Methods raise JsonTextError, and OSError. Keys whose value is null are left out, as
    Kubernetes takes null for absent.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._bytes, self._ended = file, 0, False
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at = "", 0  # the buffer, and the next character in it
        self._lines, self._column = 0, 0  # before the buffer: line breaks, and characters since the last of them
        self._decode = json.JSONDecoder(object_pairs_hook=_without_nulls, parse_float=_number).raw_decode

    def peek(self) -> str:
        """Return the next character that is no space, empty at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space is not None else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._fill()

    def value(self) -> Any:
        """Return the next value as a whole."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # a value that is cut off fails at the end of the buffer, or names the beginning of its last text
                cut_off = error.pos + SHOWN > len(self._text) or error.msg.startswith("Unterminated")
                if self._ended or not cut_off:
                    raise self._error(error.msg, error.pos - self._at) from None
            except (ValueError, RecursionError):
                raise JsonTextError("JSON out of all proportion") from None
            else:
                if end + SHOWN <= len(self._text) or self._ended:  # a number might go on
                    self._at = end
                    return value
            self._fill()

    def items(self) -> Iterator[int]:
        """Yield the number of each item of the next value, a list. The caller reads the item before the next one."""
        for number, _ in enumerate(self._parts("]")):
            yield number

    def members(self) -> Iterator[str]:
        """Yield each key of the next value, a mapping. The caller reads the key's value before the next one."""
        for _ in self._parts("}"):
            if self.peek() != '"':
                raise self._error("Expecting property name enclosed in double quotes")
            key = self.value()
            if self.peek() != ":":
                raise self._error("Expecting ':' delimiter")
            self._at += 1
            yield key

    def _parts(self, last: str) -> Iterator[None]:
        """Yield before each part of a list or mapping, whose first character is next."""
        self._at += 1
        if self.peek() == last:
            self._at += 1
            return
        while True:
            yield
            found = self.peek()
            if found not in {",", last}:
                raise self._error("Expecting ',' delimiter")
            self._at += 1
            if found == last:
                return

    def _fill(self) -> None:
        """Drop the text before the next character from the buffer and read more."""
        dropped, self._text = self._text[: self._at], self._text[self._at :]
        self._lines, self._column, self._at = *self._after(dropped), 0
        block = self._file.read(max(BLOCK, len(self._text)))
        self._bytes, self._ended = self._bytes + len(block), not block
        try:
            self._text += self._utf8.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = f"byte {self._bytes - len(error.object) + error.start + 1}"
            raise JsonTextError(f"text that is not UTF-8 ({error.reason})", place) from error

    def _after(self, text: str) -> tuple[int, int]:
        """Return the line breaks before the end of a text at the buffer's beginning, and the characters since."""
        breaks = text.count("\n")
        return self._lines + breaks, len(text) - text.rfind("\n") - 1 if breaks else self._column + len(text)

    def _error(self, reason: str, after: int = 0) -> JsonTextError:
        """Return the error for the text that many characters after the next one."""
        while self._at + after + SHOWN > len(self._text) and not self._ended:
            self._fill()
        at = self._at + after
        lines, column = self._after(self._text[:at])
        return JsonTextError(reason, f"line {lines + 1} column {column + 1}", self._text[at : at + SHOWN])


def _number(text: str) -> int | float:
    """Return a whole number as an int: to JSON Schema 4.0 is one, and the models count with it."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}


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
