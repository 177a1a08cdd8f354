"""Texts of a policy that AWS would replace by another value when the policy becomes a parameter.

CloudFormation reads `{{resolve:secretsmanager:NAME}}` anywhere in a template as that secret, with the rights of the
principal that deploys. Systems Manager refuses a value with `{{`, so no policy can need it. `${` begins a name that
CloudFormation substitutes, and both marks of the CDK's tokens stand for attributes of other resources.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.policy.fields import Problems, Section, shown

OPENINGS = ("{{", "${", "#{Token[")
EXPECTED = f"text without {', '.join(OPENINGS)}, which deployments read as a reference to another value"


def refers(text: str) -> bool:
    """Return whether a deployment may read a part of the text as a reference."""
    return any(opening in text for opening in OPENINGS)


def refuse_references(document: Any, problems: Problems) -> None:
    """Record each text of the document, keys too, that may be read as a reference. A path that has been refused
    already is not reported again.
    """
    for path, found in _texts(document, problems):
        if refers(found) and not any(line.startswith(f"{problems.source}: {path}: ") for line in problems.lines):
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
