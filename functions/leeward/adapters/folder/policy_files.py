"""Policies from YAML files, for the command line and for synth.

Decides how YAML is read (several documents, no duplicate keys, no dates made of text, nothing that grows when it is
read); `leeward.policy` decides what a document may contain. A file may come from a stranger: a snapshot folder, a pull
request."""

import re
from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import yaml

from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterPolicies
from leeward.policy.fields import legible
from leeward.policy.parse import parse_documents
from leeward.policy.write import parameters

LARGEST_FILE = 1024 * 1024  # bytes; SSM holds 8 KB of each document
DEEPEST = 32  # levels of nesting; a policy has seven
MOST_NODES = 20_000  # values of one file
LONGEST_NAME, LONGEST_PROBLEM = 80, 400  # characters that a message repeats from the file, or from its reader
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses a duplicate key and leaves dates as text."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[tuple[str, str]] = set()
    for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
        if (key.tag, key.value) in seen:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"found the key {legible(key.value, LONGEST_NAME)} twice, expected each key once",
                key.start_mark,
            )
        seen.add((key.tag, key.value))
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_documents(path: Path) -> list[tuple[str, Any]]:
    """Read (source, parsed object) of each document; source is `FILE`, or `FILE#2` where there are several.

    Raises InvalidPolicyError naming file, place, found and expected.
    """
    try:
        parsed = load_plain(_read(path))
    except yaml.MarkedYAMLError as error:
        raise InvalidPolicyError(f"{path}: {_place(error)}: {_problem(error)}") from error
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        reason = legible(re.sub(r"\s+", " ", str(error)), LONGEST_PROBLEM) or type(error).__name__
        raise InvalidPolicyError(f"{path}: document: found {reason}, expected a YAML file of policies") from error
    several = len(parsed) > 1
    sources = [f"{path}#{number}" if several else str(path) for number in range(1, len(parsed) + 1)]
    return [(source, document) for source, document in zip(sources, parsed, strict=True) if document is not None]


def load_plain(content: str) -> list[Any]:
    """Parse each document of plain YAML. Raises yaml.YAMLError, with the place where it is known."""
    _check(content)
    return list(yaml.load_all(content, Loader=_Loader))


def _read(path: Path) -> str:
    """Read a file of limited size. Raises ValueError for a larger one, and for text that is not UTF-8."""
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE:,} bytes")
    return content.decode("utf-8-sig")


def _check(content: str) -> None:
    """Refuse what a policy does not need and a reader pays for: anchors and aliases, which multiply, explicit tags,
    deep nesting, lone surrogates. Raises yaml.MarkedYAMLError with the place. The events are read one by one, so that
    nothing is built before it is checked.
    """
    depth = nodes = 0
    for event in yaml.parse(content, Loader=_Loader):
        nodes += isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        problem = _not_plain(event)
        if depth > DEEPEST:
            problem = f"found nesting, expected at most {DEEPEST} levels"
        elif nodes > MOST_NODES:
            problem = f"found values, expected at most {MOST_NODES:,} in a file"
        if problem:
            mark = event.start_mark
            raise yaml.MarkedYAMLError(
                problem=problem, problem_mark=mark if isinstance(mark, yaml.error.Mark) else None
            )


def _not_plain(event: yaml.Event) -> str:
    """Return what of the event is not plain YAML, empty if nothing is."""
    found = ""
    if isinstance(event, yaml.AliasEvent):
        found = f"the alias *{legible(str(event.anchor), LONGEST_NAME)}"
    elif isinstance(event, yaml.NodeEvent) and event.anchor:
        found = f"the anchor &{legible(event.anchor, LONGEST_NAME)}"
    elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
        found = f"the tag {legible(event.tag, LONGEST_NAME)}"
    elif isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
        found = "the merge key <<"
    elif isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
        found = "half a surrogate pair"
    return f"found {found}, expected plain YAML" if found else ""


def find_files(patterns: Iterable[str | Path], root: Path | None = None) -> list[Path]:
    """Return the files that paths and globs name, each once, a glob's in alphabetical order, relative to `root`.

    Raises InvalidPolicyError for a path or glob that names none: a policy that is silently missing protects nothing.
    """
    base = Path() if root is None else root
    found: dict[Path, None] = {}
    for pattern in patterns:
        exact = base / pattern
        # glob beside Path.glob, which takes no absolute pattern; root_dir, because a folder's name may hold a bracket
        names = [exact] if exact.is_file() else sorted(glob(str(pattern), root_dir=base, recursive=True))  # noqa: PTH207
        files = [path for path in (base / name for name in names) if path.is_file()]
        if not files:
            raise InvalidPolicyError(f"{exact}: found no such file, expected the policies of a cluster")
        found.update(dict.fromkeys(files))
    return list(found)


def load_policies(patterns: Iterable[str | Path], cluster: str, root: Path | None = None) -> ClusterPolicies:
    """Load a cluster's policies from files and globs, in order. Raises InvalidPolicyError with one line per error."""
    documents: list[tuple[str, Any]] = []
    for path in find_files(patterns, root):
        documents += read_documents(path)
    return parse_documents(documents, cluster=cluster)


def canonical_parameters(
    patterns: Sequence[str | Path], cluster: str, root: Path | None = None
) -> list[tuple[str, str]]:
    """Return `NN-NAME` and canonical JSON of each document, as synth does. Raises InvalidPolicyError, also past
    8 KB.
    """
    return parameters(load_policies(patterns, cluster, root))


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1} column {mark.column + 1}" if mark else "document"


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "no YAML"
    return (
        problem
        if problem.startswith("found ") and ", expected " in problem
        else f"found no YAML ({legible(problem, LONGEST_PROBLEM)}), expected YAML"
    )
