"""Every field that a command reads from a snapshot folder has a shape in schema.json: no file ends in a traceback.

The elements of a folder that has nearly every field are wrapped in mappings that record which keys are read."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from fuzz.offline_commands import COMMANDS, VALIDATED, offline
from leeward.adapters.folder import reader
from leeward.adapters.folder.files import FILES, RawFile
from leeward.adapters.folder.schema import SCHEMA
from leeward.cli import planning
from leeward.cli.main import main

FOLDERS = sorted(Path("fuzz/corpus/folders").iterdir())
DEFINITIONS = json.loads(SCHEMA.read_text())["$defs"]
ANY = "*"


class Recorded(dict):
    """Mapping that adds the path of each key that is read to `read`, and of each key that has to be there to `needed`.

    A copy (`{**raw}`) reads nothing: the values in it go on recording."""

    def __init__(self, content, path, reads):
        super().__init__({key: recorded(value, (*path, key), reads) for key, value in content.items()})
        self.path, self.reads = path, reads

    def __getitem__(self, key):
        if (*self.path, key) not in self.reads.asked:
            self.reads.needed.add((*self.path, key))
        return self._note(key, super().__getitem__(key))

    def get(self, key, default=None):
        self.reads.asked.add((*self.path, key))
        return self._note(key, super().get(key, default))

    def __contains__(self, key):
        self.reads.asked.add((*self.path, key))
        return self._note(key, super().__contains__(key))

    def items(self):
        return self._note(ANY, super().items())

    def values(self):
        return self._note(ANY, super().values())

    def _note(self, key, value):
        self.reads.read.add((*self.path, key))
        return value


class Reads:
    def __init__(self):
        self.read, self.needed, self.asked = set(), set(), set()
        self.opened = Counter()  # by folder, command, output and file


def recorded(value, path, reads):
    if isinstance(value, dict):
        return Recorded(value, path, reads)
    return [recorded(item, (*path, "[]"), reads) for item in value] if isinstance(value, list) else value


def shape(path):
    """The schema of a value, None where there is none."""
    schema = DEFINITIONS.get(path[0])
    for step in path[1:]:
        while schema and "$ref" in schema:
            schema = DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")]
        if schema is None:
            return None
        if step == "[]":
            schema = schema.get("items")
        else:
            schema = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    while schema and "$ref" in schema:
        schema = DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")]
    return schema


def is_required(path):
    around = shape(path[:-1]) or {}
    return path[-1] in around.get("required", ()) or "additionalProperties" in around


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """What all commands read of all folders of the corpus."""
    reads, patched = Reads(), pytest.MonkeyPatch()
    load, check = reader.read_elements, planning.check_of

    def read_elements(at, file):
        reads.opened[folder.name, command, output, file.name] += 1
        return (recorded(one, (file.name,), reads) for one in load(at, file))

    patched.setattr(reader, "read_elements", read_elements)
    patched.setattr(planning, "load_json", lambda path, by: [recorded(json.loads(path.read_text()), ("plan",), reads)])
    patched.setattr(planning, "check_of", check)
    for folder in FOLDERS:
        copy = tmp_path_factory.mktemp("folder") / folder.name
        shutil.copytree(folder, copy)
        earlier = [(*VALIDATED, str(copy / "plan.json"))] if (copy / "plan.json").exists() else []
        for command in (*COMMANDS, *earlier):
            for output in ("json", "table"):
                main(offline(command, copy, output))
    patched.undo()
    return reads


def test_every_key_that_a_command_reads_has_a_shape(reads):
    assert len(reads.read) > 200
    assert sorted(".".join(path) for path in reads.read if shape(path) is None) == []


def test_every_key_that_a_command_takes_for_given_is_required(reads):
    assert sorted(".".join(path) for path in reads.needed if path[-1] != ANY and not is_required(path)) == []


def test_no_command_reads_a_file_twice(reads):
    """The raw objects of large files are not kept, so that a second reading would take as long as the first."""
    assert [read for read, times in reads.opened.items() if times > 1] == []


def resolved(schema):
    while "$ref" in schema:
        schema = DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")]
    return schema


def keys(schema):
    """Every key that a schema or one inside it names, once for each mapping that is defined."""
    if "items" in schema:
        yield from keys(schema["items"])
    for key, inner in schema.get("properties", {}).items():
        yield id(schema), key
        yield from keys(inner)


def keys_of(value, schema):
    """The keys that a document has, by the mapping of the schema that names them."""
    schema = resolved(schema)
    if isinstance(value, dict):
        for key, inner in value.items():
            within = schema.get("properties", {}).get(key)
            if within is not None:
                yield id(schema), key
                yield from keys_of(inner, within)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, schema.get("items", {}))


def test_the_folders_of_the_corpus_have_every_field_of_the_schema():
    """A field that no folder has is never descended into: what is read inside it would go unseen."""
    files = {**FILES, "plan": RawFile(name="plan", command="", keys=())}
    held = {
        key
        for folder in FOLDERS
        for name, file in files.items()
        for element in reader.read_elements(folder, file)
        for key in keys_of(element, DEFINITIONS[name])
    }
    named = {name: set(keys(schema)) for name, schema in DEFINITIONS.items()}
    assert sorted(f"{name}: {key}" for name, of in named.items() for at, key in of if (at, key) not in held) == []
