"""Policies from YAML files, for the command line and for synth.

Decides how YAML is read (several documents, no duplicate keys, no dates made of text); `leeward.policy` decides what a
document may contain."""

import re
from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import yaml

from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterPolicies
from leeward.policy.parse import parse_documents
from leeward.policy.write import parameters


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses a duplicate key and leaves dates as text."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[tuple[str, str]] = set()
    for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
        if (key.tag, key.value) in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"found the key {key.value} twice, expected each key once", key.start_mark
            )
        seen.add((key.tag, key.value))
    loader.flatten_mapping(node)
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
        content = path.read_text(encoding="utf-8-sig")
        parsed = list(yaml.load_all(content, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        raise InvalidPolicyError(f"{path}: {_place(error)}: {_problem(error)}") from error
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        reason = re.sub(r"\s+", " ", str(error)) or type(error).__name__
        raise InvalidPolicyError(f"{path}: document: found {reason}, expected a YAML file of policies") from error
    several = len(parsed) > 1
    sources = [f"{path}#{number}" if several else str(path) for number in range(1, len(parsed) + 1)]
    return [(source, document) for source, document in zip(sources, parsed, strict=True) if document is not None]


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
    return problem if problem.startswith("found the key") else f"found no YAML ({problem}), expected YAML"
