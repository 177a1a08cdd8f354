"""Resources that an update of a stack from one template to another replaces or removes, by AWS's resource schemas."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

Resources = Mapping[str, Mapping[str, Any]]


@cache
def schema(kind: str) -> Mapping[str, Any]:
    """The schema of CloudFormation's registry, as cfn-lint carries it."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # late: every worker collects, one needs it

    found: Mapping[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    return found


def replaced(before: Resources, after: Resources) -> Iterator[tuple[str, str]]:
    """(logical id, property) of each resource that an update replaces: a property that only a creation sets differs."""
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if old["Type"] != new["Type"]:
            yield name, "Type"
            continue
        for path in _set_by_creation(old["Type"]):
            if _at(old["Properties"], path) != _at(new["Properties"], path):
                yield name, "/".join(path)


def fixed_names(resources: Resources) -> dict[tuple[str, str], str]:
    """(type, physical name) -> logical id, of resources whose name the template says."""
    found = {}
    for name, resource in resources.items():
        kind = resource["Type"]
        for path in _set_by_creation(kind):
            if path[-1] in {"Name", f"{kind.rpartition('::')[2]}Name"}:
                given = _at(resource["Properties"], path)
                if given is not None:
                    found[kind, str(given)] = name
    return found


def _set_by_creation(kind: str) -> list[tuple[str, ...]]:
    found = schema(kind)
    paths = (*found.get("createOnlyProperties", ()), *found.get("conditionalCreateOnlyProperties", ()))
    return [tuple(path.removeprefix("/properties/").split("/")) for path in paths]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
