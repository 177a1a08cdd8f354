"""Texts of a policy that AWS would replace by another value when the policy becomes a parameter.

CloudFormation reads `{{resolve:secretsmanager:NAME}}` anywhere in a template as that secret, with the rights of the
principal that deploys. Systems Manager refuses a value with `{{`, so no policy can need it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.policy.fields import Problems, Section, shown

OPENING = "{{"
EXPECTED = f"text without {OPENING}, which CloudFormation and Systems Manager read as a reference to another value"


def refuse_references(document: Any, problems: Problems) -> None:
    """Record each text of the document, keys too, that may be read as a reference. A path that has been refused
    already is not reported again.
    """
    for path, found in _texts(document, problems):
        if OPENING in found and not any(line.startswith(f"{problems.source}: {path}: ") for line in problems.lines):
            problems.add(path, shown(found), EXPECTED)


def _texts(document: Any, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of each key and value, in the document's order."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        inner: list[tuple[str, Any]] = []
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            section = Section(value, path, problems)
            inner = [
                entry for key, item in value.items() for entry in ((section.at(key), key), (section.at(key), item))
            ]
        elif isinstance(value, list | tuple):
            inner = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        waiting += reversed(inner)
